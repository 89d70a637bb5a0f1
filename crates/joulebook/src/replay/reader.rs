//! A recorded register as a reader.

use joulebook_core::Fault;

use crate::reader::{Device, Reader, Reading};

/// One column of one recorded card. Each read gives the next reading, and [`Self::next_ns`] says
/// when it was taken: whoever plays the recording sets its clock by that.
#[derive(Clone, Debug)]
pub struct Replay {
    device: Device,
    readings: Vec<(u64, Result<Reading, Fault>)>,
    next: usize,
}

impl Replay {
    /// Plays these readings, which are in time order, ns.
    pub fn new(device: Device, readings: Vec<(u64, Result<Reading, Fault>)>) -> Self {
        Self { device, readings, next: 0 }
    }

    /// When the reading that [`Reader::read`] gives next was taken; `None` at the end.
    pub fn next_ns(&self) -> Option<u64> {
        self.readings.get(self.next).map(|(at_ns, _)| *at_ns)
    }
}

impl Reader for Replay {
    fn device(&self) -> Device {
        self.device.clone()
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        // Past its end a recording has nothing more to say, as a card that fell off the bus.
        let (_, reading) = self.readings.get(self.next).ok_or(Fault::Lost)?;
        self.next += 1;
        *reading
    }
}
