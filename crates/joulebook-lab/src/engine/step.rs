//! One step of the engine: who is in it, what it draws, who gets tokens, who comes and goes.
//!
//! The prefill part comes first, at its own power, then the decode part at its own. Tokens come at
//! the end of the step. Whoever arrives or leaves during a step does so at his own instant, and the
//! engine heeds it from the next step on; what a client who left still drew in that step is his.

use std::collections::VecDeque;

use super::{
    Arrivals, Emission, Engine, Event, Job, Kind,
    event::Status,
    request::{Request, Seat},
};

impl Engine {
    /// Plans on to the end of the next step, or to the next arrival where nobody is there, and
    /// tells what happens. False: nobody is there and nobody will come by himself.
    pub fn step(&mut self, events: &mut Vec<Event>) -> bool {
        let from = events.len();
        self.heed_the_end();
        self.arrive(self.now_ns, events);
        if self.in_flight() == 0 {
            let Some(next_ns) = self.next_arrival_ns() else { return false };
            self.rest_until(next_ns, events);
        } else {
            self.serve(events);
            self.arrive(self.now_ns, events);
            self.leave(events);
            self.emit(events);
            if self.in_flight() == 0 {
                // Whoever never steps again has left the cards at rest.
                self.draw_power(self.now_ns, self.now_ns + 1, 0.0, events);
            }
        }
        if let Some(new) = events.get_mut(from..) {
            new.sort_by_key(|event| event.t_ns);
        }
        true
    }

    /// Lets an engine without requests rest until an instant.
    pub fn rest_until(&mut self, t_ns: i64, events: &mut Vec<Event>) {
        if t_ns > self.now_ns {
            self.draw_power(self.now_ns, t_ns, 0.0, events);
            self.now_ns = t_ns;
        }
    }

    /// Nobody comes by himself any more once the load was long enough.
    fn heed_the_end(&mut self) {
        let by_himself = self.settings.arrivals != Arrivals::None;
        let enough = self.ended >= self.settings.ended && self.now_ns >= self.settings.at_least_ns;
        if by_himself && enough {
            self.stop();
        }
    }

    /// When the next request comes, as far as that is known.
    pub(super) fn next_arrival_ns(&self) -> Option<i64> {
        let coming = self.coming.next_ns().filter(|_| self.stopped_ns.is_none());
        let due = self.due.iter().map(|(t_ns, _)| *t_ns).min();
        [coming, due].into_iter().flatten().min()
    }

    /// Lets come who is due.
    fn arrive(&mut self, until_ns: i64, events: &mut Vec<Event>) {
        while let Some(t_ns) = self.next_arrival_ns().filter(|t_ns| *t_ns <= until_ns) {
            let job = match self.due.iter().position(|(due_ns, _)| *due_ns == t_ns) {
                Some(at) => self.due.remove(at).1,
                None => {
                    self.coming.pass(&mut self.draw);
                    self.drawn_job()
                }
            };
            let seat = Seat::new(self.next_id, t_ns, job);
            self.next_id += 1;
            let Request { id, parent, prompt_tokens, cached_tokens, .. } = seat.request;
            let kind = Kind::Arrived { request: id, prompt_tokens, cached_tokens, parent };
            events.push(Event { t_ns, kind });
            self.waiting.push_back(seat);
        }
    }

    /// Computes one step: fills it, draws its power, charges its truth.
    fn serve(&mut self, events: &mut Vec<Event>) {
        let hardware = self.settings.hardware;
        let sequences = self.decoding.len();
        let mut budget = hardware.step_tokens.saturating_sub(sequences as u32);
        for seat in &mut self.prefilling {
            seat.chunk_tokens = seat.left_tokens.min(budget);
            budget -= seat.chunk_tokens;
        }
        while budget > 0 && self.prefilling.len() + sequences < hardware.sequences {
            let Some(mut seat) = self.waiting.pop_front() else { break };
            seat.request.admitted_ns = Some(self.now_ns);
            seat.chunk_tokens = seat.left_tokens.min(budget);
            budget -= seat.chunk_tokens;
            let kind = Kind::Admitted { request: seat.request.id };
            events.push(Event { t_ns: self.now_ns, kind });
            self.prefilling.push_back(seat);
        }
        let tokens: u32 = self.prefilling.iter().map(|seat| seat.chunk_tokens).sum();
        let prefill_ns = hardware.prefill_ns(tokens, sequences);
        let prefill_joules = prefill_ns as f64 / 1e9 * hardware.prefill_w;
        for seat in &mut self.prefilling {
            let part = f64::from(seat.chunk_tokens) / f64::from(tokens.max(1));
            seat.request.truth.prefill_joules += prefill_joules * part;
            seat.left_tokens -= seat.chunk_tokens;
            seat.chunk_tokens = 0;
        }
        for seat in &mut self.decoding {
            seat.request.truth.decode_joules += hardware.decode_token_joules(sequences);
        }
        let decode_ns = self.now_ns + prefill_ns;
        let end_ns = decode_ns + hardware.decode_ns(sequences);
        self.draw_power(self.now_ns, decode_ns, hardware.prefill_w, events);
        self.draw_power(decode_ns, end_ns, hardware.decode_w(sequences), events);
        self.now_ns = end_ns;
    }

    /// Each card draws its share, idle, and what others draw on it.
    fn draw_power(&mut self, start_ns: i64, end_ns: i64, watts: f64, events: &mut Vec<Event>) {
        if start_ns == end_ns {
            return;
        }
        let idle_w = self.settings.hardware.idle_w;
        let cards = self.settings.cards.iter().zip(&mut self.curves);
        for (card, (share, curve)) in cards.enumerate() {
            let foreign = || self.settings.foreign.iter().filter(move |it| it.card == card);
            let edges = foreign().flat_map(|it| [it.start_ns, it.end_ns]);
            let mut times_ns: Vec<i64> =
                edges.filter(|t_ns| (start_ns + 1..end_ns).contains(t_ns)).collect();
            times_ns.push(start_ns);
            times_ns.sort_unstable();
            for t_ns in times_ns {
                let others = foreign().filter(|it| (it.start_ns..it.end_ns).contains(&t_ns));
                let others: f64 = others.map(|it| it.watts).sum();
                let watts = idle_w + share * watts + others;
                if curve.push(t_ns, watts) {
                    events.push(Event { t_ns, kind: Kind::Power { card, watts } });
                }
            }
        }
    }

    /// Lets go whose client left during the step.
    fn leave(&mut self, events: &mut Vec<Event>) {
        let end_ns = self.now_ns;
        let left = |seat: &Seat| seat.leaves_ns().filter(|t_ns| *t_ns <= end_ns);
        let stays = |seat: &Seat| left(seat).is_none();
        let mut gone: Vec<Seat> = Vec::new();
        for queue in [&mut self.waiting, &mut self.prefilling] {
            if queue.iter().all(stays) {
                continue;
            }
            let (stay, go): (VecDeque<Seat>, _) =
                std::mem::take(queue).into_iter().partition(stays);
            *queue = stay;
            gone.extend(go);
        }
        gone.extend(self.decoding.extract_if(.., |seat| !stays(seat)));
        for seat in gone {
            let t_ns = left(&seat).unwrap_or(end_ns);
            let cancels = self.settings.cancels;
            if let Some(cancels) = cancels.filter(|it| self.draw.share() <= it.retries) {
                let parent = Some(seat.request.id);
                let again_ns = t_ns + (cancels.pause_s * 1e9) as i64;
                let job = Job { parent, patience_ns: None, ..seat.job };
                self.due.push((again_ns.max(end_ns), job));
            }
            self.end(seat, t_ns, Status::Cancelled, events);
        }
    }

    /// Gives out the tokens of the step.
    fn emit(&mut self, events: &mut Vec<Event>) {
        let mut seats = std::mem::take(&mut self.decoding);
        while self.prefilling.front().is_some_and(|seat| seat.left_tokens == 0) {
            seats.extend(self.prefilling.pop_front());
        }
        for mut seat in seats {
            let t_ns = self.now_ns;
            seat.emitted_tokens += 1;
            seat.request.emissions.push(Emission { t_ns, tokens: 1 });
            let kind = Kind::Tokens { request: seat.request.id, count: 1 };
            events.push(Event { t_ns, kind });
            if seat.emitted_tokens >= seat.job.answer_tokens {
                self.end(seat, t_ns, Status::Finished, events);
            } else {
                self.decoding.push(seat);
            }
        }
    }

    fn end(&mut self, seat: Seat, t_ns: i64, status: Status, events: &mut Vec<Event>) {
        let mut request = seat.request;
        request.ended_ns = Some(t_ns);
        request.status = status;
        events.push(Event { t_ns, kind: Kind::Ended { request: request.id, status } });
        self.done.push(request);
        self.ended += 1;
        if matches!(self.settings.arrivals, Arrivals::Closed(_)) && self.stopped_ns.is_none() {
            let job = self.drawn_job();
            self.due.push((t_ns, job));
        }
    }
}
