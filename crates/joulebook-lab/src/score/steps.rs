//! A sharper rule for observers who see when each token comes: those of one step come together.
//!
//! As ours, but each decode token weighs by how many emit with it, not by how many emit in the
//! tick, and its weight lies in the time since its request's last token, so that a step across the
//! edge of two ticks weighs in both. Tokens that come within a millisecond are of one step: no step
//! is that short, and on one host no token is that late. Invariant: as ours, what is booked sums to
//! the ticks.

use super::{Accounts, Admitted, Rho, Rule, Seen, Tick, split::Floor};

/// Tokens that come within this are of one step, ns.
const TOGETHER_NS: i64 = 1_000_000;

/// The rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// The weight of a decode token.
    pub rho: Rho,
    /// What the card draws at rest, W.
    pub floor_w: f64,
}

/// When each step ended, the first token of it, and how many decode tokens came with it.
struct Ends(Vec<(i64, usize)>);

/// A weight that lies evenly in a span.
struct Span {
    start_ns: i64,
    end_ns: i64,
    weight: f64,
}

impl Rule for Steps {
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts {
        let ends = Ends::of(requests);
        // In order of arrival; of each the spans that have not passed yet.
        let mut order: Vec<(usize, &Seen)> = requests.iter().enumerate().collect();
        order.sort_by_key(|(_, request)| request.arrived_ns);
        let mut coming = order.into_iter().peekable();
        let mut there: Vec<(usize, &Seen, Vec<Span>)> = Vec::new();
        let mut floor = Floor::default();
        let mut accounts = Accounts { requests: vec![0.0; requests.len()], ..Accounts::default() };
        for tick in ticks {
            while let Some((at, request)) = coming.next_if(|(_, it)| it.arrived_ns < tick.end_ns) {
                there.push((at, request, self.spans(request, &ends)));
            }
            there.retain(|(_, request, _)| request.ended_ns > tick.start_ns);
            let idle = floor.idle(tick, self.floor_w, there.is_empty());
            let active = tick.joules() - idle;
            accounts.idle += idle;
            let by_weight = there.iter_mut().map(|(at, _, spans)| (*at, weight_in(spans, tick)));
            let mut weights: Vec<(usize, f64)> = by_weight.collect();
            if weights.iter().all(|(_, weight)| *weight <= 0.0) {
                let by_time =
                    there.iter().map(|(at, request, _)| (*at, resident_ns(request, tick)));
                weights = by_time.collect();
            }
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
            if sum <= 0.0 {
                accounts.unattributed += active;
            }
            for (at, weight) in weights.into_iter().filter(|_| sum > 0.0) {
                if let Some(account) = accounts.requests.get_mut(at) {
                    *account += active * weight / sum;
                }
            }
        }
        accounts
    }
}

impl Ends {
    fn of(requests: &[Seen]) -> Self {
        let decode = requests.iter().flat_map(|it| it.emissions.iter().skip(1));
        let mut times_ns: Vec<i64> = decode.map(|emission| emission.t_ns).collect();
        times_ns.sort_unstable();
        let mut ends: Vec<(i64, usize)> = Vec::new();
        for t_ns in times_ns {
            match ends.last_mut() {
                Some((first_ns, count)) if t_ns - *first_ns < TOGETHER_NS => *count += 1,
                _ => ends.push((t_ns, 1)),
            }
        }
        Self(ends)
    }

    /// How many emitted with a token of that instant.
    fn emitters(&self, t_ns: i64) -> usize {
        let after = self.0.partition_point(|(first_ns, _)| *first_ns <= t_ns);
        after.checked_sub(1).and_then(|at| self.0.get(at)).map_or(1, |(_, count)| *count)
    }
}

impl Steps {
    /// The last one first.
    fn spans(&self, request: &Seen, ends: &Ends) -> Vec<Span> {
        let mut spans = Vec::with_capacity(request.emissions.len() + 1);
        let start_ns = match request.admitted {
            Admitted::Unseen => Some(request.arrived_ns),
            Admitted::At(t_ns) => Some(t_ns),
            Admitted::Never => None,
        };
        let weight = f64::from(request.uncached_tokens);
        spans.extend(start_ns.map(|start_ns| Span {
            start_ns,
            end_ns: request.prefilled_ns(),
            weight,
        }));
        for pair in request.emissions.windows(2) {
            let [last, this] = pair else { continue };
            let among = ends.emitters(this.t_ns);
            let weight = f64::from(this.tokens) * self.rho.at(among);
            spans.push(Span { start_ns: last.t_ns, end_ns: this.t_ns, weight });
        }
        spans.reverse();
        spans
    }
}

/// What of the spans lies in a tick; those that end in it are taken away.
fn weight_in(spans: &mut Vec<Span>, tick: &Tick) -> f64 {
    let mut sum = 0.0;
    while let Some(span) = spans.last() {
        let inside_ns = span.end_ns.min(tick.end_ns) - span.start_ns.max(tick.start_ns);
        let length_ns = (span.end_ns - span.start_ns).max(1);
        sum += span.weight * inside_ns.max(0) as f64 / length_ns as f64;
        if span.end_ns > tick.end_ns {
            break;
        }
        spans.pop();
    }
    sum
}

fn resident_ns(request: &Seen, tick: &Tick) -> f64 {
    (request.ended_ns.min(tick.end_ns) - request.arrived_ns.max(tick.start_ns)).max(0) as f64
}
