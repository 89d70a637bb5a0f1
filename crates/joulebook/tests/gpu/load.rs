//! Work on a real card: a kernel of about two milliseconds, launched again and again by a thread of
//! its own until it is told to stop, and waited for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use joulebook::{clock::now_ns, nvml::CardInfo};

use super::{cuda::Busy, work::Work};

const LIBRARY: &str = "libcuda.so.1";
/// A launch, and waking up.
const EDGE_NS: u64 = 2_500_000;

/// Work through the CUDA driver. Ends with this value.
pub struct Cuda {
    orders: Sender<Arc<AtomicBool>>,
    told: Receiver<Result<u64, String>>,
    stop: Arc<AtomicBool>,
}

impl Cuda {
    /// On that card, or why it cannot be.
    pub fn on(card: &CardInfo) -> Result<Self, String> {
        let pci = card.pci.clone().ok_or("the card's PCI address is not known")?;
        Self::through(LIBRARY, &pci)
    }

    /// Through another driver library.
    pub fn through(library: &'static str, pci: &str) -> Result<Self, String> {
        let (orders, taken) = channel();
        let (tell, told) = channel();
        let pci = pci.to_owned();
        thread::spawn(move || run(library, &pci, &taken, &tell));
        told.recv().map_err(|_| "the thread of the work ended".to_owned())??;
        Ok(Self { orders, told, stop: Arc::default() })
    }

    fn answer(&self) -> Result<u64, String> {
        self.told.recv().map_err(|_| "the thread of the work ended".to_owned())?
    }
}

impl Work for Cuda {
    fn begin(&mut self) -> Result<u64, String> {
        self.stop = Arc::default();
        self.orders
            .send(Arc::clone(&self.stop))
            .map_err(|_| "the thread of the work ended".to_owned())?;
        self.answer()
    }

    fn end(&mut self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.answer()
    }

    fn edge_ns(&self) -> u64 {
        EDGE_NS
    }

    fn words(&self) -> String {
        "multiply-add kernels of 2 ms through the CUDA driver; at rest its context is open"
            .to_owned()
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Makes the card ready, then works at each order until its flag is set. Tells when it was ready,
/// and of each order when it began and when it was done.
fn run(
    library: &str,
    pci: &str,
    orders: &Receiver<Arc<AtomicBool>>,
    tell: &Sender<Result<u64, String>>,
) {
    let busy = match Busy::on(library, pci) {
        Ok(busy) => busy,
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    // Whoever asked may be gone: then so is what it wanted.
    let _ = tell.send(Ok(now_ns()));
    for stop in orders {
        let began_ns = now_ns();
        let mut step = busy.launch();
        let _ = tell.send(step.clone().map(|()| began_ns));
        if step.is_err() {
            continue;
        }
        while step.is_ok() && !stop.load(Ordering::Relaxed) {
            step = busy.wait().and_then(|()| busy.launch());
        }
        let done = step.and_then(|()| busy.wait());
        let _ = tell.send(done.map(|()| now_ns()));
    }
}

#[test]
fn a_driver_that_is_not_there_is_said_by_name() {
    let error = Cuda::through("libcuda-of-nowhere.so.1", "0000:01:00.0").err().unwrap();
    assert!(error.contains("libcuda-of-nowhere.so.1"), "{error}");
}
