//! A slow oracle: with everything known, what each request should have been charged of each tick.
//! The books learn it bit by bit, late and in disorder, and must come out there.

use std::collections::BTreeMap;

use super::*;

/// What happens next, and how long after the last thing.
#[derive(Clone, Debug)]
pub struct Happening {
    after_ms: u64,
    late_ms: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Open { cards: u8, queued: bool, bytes: u64, calibrated: bool },
    Prompt { who: u8, tokens: u64, cached: u64 },
    Admitted { who: u8 },
    Tokens { who: u8, more: u64 },
    Close { who: u8, completion: Option<u64>, prompt: Option<u64>, status: u8 },
    Abandon { who: u8 },
    Publish { card: u8, counted_mj: u64, others: u8, floor_w: Option<u64>, unplaced: bool },
}

pub fn happening() -> impl Strategy<Value = Happening> {
    use proptest::option::of;
    let what = prop_oneof![
        3 => (0u8..4, any::<bool>(), 0u64..9000, any::<bool>()).prop_map(
            |(cards, queued, bytes, calibrated)| What::Open { cards, queued, bytes, calibrated }
        ),
        2 => (any::<u8>(), 0u64..5000, 0u64..100)
            .prop_map(|(who, tokens, cached)| What::Prompt { who, tokens, cached }),
        3 => any::<u8>().prop_map(|who| What::Admitted { who }),
        8 => (any::<u8>(), 0u64..30).prop_map(|(who, more)| What::Tokens { who, more }),
        2 => (any::<u8>(), of(0u64..200), of(0u64..3000), 0u8..3).prop_map(
            |(who, completion, prompt, status)| What::Close { who, completion, prompt, status }
        ),
        1 => any::<u8>().prop_map(|who| What::Abandon { who }),
        8 => (0u8..2, 0u64..60_000, 0u8..12, of(0u64..200), proptest::bool::weighted(0.03))
            .prop_map(|(card, counted_mj, others, floor_w, unplaced)| What::Publish {
                card, counted_mj, others, floor_w, unplaced
            }),
    ];
    (0u64..60, prop_oneof![4 => Just(0u64), 1 => 0u64..400], what)
        .prop_map(|(after_ms, late_ms, what)| Happening { after_ms, late_ms, what })
}

/// All that ever became known of a request.
#[derive(Clone, Debug, Default)]
struct Known {
    opened: u64,
    cards: Vec<usize>,
    rho: (f64, f64),
    queued: bool,
    bytes: u64,
    prompt: Option<u64>,
    cached: u64,
    admitted: Option<u64>,
    tokens: Vec<(u64, u64)>,
    first_free: bool,
    ended: Option<u64>,
    completion: Option<u64>,
    last: u64,
}

/// Ticks of a card by their ends: begin, counted.
type Ticks = BTreeMap<u64, u64>;

pub struct Played {
    pub keeper: Keeper,
    pub lines: Vec<(usize, Transaction)>,
    pub receipts: Vec<Receipt>,
    known: BTreeMap<u64, Known>,
    ticks: [Ticks; 2],
    pub counted: [i128; 2],
    pub now: u64,
    /// Requests may be abandoned; the books then close them when the oracle does not know.
    abandons: bool,
}

impl Known {
    fn uncached(&self) -> f64 {
        match self.prompt {
            Some(prompt) => prompt.saturating_sub(self.cached) as f64,
            None => (self.bytes / 4) as f64,
        }
    }

    /// Prefill weight, decode weight in tokens, and time open and not queued.
    fn weigh(&self, from: u64, to: u64) -> (f64, f64, f64) {
        let overlap = |a: u64, b: u64| to.min(b).saturating_sub(from.max(a)) as f64;
        let portion = |amount: f64, a: u64, b: u64| match b.saturating_sub(a) {
            0 => {
                if b > from && b <= to {
                    amount
                } else {
                    0.0
                }
            }
            length => amount * overlap(a, b) / length as f64,
        };
        let ended = self.ended.unwrap();
        let first = self.tokens.first().map(|(at, _)| *at);
        let Some(start) =
            self.admitted.or_else(|| (!self.queued || first.is_some()).then_some(self.opened))
        else {
            return (0.0, 0.0, 0.0);
        };
        let free = u64::from(self.first_free);
        let counted: u64 = self.tokens.iter().map(|(_, tokens)| tokens).sum();
        let mut read = first.unwrap_or(ended).max(start);
        let uncached = self.uncached();
        let decode = match self.completion {
            Some(completion)
                if counted.saturating_sub(free) == 0
                    && completion.saturating_sub(u64::from(uncached > 0.0)) > 0 =>
            {
                let spread = completion.saturating_sub(u64::from(uncached > 0.0)) as f64;
                let reading =
                    (ended.saturating_sub(start)) as f64 * uncached / (uncached + 8.0 * spread);
                read = read.min(start + reading as u64);
                portion(spread, read, ended)
            }
            _ => {
                let mut left_free = free;
                let mut here = 0.0;
                for (at, tokens) in &self.tokens {
                    let weighing = tokens - left_free.min(*tokens);
                    left_free -= left_free.min(*tokens);
                    if *at > from && *at <= to {
                        here += weighing as f64;
                    }
                }
                let counted = counted.saturating_sub(free) as f64;
                match self.completion {
                    Some(completion) if counted > 0.0 => {
                        here * completion.saturating_sub(free) as f64 / counted
                    }
                    _ => here,
                }
            }
        };
        (portion(uncached, start, read), decode, overlap(start.max(self.opened), ended))
    }
}

/// Plays it, then closes everything and lets all of it settle.
pub fn play(settings: Settings, happenings: &[Happening], abandons: bool) -> Played {
    let cards = [facts("a", 0), facts("b", 30)];
    let keeper = Keeper::new(Settings { journal: true, ..settings }, cards);
    let mut played = Played {
        keeper,
        lines: Vec::new(),
        receipts: Vec::new(),
        known: BTreeMap::new(),
        ticks: [Ticks::new(), Ticks::new()],
        counted: [0; 2],
        now: START,
        abandons,
    };
    let mut edges = [START; 2];
    for (number, happening) in happenings.iter().enumerate() {
        played.now += happening.after_ms * MS + 1;
        played.happens(number as u64, happening, &mut edges);
        played.step();
    }
    let open: Vec<u64> =
        played.known.iter().filter(|(_, it)| it.ended.is_none()).map(|(id, _)| *id).collect();
    for id in open {
        played.now += 1;
        played.keeper.close(id, played.now, Status::Cancelled, Usage::default());
        played.known.get_mut(&id).unwrap().ended = Some(played.now);
    }
    for (card, edge) in edges.iter_mut().enumerate() {
        for _ in 0..2 {
            played.now += 100 * MS;
            played.publish(card, *edge, 1_000_000, Others::Nobody, Some(0), false);
            *edge = played.now;
        }
    }
    played.now += 20 * MS;
    played.step();
    played
}

impl Played {
    fn step(&mut self) {
        self.keeper.advance(self.now);
        self.keeper.self_check().unwrap();
        self.lines.extend(self.keeper.journal());
        self.receipts.extend(self.keeper.finished());
        for (card, counted) in self.counted.iter().enumerate() {
            assert_eq!(self.keeper.standing(card).unwrap().ledger.counted_uj(), *counted);
        }
        self.the_range_holds_the_charge();
    }

    /// What a receipt sums up beside the books is the same as theirs, by the rule that is charged:
    /// also where it was worked out again because news came.
    fn the_range_holds_the_charge(&self) {
        for (_, request) in self.keeper.requests.iter() {
            for page in request.pages.iter() {
                let book = &self.keeper.books[page.card];
                let (prefill, decode) = book.ledger.charged(RequestId(request.id));
                let charged = (prefill + decode) as f64;
                let [_, _, weighted, ..] = page.tally.rules_uj();
                // Of each tick and correction a whole number, and single precision.
                let slack = 1000.0 + charged * 1e-5;
                assert!((weighted - charged).abs() < slack, "{}: {weighted} {charged}", request.id);
            }
        }
    }

    fn publish(
        &mut self,
        card: usize,
        begin: u64,
        uj: u64,
        others: Others,
        floor_w: Option<u64>,
        unplaced: bool,
    ) {
        let mut publish = publish(begin, self.now, uj);
        publish.others = others;
        publish.tick.unplaced = unplaced;
        publish.rest = floor_w.map(|watts| Rest {
            power_uw: watts * 1_000_000,
            off_uw: None,
            model_loaded: true,
        });
        self.keeper.publish(card, publish);
        self.ticks[card].insert(self.now, begin);
        self.counted[card] += i128::from(uj);
    }

    fn happens(&mut self, number: u64, happening: &Happening, edges: &mut [u64; 2]) {
        let late = self.now.saturating_sub(happening.late_ms * MS);
        let open: Vec<u64> =
            self.known.iter().filter(|(_, it)| it.ended.is_none()).map(|(id, _)| *id).collect();
        let pick = |who: u8| (!open.is_empty()).then(|| open[usize::from(who) % open.len()]);
        match &happening.what {
            What::Open { cards, queued, bytes, calibrated } => {
                let cards: &[usize] = [&[0][..], &[1], &[0, 1], &[0, 1]][usize::from(*cards)];
                let mut opening = opening(number, cards);
                (opening.queued, opening.prompt_bytes) = (*queued, *bytes);
                let rho = if *calibrated { (2970, 126_976) } else { (8192, 0) };
                for payer in &mut opening.payers {
                    payer.rho = Rho { a: rho.0, b: rho.1 };
                }
                if self.keeper.open(late, opening).is_ok() {
                    let rho = (rho.0 as f64 / 1024.0, rho.1 as f64 / 1024.0);
                    let known = Known {
                        opened: late,
                        cards: cards.to_vec(),
                        rho,
                        queued: *queued,
                        bytes: *bytes,
                        last: late,
                        ..Known::default()
                    };
                    self.known.insert(number, known);
                }
            }
            What::Prompt { who, tokens, cached } => {
                if let Some(id) = pick(*who) {
                    self.keeper.prompt(id, *tokens, Some(*cached));
                    let known = self.known.get_mut(&id).unwrap();
                    (known.prompt, known.cached) = (Some(*tokens), *cached);
                }
            }
            What::Admitted { who } => {
                if let Some(id) = pick(*who) {
                    let known = self.known.get_mut(&id).unwrap();
                    if known.admitted.is_none() && known.tokens.is_empty() {
                        known.last = known.last.max(late);
                        known.admitted = Some(known.last);
                        self.keeper.admitted(id, known.last);
                    }
                }
            }
            What::Tokens { who, more } => {
                if let Some(id) = pick(*who) {
                    let known = self.known.get_mut(&id).unwrap();
                    if *more > 0 {
                        known.last = known.last.max(late);
                        if known.tokens.is_empty() {
                            known.first_free = known.uncached() > 0.0;
                        }
                        known.tokens.push((known.last, *more));
                    }
                    let total = known.tokens.iter().map(|(_, tokens)| tokens).sum();
                    self.keeper.tokens(id, known.last, total);
                }
            }
            What::Close { who, completion, prompt, status } => {
                if let Some(id) = pick(*who) {
                    let known = self.known.get_mut(&id).unwrap();
                    known.last = known.last.max(late);
                    known.ended = Some(known.last);
                    known.completion = *completion;
                    known.prompt = prompt.or(known.prompt);
                    let status =
                        [Status::Done, Status::Cancelled, Status::Failed][usize::from(*status)];
                    let usage =
                        Usage { completion: *completion, prompt: *prompt, ..Usage::default() };
                    self.keeper.close(id, known.last, status, usage);
                }
            }
            What::Abandon { who } => {
                if let Some(id) = pick(*who).filter(|_| self.abandons) {
                    self.keeper.abandon(id, late, Usage::default());
                }
            }
            What::Publish { card, counted_mj, others, floor_w, unplaced } => {
                let card = usize::from(*card);
                let others = match others {
                    0 => Others::Unresolved,
                    1 => Others::Lenient,
                    2 => Others::Shares { own: 3, theirs: vec![(crate::ledger::TenantId(7), 2)] },
                    _ => Others::Nobody,
                };
                self.publish(card, edges[card], counted_mj * 1000, others, *floor_w, *unplaced);
                edges[card] = self.now;
            }
        }
    }

    /// The journal, read by somebody who knows nothing else.
    pub fn audit(&self) {
        for card in 0..2 {
            let mut auditor = Auditor::new();
            for (_, line) in self.lines.iter().filter(|(of, _)| *of == card) {
                auditor.next(line).unwrap();
            }
            let standing = self.keeper.standing(card).unwrap();
            assert_eq!(auditor.ledger().counted_uj(), self.counted[card]);
            assert_eq!(auditor.ledger().imbalance_uj(), 0);
            assert_eq!(auditor.ledger().requests_uj(), standing.ledger.requests_uj());
            for account in
                [Account::Suspense, Account::IdleResident, Account::Gap, Account::Unattributed]
            {
                assert_eq!(auditor.ledger().balance(account), standing.ledger.balance(account));
            }
        }
    }

    /// Each request's part of each tick, against the oracle.
    pub fn against_the_oracle(&self) {
        for (card, lag) in [0, 30 * MS].into_iter().enumerate() {
            let mut given: BTreeMap<u64, BTreeMap<u64, i64>> = BTreeMap::new();
            let lines =
                self.lines.iter().filter(|(of, line)| *of == card && line.reason != Reason::Post);
            for (_, line) in lines {
                for entry in &line.entries {
                    if let Account::Request(RequestId(id), _) = entry.account {
                        *given.entry(line.tick_ns).or_default().entry(id).or_default() +=
                            entry.amount_uj;
                    }
                }
            }
            for (end, given) in given {
                let (from, to) = (self.ticks[card][&end] - lag, end - lag);
                let present = |it: &&Known| {
                    let ended = it.ended.unwrap();
                    it.cards.contains(&card)
                        && it.opened < to
                        && (ended > from || (ended == it.opened && ended == from))
                };
                let all: Vec<(&u64, &Known)> =
                    self.known.iter().filter(|(_, it)| present(it)).collect();
                let raw: Vec<_> = all.iter().map(|(_, it)| it.weigh(from, to)).collect();
                let emitters =
                    raw.iter().filter(|(_, decode, _)| *decode > 1.0 / 1024.0).count() as f64;
                let weights: Vec<f64> = all
                    .iter()
                    .zip(&raw)
                    .map(|((_, it), (prefill, decode, _))| {
                        prefill + decode * (it.rho.0 + it.rho.1 / emitters.max(1.0))
                    })
                    .collect();
                let mut whole: f64 = weights.iter().sum();
                let mut weights = weights;
                if whole < 0.01 {
                    // Too little to tell the books' whole numbers from the oracle's.
                    if whole > 0.0 {
                        continue;
                    }
                    weights = raw.iter().map(|(_, _, resident)| *resident).collect();
                    whole = weights.iter().sum();
                }
                if whole == 0.0 {
                    continue;
                }
                let amount: i64 = given.values().sum();
                for ((id, _), weight) in all.iter().zip(&weights) {
                    let exact = amount as f64 * weight / whole;
                    let got = given.get(*id).copied().unwrap_or(0) as f64;
                    // A weight is cut to 1/1024 token.
                    let slack = 2.0 + amount as f64 * 130.0 * (all.len() as f64) / 1024.0 / whole;
                    assert!(
                        (got - exact).abs() <= slack,
                        "card {card}, tick {end}, {id}: {got}, not {exact} ± {slack}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn the_books_come_out_where_somebody_who_knew_all_would(
        happenings in proptest::collection::vec(happening(), 1..120),
    ) {
        let settings = Settings { wait_ns: 300 * MS, ..Settings::default() };
        let played = play(settings, &happenings, false);
        played.audit();
        played.against_the_oracle();
        prop_assert_eq!(played.receipts.len(), played.known.len());
        for card in 0..2 {
            let standing = played.keeper.standing(card).unwrap();
            prop_assert_eq!(standing.ledger.balance(Account::Suspense), 0);
        }
    }

    /// However little may be kept, and whatever is cut off.
    #[test]
    fn every_microjoule_is_charged_once_though_hardly_anything_may_be_kept(
        happenings in proptest::collection::vec(happening(), 1..120),
        seats in 0usize..30,
        ended in 0usize..4,
        give_up_ms in 0u64..300,
        correct_ms in 0u64..400,
    ) {
        let settings = Settings {
            wait_ns: 200 * MS,
            correct_ns: correct_ms * MS,
            give_up_ns: give_up_ms * MS,
            abandon_after_ns: give_up_ms * MS,
            most_open: 5,
            most_seats: seats,
            most_ended: ended,
            ..Settings::default()
        };
        play(settings, &happenings, true).audit();
    }
}
