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
pub use choose::{profile_of, release, watch};
pub use error::MeterError;
use joulebook_core::{Fault, Flags, Source};
pub use state::{fits, probe_node};

use crate::{
    card::Card,
    node::{Idle, Node},
    profile::Profiles,
    reader::Backend,
    recorder::Keep,
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
    /// How the tenants of each card are judged.
    pub(crate) rules: Vec<Rules>,
    /// Each node's floors, in the order of the cards.
    groups: Vec<Group>,
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

/// The idle floors of one node's cards.
#[derive(Clone, Debug)]
struct Group {
    /// The node's name.
    name: String,
    /// Declared for all of them together, W.
    sum_w: Option<f64>,
    /// Of each card; what is not declared may become known later.
    each_w: Vec<Option<f64>>,
}

impl Group {
    fn of(node: &Node, cards: &[Arc<Card>]) -> Self {
        let unknown = || vec![None; cards.len()];
        let (sum_w, each_w) = match &node.idle {
            Idle::Stored => (None, unknown()),
            Idle::Sum(watts) if cards.len() == 1 => (Some(*watts), vec![Some(*watts)]),
            Idle::Sum(watts) => (Some(*watts), unknown()),
            Idle::Each(each) if cards.is_empty() => (Some(each.iter().sum()), Vec::new()),
            Idle::Each(each) => {
                let declared = (0..cards.len()).map(|number| each.get(number).copied());
                (None, declared.collect())
            }
        };
        Self { name: node.name.clone(), sum_w, each_w }
    }
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
        choose::meter(node, Profiles::of_user().as_ref(), Keep::Day)
    }

    /// The same, with what is known of the cards kept in another folder.
    pub fn for_node_with(node: &Node, profiles: &Profiles) -> Result<Self, MeterError> {
        choose::meter(node, Some(profiles), Keep::Day)
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
        let group = Group::of(node, &cards);
        let rules = cards.iter().map(|card| node.rules(card.elsewhere.is_some())).collect();
        let now_unix_s = (crate::clock::unix_ns(crate::clock::now_ns()) / 1_000_000_000) as u64;
        let is_stale = |card: &Arc<Card>| {
            card.profile().resting(card.scope()).is_some_and(|floor| floor.is_stale(now_unix_s))
        };
        let stale = node.idle == Idle::Stored && cards.iter().any(is_stale);
        let inner = Inner {
            node: node.clone(),
            rules,
            cards,
            groups: vec![group],
            joules_per_1k_hint: 0.0,
            sync: None,
            fault,
            slice,
            flags: if stale { Flags::BASELINE_STALE } else { Flags::NONE },
            verdicts: Mutex::default(),
            warnings,
        };
        Self { inner: Arc::new(inner) }
    }

    /// One meter of the cards of several meters, in their order: each card keeps the floor and the
    /// rules of its own node. Windows on it add them all up; `sync` and hint are the first one's.
    ///
    /// Where one of them can read nothing, so can the sum, and its windows say why.
    pub fn joined(meters: &[Self]) -> Self {
        let mut joined = match meters.first() {
            Some(first) => first.inner.copy(),
            None => return Self::none(&Node::default(), Fault::Absent),
        };
        for meter in meters.iter().skip(1) {
            let inner = &meter.inner;
            joined.cards.extend(inner.cards.iter().cloned());
            joined.rules.extend(inner.rules.iter().cloned());
            joined.groups.extend(inner.groups.iter().cloned());
            joined.fault = joined.fault.or(inner.fault);
            joined.slice |= inner.slice;
            joined.flags |= inner.flags;
            joined.warnings.extend(inner.warnings.iter().cloned());
        }
        if joined.fault.is_some() {
            (joined.cards, joined.rules) = (Vec::new(), Vec::new());
        }
        Self { inner: Arc::new(joined) }
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
        self.inner.idle_w()
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
            groups: self.groups.clone(),
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
        if self.cards.is_empty() {
            Source::None
        } else if self.cards.iter().any(|card| card.elsewhere.is_some()) {
            Source::Remote
        } else {
            Source::Local
        }
    }

    /// The idle floor of a card by its number, W: declared, else what is known of it by now.
    pub(crate) fn floor_w(&self, number: usize) -> Option<f64> {
        self.declared_w(number).or_else(|| self.cards.get(number)?.resting_watts())
    }

    /// The floor that was declared of a card by its number, W.
    pub(crate) fn declared_w(&self, number: usize) -> Option<f64> {
        self.groups.iter().flat_map(|group| &group.each_w).nth(number).copied().flatten()
    }

    /// The floors of all cards together were declared, so that nothing learnt changes them.
    pub(crate) fn is_declared(&self) -> bool {
        self.groups.iter().all(|group| group.sum_w.is_some())
    }

    /// What books and receipts call a card by its number: its UUID, behind its node's name where
    /// that has one.
    pub(crate) fn account(&self, number: usize) -> String {
        let groups = self.groups.iter();
        let names = groups.flat_map(|group| group.each_w.iter().map(|_| group.name.as_str()));
        let node = names.into_iter().nth(number).unwrap_or_default();
        let device = self.cards.get(number).map(|card| card.device());
        let card = match device {
            Some(device) if !device.uuid.is_empty() => device.uuid.clone(),
            Some(device) => format!("card {}", device.index),
            None => String::new(),
        };
        if node.is_empty() { card } else { format!("{node}/{card}") }
    }

    /// The floor of all cards together, W.
    pub(crate) fn idle_w(&self) -> Option<f64> {
        let mut number = 0;
        let mut all_w = None;
        for group in &self.groups {
            let cards = number..number + group.each_w.len();
            number = cards.end;
            let each = || cards.map(|number| self.floor_w(number)).sum::<Option<f64>>();
            let known = group.sum_w.or_else(|| each().filter(|_| !group.each_w.is_empty()))?;
            all_w = Some(all_w.unwrap_or(0.0) + known);
        }
        all_w
    }
}
