//! A meter: the cards of a node, read once however many windows are open on them.
//!
//! What reads a card is decided here, in one place: a working energy counter, else the power gauge,
//! else the program `nvidia-smi`, else nothing. A meter that can read nothing still opens windows, and they say why; measuring
//! never fails the work it measures.

mod choose;
mod error;
mod state;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

pub(crate) use choose::READ;
pub use choose::{profile_of, release};
pub use error::MeterError;
use joulebook_core::{Fault, Flags, Source};
pub use state::{fits, probe_node};

use crate::{
    card::Card,
    node::{Idle, Node},
    profile::Profiles,
    reader::Backend,
    tenancy::{Rules, Verdict},
    window::Window,
};

/// Waits for the device, so that all work of a window is finished when it closes.
type SyncCall = dyn Fn() + Send + Sync;

/// Meters work on the cards of one node. Cheap to clone; all clones share the recorders.
#[derive(Clone, Debug)]
pub struct Meter {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) node: Node,
    pub(crate) cards: Vec<Arc<Card>>,
    pub(crate) rules: Rules,
    /// The idle floor of each card, W; known ones only.
    pub(crate) floors: Vec<Option<f64>>,
    /// The floor of all cards together, W.
    pub(crate) idle_w: Option<f64>,
    pub(crate) joules_per_1k_hint: f64,
    pub(crate) sync: Option<Arc<SyncCall>>,
    /// Why there are no cards.
    pub(crate) fault: Option<Fault>,
    /// Only a slice of a card was asked for, so its share cannot be measured.
    pub(crate) slice: bool,
    pub(crate) flags: Flags,
    /// Who was on each card (its number) from an instant on, judged once.
    pub(crate) verdicts: Mutex<Vec<(usize, u64, Verdict)>>,
    warnings: Vec<String>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Meter").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Meter {
    /// A meter of a node's cards, or why there is none.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use joulebook::{Meter, Node};
    ///
    /// let meter = Meter::for_node(&Node::of("0").idle_watts(70.0))?;
    /// let mut window = meter.open();
    /// // … prefill …
    /// window.mark("prefill");
    /// // … decode …
    /// window.mark("decode");
    /// let measured = window.close().settle(Duration::from_secs(1));
    /// println!("{:?} J ± {:?}", measured.joules, measured.bound_joules);
    /// # Ok::<(), joulebook::MeterError>(())
    /// ```
    pub fn for_node(node: &Node) -> Result<Self, MeterError> {
        choose::meter(node, Profiles::of_user().as_ref())
    }

    /// The same, with what is known of the cards kept in another folder.
    pub fn for_node_with(node: &Node, profiles: &Profiles) -> Result<Self, MeterError> {
        choose::meter(node, Some(profiles))
    }

    /// A meter in any case: where the cards cannot be read its windows say why.
    pub fn for_node_or_none(node: &Node) -> Self {
        Self::for_node(node).unwrap_or_else(|error| Self::refused(node, &error))
    }

    /// A meter that reads nothing because of this error, which the log is told.
    pub fn refused(node: &Node, error: &MeterError) -> Self {
        tracing::warn!("{error}");
        Self::none(node, error.fault())
    }

    /// A meter that reads nothing, for this reason.
    pub fn none(node: &Node, fault: Fault) -> Self {
        Self::assemble(node, Vec::new(), Some(fault), false, Vec::new())
    }

    /// A meter of cards that are read already, in the node's order.
    pub fn of_cards(node: &Node, cards: Vec<Arc<Card>>) -> Self {
        Self::assemble(node, cards, None, false, Vec::new())
    }

    fn assemble(
        node: &Node,
        cards: Vec<Arc<Card>>,
        fault: Option<Fault>,
        slice: bool,
        warnings: Vec<String>,
    ) -> Self {
        let now_unix_s = (crate::clock::unix_ns(crate::clock::now_ns()) / 1_000_000_000) as u64;
        let mut flags = Flags::NONE;
        let stored = |card: &Arc<Card>| card.profile().resting(card.scope()).cloned();
        let floors: Vec<Option<f64>> = match &node.idle {
            Idle::Stored => {
                let floors: Vec<_> = cards.iter().map(stored).collect();
                if floors.iter().flatten().any(|floor| floor.is_stale(now_unix_s)) {
                    flags |= Flags::BASELINE_STALE;
                }
                floors.into_iter().map(|floor| floor.map(|floor| floor.watts)).collect()
            }
            Idle::Sum(watts) if cards.len() == 1 => vec![Some(*watts)],
            Idle::Sum(_) => cards.iter().map(stored).map(|floor| floor.map(|f| f.watts)).collect(),
            Idle::Each(each) => (0..cards.len()).map(|number| each.get(number).copied()).collect(),
        };
        let idle_w = match &node.idle {
            Idle::Sum(watts) => Some(*watts),
            Idle::Each(each) if cards.is_empty() => Some(each.iter().sum()),
            Idle::Stored | Idle::Each(_) if cards.is_empty() => None,
            Idle::Stored | Idle::Each(_) => floors.iter().copied().sum(),
        };
        let inner = Inner {
            node: node.clone(),
            rules: node.rules(),
            cards,
            floors,
            idle_w,
            joules_per_1k_hint: 0.0,
            sync: None,
            fault,
            slice,
            flags,
            verdicts: Mutex::default(),
            warnings,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same meter with a hint for what cannot be measured, J per 1000 tokens.
    #[must_use]
    pub fn with_hint(self, joules_per_1k: f64) -> Self {
        self.with(|inner| inner.joules_per_1k_hint = joules_per_1k)
    }

    /// The same meter with a call that every window makes when it closes, before its clock stops:
    /// a device must have finished before its register is read. A panic in it is caught, and the
    /// window closes all the same.
    #[must_use]
    pub fn with_sync(self, sync: impl Fn() + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.sync = Some(Arc::new(sync)))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::try_unwrap(self.inner).unwrap_or_else(|shared| shared.copy());
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// Opens a window: reads the clock and the newest point of each card, and asks no driver.
    pub fn open(&self) -> Window {
        Window::open(Arc::clone(&self.inner), false)
    }

    /// Opens a window inside another one, which may be another meter's: on the cards they have in
    /// common it takes nothing from it. `None` where they have none.
    pub fn open_inside(&self, outer: &Window) -> Option<Window> {
        let cards = &self.inner.cards;
        let shared = cards.iter().any(|card| outer.cards().iter().any(|it| Arc::ptr_eq(it, card)));
        shared.then(|| Window::open(Arc::clone(&self.inner), true))
    }

    /// Waits until every card has shown a first reading; false when time is up.
    pub fn wait_ready(&self, timeout: std::time::Duration) -> bool {
        let until = std::time::Instant::now() + timeout;
        self.inner.cards.iter().all(|card| {
            let left = until.saturating_duration_since(std::time::Instant::now());
            card.signal.wait(left, || card.series.newest().is_some())
        })
    }

    /// The cards.
    pub fn cards(&self) -> &[Arc<Card>] {
        &self.inner.cards
    }

    /// The node it was made for.
    pub fn node(&self) -> &Node {
        &self.inner.node
    }

    /// The idle floor of all its cards together, W.
    pub fn idle_watts(&self) -> Option<f64> {
        self.inner.idle_w
    }

    /// What a person should know about the choice of cards.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// What its cards draw now together, W; absent when one has no fresh reading.
    pub fn power(&self) -> Option<f64> {
        let cards = &self.inner.cards;
        let powers: Option<Vec<f64>> =
            cards.iter().map(|card| card.power().map(|(power, _)| power.watts())).collect();
        powers.filter(|powers| !powers.is_empty()).map(|powers| powers.iter().sum())
    }
}

impl Inner {
    fn copy(&self) -> Self {
        Self {
            node: self.node.clone(),
            cards: self.cards.clone(),
            rules: self.rules.clone(),
            floors: self.floors.clone(),
            idle_w: self.idle_w,
            joules_per_1k_hint: self.joules_per_1k_hint,
            sync: self.sync.clone(),
            fault: self.fault,
            slice: self.slice,
            flags: self.flags,
            verdicts: Mutex::default(),
            warnings: self.warnings.clone(),
        }
    }

    /// What reads the cards, or tried to.
    pub(crate) fn backend(&self) -> Backend {
        self.cards.first().map_or(Backend::None, |card| card.device().backend)
    }

    pub(crate) fn source(&self) -> Source {
        if self.cards.is_empty() { Source::None } else { Source::Local }
    }
}
