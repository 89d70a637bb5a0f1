//! Who is on a card, by the tool's list.
//!
//! As with the driver's own list an empty one is not taken for "nobody" where memory or work on the
//! card speaks against it: the same rule decides.

use std::{sync::Arc, time::Duration};

use joulebook_core::Fault;

use super::{
    feed::Feed,
    lister::Lister,
    processes::On,
    state::{Shown, SmiCardInfo},
};
use crate::{
    nvml::{PidNamespace, Seen, process_name},
    reader::{Process, Tenants, Usage},
};

/// How long the first list is waited for.
const FIRST: Duration = Duration::from_secs(1);

/// Lists the compute processes of a card.
#[derive(Debug)]
pub struct SmiTenants {
    feed: Arc<Feed>,
    lister: Option<Arc<Lister>>,
    card: SmiCardInfo,
    namespace: PidNamespace,
    hidden: bool,
}

impl SmiTenants {
    /// The tenants of this card.
    pub fn open(feed: &Arc<Feed>, card: &SmiCardInfo) -> Self {
        Self {
            feed: Arc::clone(feed),
            lister: None,
            card: card.clone(),
            namespace: PidNamespace::of_this_process(),
            hidden: false,
        }
    }

    /// The same, with the namespace given.
    #[must_use]
    pub fn in_namespace(self, namespace: PidNamespace) -> Self {
        Self { namespace, ..self }
    }
}

impl Tenants for SmiTenants {
    fn resident(&mut self) -> Result<Vec<Process>, Fault> {
        self.hidden = false;
        let (lister, wait) = match &self.lister {
            Some(lister) => (Arc::clone(lister), Duration::ZERO),
            None => {
                let lister = self.feed.lister().map_err(|_| Fault::NotReady)?;
                (Arc::clone(self.lister.insert(lister)), FIRST)
            }
        };
        let listed = lister.listed(wait)?;
        let is_here = |on: &On| match on {
            On::Uuid(uuid) => *uuid == self.card.uuid,
            On::Pci(pci) => self.card.pci.as_ref() == Some(pci),
            On::Index(index) => *index == self.card.index,
        };
        let mut here: Vec<Process> = Vec::new();
        for one in listed.into_iter().filter(|one| is_here(&one.on)) {
            match here.iter_mut().find(|known| known.pid == one.process.pid) {
                // On several instances of a split card.
                Some(known) => known.used_mib = known.used_mib.max(one.process.used_mib),
                None => here.push(one.process),
            }
        }
        for process in &mut here {
            process.name = process_name(Some(process.name.clone()), process.pid);
        }
        let newest = self.feed.shared.newest(&self.card.uuid).and_then(|(_, row, _)| row);
        if seen(newest).is_explained_by(&here, self.namespace) {
            return Ok(here);
        }
        self.hidden = true;
        Err(Fault::Permission)
    }

    fn hidden_by(&self) -> Option<&'static str> {
        self.hidden.then_some(match self.namespace {
            PidNamespace::Container => "pid_namespace",
            PidNamespace::Host => "unlisted",
        })
    }

    fn usage(&mut self) -> Usage {
        let newest = self.feed.shared.newest(&self.card.uuid).and_then(|(_, row, _)| row);
        newest.map_or_else(Usage::default, |row| Usage {
            used_mib: row.used_mib,
            total_mib: row.total_mib,
            utilization_pct: row.utilization_pct,
        })
    }
}

fn seen(row: Option<Shown>) -> Seen {
    Seen {
        used_mib: row.and_then(|row| row.used_mib),
        utilization_pct: row.and_then(|row| row.utilization_pct),
        // The tool's list has no word of who draws.
        drawing: false,
    }
}
