//! One card of the driver, held by its UUID.
//!
//! Decides when a failing card is looked for anew (after three failures in a row, then ever more
//! seldom) and when the whole library is loaded again: when the library itself says it has no
//! driver, or when the card is lost and no other has answered for a while. Every failure is
//! returned as it is.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use joulebook_core::Fault;
use nvml_wrapper::Device;

use super::{
    driver::{Driver, Library},
    fault::named,
    patience::Reacquire,
    raw::Handle,
    support::Support,
};

/// With no card answering for so long, the fault is taken to be the library's.
const SILENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Session {
    driver: Arc<Driver>,
    uuid: String,
    support: Arc<Support>,
    handle: Option<Handle>,
    reacquire: Reacquire,
    answered: bool,
}

impl Session {
    pub(super) fn new(driver: &Arc<Driver>, uuid: &str) -> Self {
        Self {
            driver: Arc::clone(driver),
            uuid: uuid.to_owned(),
            support: driver.support(uuid),
            handle: None,
            reacquire: Reacquire::default(),
            answered: false,
        }
    }

    /// Makes calls on the card; the card is found first if it must be.
    pub(super) fn call<T>(
        &mut self,
        make: impl FnOnce(&Device<'_>, &Support) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let library = self.driver.library().map_err(|error| self.word(error.fault()))?;
        let found = self.find(&library);
        let answer = found.and_then(|device| make(&device, &self.support));
        match answer {
            Ok(value) => {
                self.reacquire.succeeded();
                self.answered = true;
                self.driver.answered();
                Ok(value)
            }
            // The card is there and has spoken.
            Err(Fault::NotSupported) => Err(Fault::NotSupported),
            Err(fault) => {
                if self.reacquire.failed(Instant::now()) {
                    self.handle = None;
                    let is_librarys = match fault {
                        Fault::DriverAbsent => true,
                        Fault::Lost | Fault::Unknown => self.driver.silent_for(SILENCE),
                        _ => false,
                    };
                    if is_librarys {
                        self.driver.discard(&library);
                    }
                }
                Err(self.word(fault))
            }
        }
    }

    /// A card that could be read before and now refuses without saying why has lost us our access:
    /// so it reads where a container's rights to its devices are taken away.
    const fn word(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Permission | Fault::Unknown if self.answered => Fault::AccessLost,
            other => other,
        }
    }

    fn find<'a>(&mut self, library: &'a Arc<Library>) -> Result<Device<'a>, Fault> {
        if let Some(device) =
            self.handle.and_then(|handle| handle.attach(&library.nvml, library.generation))
        {
            return Ok(device);
        }
        let device = match library.nvml.device_by_uuid(self.uuid.as_str()) {
            Ok(device) => device,
            Err(error) => {
                return Err(match named(&error) {
                    Fault::Absent if self.answered => Fault::Lost,
                    fault => fault,
                });
            }
        };
        self.handle = Some(Handle::keep(&device, library.generation));
        Ok(device)
    }
}
