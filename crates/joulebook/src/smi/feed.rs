//! One child for all cards of the host, shared by whoever reads them.

use std::{
    collections::BTreeMap,
    io::{self, PipeWriter, Write},
    process,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

use joulebook_core::Fault;

use super::{
    drain,
    program::Program,
    state::{Cost, Shared, SmiCardInfo},
};

/// How often rows are asked for.
pub const PERIOD: Duration = Duration::from_millis(100);
/// How long the first rows may take; then the cards are declared unreadable.
pub const FIRST_ROWS: Duration = Duration::from_secs(3);
/// A little longer than the thread itself waits, so that its word for the failure comes first.
const GRACE: Duration = Duration::from_millis(200);

/// The feeds of this process.
pub(crate) static FEEDS: Mutex<BTreeMap<Program, Weak<Feed>>> = Mutex::new(BTreeMap::new());

/// The running tool. When the last who holds it is gone, the tool is ended.
#[derive(Debug)]
pub struct Feed {
    program: Program,
    pub(super) shared: Arc<Shared>,
    stop: PipeWriter,
    lister: Mutex<Weak<super::lister::Lister>>,
    /// The process that reads it: a fork of that may hold a copy of this, and must not stop it.
    process: u32,
}

/// Why `nvidia-smi` cannot read the cards now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SmiError {
    /// There is no such program.
    #[error("no `{program}` was found or it cannot be run ({reason}); JOULEBOOK_SMI names another")]
    Missing {
        /// Its path or name.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// It ran and showed no card.
    #[error("`{program}` shows no card: {fault}{said}")]
    Failed {
        /// Its path or name.
        program: String,
        /// Our word for it.
        fault: Fault,
        /// What it said, where it said anything.
        said: String,
    },
}

impl SmiError {
    /// The word for it.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Missing { .. } => Fault::DriverAbsent,
            Self::Failed { fault, .. } => *fault,
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // A word, not only the closed end: a fork of this process may hold that open.
        if self.process == process::id() {
            let _ = self.stop.write_all(b".");
        }
    }
}

impl Feed {
    /// The process's feed of this program, at the usual period; started where there is none.
    pub fn of(program: &Program) -> io::Result<Arc<Self>> {
        let mut feeds = FEEDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(program).and_then(Weak::upgrade) {
            return Ok(feed);
        }
        let feed = Self::start(program, PERIOD)?;
        feeds.insert(program.clone(), Arc::downgrade(&feed));
        Ok(feed)
    }

    /// A feed of its own.
    pub fn start(program: &Program, period: Duration) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared::default());
        let (theirs, stop) = io::pipe()?;
        let state = Arc::clone(&shared);
        let asked = program.clone();
        thread::Builder::new()
            .name("joulebook-smi".to_owned())
            .spawn(move || drain::run(&state, &theirs, &asked, period))?;
        Ok(Arc::new(Self {
            program: program.clone(),
            shared,
            stop,
            lister: Mutex::default(),
            process: process::id(),
        }))
    }

    /// The cards, once each has shown itself.
    pub fn cards(&self) -> Result<Vec<SmiCardInfo>, SmiError> {
        self.shared.wait_cards(FIRST_ROWS + GRACE).map_err(|(fault, said)| {
            let program = self.program.path().display().to_string();
            let started = self.shared.cost().starts > 0;
            if fault == Fault::DriverAbsent && !started {
                return SmiError::Missing { program, reason: said };
            }
            let first = said.lines().next().unwrap_or_default();
            let said = if first.is_empty() { String::new() } else { format!(" ({first})") };
            SmiError::Failed { program, fault, said }
        })
    }

    /// What asking the tool has cost so far.
    pub fn cost(&self) -> Cost {
        self.shared.cost()
    }

    /// The one who lists the processes, started where there is none.
    pub(super) fn lister(&self) -> io::Result<Arc<super::lister::Lister>> {
        let mut kept = self.lister.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lister) = kept.upgrade() {
            return Ok(lister);
        }
        let lister = super::lister::Lister::start(&self.program, Arc::clone(&self.shared))?;
        *kept = Arc::downgrade(&lister);
        Ok(lister)
    }
}
