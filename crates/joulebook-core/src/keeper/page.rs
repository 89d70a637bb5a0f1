//! A request's page in the book of one card: what it knows beside the integer accounts.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::sync::Arc;

use super::{
    Publish,
    request::{Payer, Phases},
    tally::Tally,
};
use crate::{
    flags::Flags,
    ledger::settle::{Outline, Rho},
};

/// The page.
#[derive(Clone, Debug)]
pub struct Page {
    pub card: usize,
    pub rho: Rho,
    /// Up to when its presence has been taken into ticks, ns of work.
    pub seated_ns: u64,
    /// Settled, placed time of it, ns.
    pub covered_ns: u64,
    /// First and last transaction that charged it.
    pub entries: Option<(u64, u64)>,
    pub tally: Tally,
    /// Where the ledger has its accounts.
    pub account: u32,
    pub flags: Flags,
    pub phases: Phases,
    /// A placed tick it was in has been settled.
    pub seen: bool,
    pub floorless: bool,
    pub shared_device: bool,
    pub contended_by: Option<Arc<str>>,
}

/// What is to be said of a tick to everybody who was in it; mostly nothing.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    flags: Flags,
    placed: bool,
    floorless: bool,
    shared_device: bool,
    contended_by: Option<&'a Arc<str>>,
    nothing: bool,
}

impl<'a> Said<'a> {
    pub fn of(publish: &'a Publish, outline: &Outline) -> Self {
        let mark = |mark, holds| if holds { mark } else { Flags::NONE };
        let placed = !outline.unplaced;
        let flags = publish.flags
            | mark(Flags::GAP, !placed)
            | mark(Flags::FLOOR_SUSPECT, placed && outline.floor_suspect);
        let floorless = placed && publish.rest.is_none();
        let shared_device = placed && outline.shared_device;
        let contended_by = publish.contended_by.as_ref().filter(|_| placed);
        let nothing = flags.is_empty() && !floorless && !shared_device && contended_by.is_none();
        Self { flags, placed, floorless, shared_device, contended_by, nothing }
    }
}

/// A request's pages. Nearly always there is one, and it lies in the request: a tick of ten thousand
/// requests spends its time on fetching what lies apart.
#[derive(Debug, Default)]
pub struct Pages {
    first: Option<Page>,
    others: Vec<Page>,
}

impl Pages {
    pub fn of(payers: impl IntoIterator<Item = Payer>) -> Self {
        let mut pages = payers.into_iter().map(Page::new);
        Self { first: pages.next(), others: pages.collect() }
    }

    /// The one in a card's book.
    #[inline]
    pub fn on(&self, card: usize) -> Option<&Page> {
        match &self.first {
            Some(page) if page.card == card => Some(page),
            _ => self.others.iter().find(|page| page.card == card),
        }
    }

    #[inline]
    pub fn on_mut(&mut self, card: usize) -> Option<&mut Page> {
        match &mut self.first {
            Some(page) if page.card == card => Some(page),
            _ => self.others.iter_mut().find(|page| page.card == card),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Page> {
        self.first.iter().chain(&self.others)
    }

    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub const fn are_more_than_one(&self) -> bool {
        !self.others.is_empty()
    }
}

impl Page {
    fn new(payer: Payer) -> Self {
        Self {
            card: payer.card,
            rho: payer.rho,
            seated_ns: 0,
            covered_ns: 0,
            entries: None,
            tally: Tally::default(),
            account: u32::MAX,
            flags: Flags::NONE,
            phases: payer.phases,
            seen: false,
            floorless: false,
            shared_device: false,
            contended_by: None,
        }
    }

    /// Notes what is to be said of a tick it was in, and how long it was there.
    #[inline]
    pub fn note(&mut self, said: &Said<'_>, open_ns: u64) {
        if said.placed {
            self.covered_ns = self.covered_ns.saturating_add(open_ns);
            self.seen = true;
        }
        if !said.nothing {
            self.note_all(said);
        }
    }

    fn note_all(&mut self, said: &Said<'_>) {
        self.flags |= said.flags;
        self.floorless |= said.floorless;
        self.shared_device |= said.shared_device;
        if let Some(names) = said.contended_by
            && self.contended_by.as_ref() != Some(names)
        {
            self.contended_by = Some(Arc::clone(names));
        }
    }

    /// Notes that a transaction charged it.
    #[inline]
    pub fn entered(&mut self, number: u64) {
        let (first, last) = self.entries.unwrap_or((number, number));
        self.entries = Some((first.min(number), last.max(number)));
    }
}
