//! Who was there in each tick, and what each did in it.

use super::{Admitted, Seen, Tick};

/// A request in a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Present {
    /// Its place among the requests.
    pub request: usize,
    /// How much of the tick it was there, and not known to wait in the queue, ns.
    pub resident_ns: i64,
    /// Tokens of its prompt, as its prompt is spread over time.
    pub prompt_tokens: f64,
    /// Its tokens.
    pub tokens: u32,
    /// Its tokens without the one that ends a prompt.
    pub decode_tokens: u32,
}

/// Goes through the ticks in order.
pub(super) struct Sweep<'a> {
    requests: &'a [Seen],
    /// Those still to come, the next one last.
    coming: Vec<usize>,
    /// Those who are there, and how many of their emissions have passed.
    there: Vec<(usize, usize)>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(requests: &'a [Seen]) -> Self {
        let arrived = |at: &usize| requests.get(*at).map_or(0, |request| request.arrived_ns);
        let mut coming: Vec<usize> = (0..requests.len()).collect();
        coming.sort_by_key(|at| std::cmp::Reverse((arrived(at), *at)));
        Self { requests, coming, there: Vec::new() }
    }

    /// Who is there in the next tick. A token belongs to the tick that ends when it comes or after.
    pub(super) fn tick(&mut self, tick: &Tick) -> Vec<Present> {
        let requests = self.requests;
        let before_end =
            |at: &mut usize| requests.get(*at).is_some_and(|it| it.arrived_ns < tick.end_ns);
        while let Some(at) = self.coming.pop_if(before_end) {
            self.there.push((at, 0));
        }
        let mut present = Vec::with_capacity(self.there.len());
        self.there.retain_mut(|(at, passed)| {
            let Some(request) = requests.get(*at) else { return false };
            let rest = request.emissions.get(*passed..).unwrap_or_default();
            let new = rest.iter().take_while(|emission| emission.t_ns <= tick.end_ns).count();
            let tokens = rest.iter().take(new).map(|emission| emission.tokens).sum();
            // What ends a prompt is not written beside it; without a prompt it is a token like others.
            let ends_prompt = *passed == 0 && new > 0 && request.uncached_tokens > 0;
            let first = u32::from(ends_prompt);
            *passed += new;
            if request.ended_ns > tick.start_ns {
                present.push(Present {
                    request: *at,
                    resident_ns: resident_ns(request, tick),
                    prompt_tokens: prompt_tokens(request, tick),
                    tokens,
                    decode_tokens: tokens - first,
                });
            }
            request.ended_ns > tick.end_ns
        });
        present
    }
}

/// How much of a span lies in a tick, ns.
fn overlap_ns(start_ns: i64, end_ns: i64, tick: &Tick) -> i64 {
    (end_ns.min(tick.end_ns) - start_ns.max(tick.start_ns)).max(0)
}

fn resident_ns(request: &Seen, tick: &Tick) -> i64 {
    match request.admitted {
        Admitted::Unseen => overlap_ns(request.arrived_ns, request.ended_ns, tick),
        Admitted::At(t_ns) => overlap_ns(t_ns, request.ended_ns, tick),
        Admitted::Never => 0,
    }
}

/// The part of the prompt that falls into a tick, spread evenly until the first token.
fn prompt_tokens(request: &Seen, tick: &Tick) -> f64 {
    let start_ns = match request.admitted {
        Admitted::Unseen => request.arrived_ns,
        Admitted::At(t_ns) => t_ns,
        Admitted::Never => return 0.0,
    };
    let end_ns = request.prefilled_ns();
    let part = overlap_ns(start_ns, end_ns, tick) as f64 / (end_ns - start_ns).max(1) as f64;
    f64::from(request.uncached_tokens) * part
}
