//! A run that drives a target itself: the checks, the baseline, rung after rung, the record.

use std::{
    collections::HashSet,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use joulebook::{
    books::{JournalFile, Rhos},
    clock::now_ns,
};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::watch;

use super::{
    Shared,
    outcome::{self, blank},
    plans::Wanted,
    progress::Progress,
};
use crate::{
    bench::{
        load::{Address, Drive, Driven, Plan, Refusal, Sent, Target, tally},
        meter::{Closed, Energy, Opened},
        record::{self, Outcome, Record, Repeat, Rung},
        report,
    },
    context::{Context, Usage},
    signals::Signals,
    words::say_warning,
};

/// A card that has just answered something is let come to rest, and what averages its power to
/// forget it.
const REST: Duration = Duration::from_millis(1500);
/// How often whoever watches is told that the baseline goes on.
const LOOK: Duration = Duration::from_millis(100);
/// How long receipts may take to settle after a repeat.
const RECEIPTS: Duration = Duration::from_secs(4);

/// A run.
struct Run<'a> {
    energy: Energy,
    target: Arc<Target>,
    record: Record,
    start_ns: u64,
    stop: watch::Receiver<bool>,
    progress: &'a Progress,
}

/// Runs it.
pub fn run(arguments: &Wanted, shared: &Shared, context: &Context) -> anyhow::Result<ExitCode> {
    let plans = arguments.plans()?;
    let url = shared.url.as_deref().ok_or_else(|| {
        Usage("name the server with --url, or a load generator after --".to_owned())
    })?;
    let address = Address::parse(url).map_err(Usage)?;
    let rho = match arguments.rho() {
        Some(path) => Rhos::load(path).map_err(|error| Usage(error.to_string()))?,
        None => Rhos::default(),
    };
    let folder = outcome::folder(shared)?;
    // Before any thread is started, so that all of them have it.
    let signals = Signals::block().context("signals cannot be read")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads for the load")?;
    let stop = stop(signals)?;

    let refused = |error: Refusal| Usage(error.to_string());
    let mut target = Target::new(address, arguments.headers()?).map_err(refused)?;
    target.chat = arguments.chats();
    target.stream = arguments.streams();
    target.ignore_eos = arguments.ignores_eos();
    target.patience = arguments.timeout();
    let progress = Progress::new(shared.json);
    progress.begin("target".to_owned(), "finding out how it counts, and letting it rest");
    let mut warnings = Vec::new();
    let counted = runtime.block_on(async {
        target.choose(arguments.model()).await?;
        target.measure_counting(arguments.repeats().next().map_or(1, |(_, seed)| seed)).await
    });
    let at_work = Instant::now();
    if !counted.map_err(refused)? {
        warnings.push(
            "answers do not say how many tokens a prompt had: lengths of prompts are guesses, and \
             tokens of answers are counted by their pieces"
                .to_owned(),
        );
    }
    let is_local = target.address.is_local();
    let asked = shared.asked(Some(target.address.port()));
    let energy = match asked.place(is_local, &target.address.url()) {
        Ok(_) => Energy::open_cards(asked, context.profiles.as_ref())?,
        Err(why) => Energy::none(why),
    };
    if let Some(over) = energy.averages_over().filter(|over| *over > arguments.warm_up()) {
        warnings.push(format!(
            "the power gauge averages over {over:?}, longer than the warm-up: its windows begin with \
             what the cards drew before (--warm-up {}s)",
            over.as_secs() + 1
        ));
    }
    if let Some(path) = arguments.journal() {
        let file = JournalFile::append(path).map_err(|error| {
            Usage(format!("the journal cannot be kept in {}: {error}", path.display()))
        })?;
        energy.accounts().keep_in(file);
    }
    std::thread::sleep(REST.saturating_sub(at_work.elapsed()));

    let start_ns = now_ns();
    let about = record::Target {
        url: Some(target.address.url()),
        model: Some(target.model.clone()),
        server: target.server.clone(),
        is_local,
        ..record::Target::default()
    };
    let settings = arguments.settings(&plans, shared.baseline);
    let record = blank(about, settings, energy.source().clone(), start_ns);
    let mut run = Run {
        energy,
        target: Arc::new(target),
        record: Record { warnings, ..record },
        start_ns,
        stop,
        progress: &progress,
    };
    runtime.block_on(run.all(&plans, arguments, shared.baseline, rho));
    let mut record = run.finish();
    drop(progress);
    shared.tell(&mut record, folder.as_deref())
}

/// Becomes true with the first signal; the second ends the program at once.
fn stop(signals: Signals) -> anyhow::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let wait = move || {
        loop {
            let mut watched = [PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN)];
            // Interrupted or not, the loop looks again.
            let _ = poll(&mut watched, None);
            while let Some(caught) = signals.next() {
                if sender.send_replace(true) {
                    std::process::exit(128 + caught.number);
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("joulebook-signals".to_owned());
    thread.spawn(wait).context("no thread for signals")?;
    Ok(receiver)
}

impl Run<'_> {
    /// The baseline, then all rungs, as often as asked for; ends early when it is told to.
    async fn all(&mut self, plans: &[Plan], arguments: &Wanted, baseline: Duration, rho: Rhos) {
        if self.energy.is_read() {
            self.baseline(baseline, rho).await;
        } else if let Some(why) = &self.energy.source().why_none {
            self.progress.say(&format!("no energy: {why}"));
        }
        self.record.rungs = plans.iter().map(|plan| Rung::new(plan.kind)).collect();
        for repeat in arguments.repeats() {
            for (at, plan) in plans.iter().enumerate() {
                if *self.stop.borrow() {
                    self.record.incomplete = Some("interrupted".to_owned());
                }
                if self.record.incomplete.is_some() {
                    return;
                }
                let repeat = self.repeat(plan, repeat, arguments.repeats().count()).await;
                self.progress.say(&report::window_line(&self.record, plan.kind, &repeat));
                self.record.incomplete.clone_from(&repeat.incomplete);
                if let Some(rung) = self.record.rungs.get_mut(at) {
                    rung.repeats.push(repeat);
                }
            }
        }
    }

    async fn baseline(&mut self, length: Duration, rho: Rhos) {
        self.progress.begin("idle".to_owned(), "nothing in flight");
        let opened = self.energy.open();
        let begun = Instant::now();
        while begun.elapsed() < length && !*self.stop.borrow() {
            self.progress.share(begun.elapsed().as_secs_f64() / length.as_secs_f64());
            tokio::time::sleep(LOOK.min(length.saturating_sub(begun.elapsed()))).await;
        }
        let figures = self.energy.settle(opened.close()).await;
        self.record.baseline = self.energy.keep_baseline(&figures, rho);
        let line = match &self.record.baseline {
            Some(baseline) => idle_line(baseline),
            None => "idle: no reading".to_owned(),
        };
        self.progress.say(&line);
    }

    async fn repeat(&mut self, plan: &Plan, repeat: (u32, u64), of: usize) -> Repeat {
        self.progress.begin(format!("{} {}/{of}", plan.kind, repeat.0), "");
        let (mut opened, mut closed): (Option<Opened>, Option<Closed>) = (None, None);
        let energy = &self.energy;
        let mut edge = || match opened.take() {
            None => opened = Some(energy.open()),
            Some(open) => closed = Some(open.close()),
        };
        let progress = self.progress;
        let drive = Drive {
            target: &self.target,
            books: &self.energy.books(),
            stop: self.stop.clone(),
            edge: &mut edge,
            watch: &|sight| progress.see(sight),
        };
        let driven = drive.repeat(plan, repeat).await;
        self.close(repeat, driven, closed).await
    }

    /// What a repeat came to.
    async fn close(
        &self,
        (number, seed): (u32, u64),
        driven: Driven,
        closed: Option<Closed>,
    ) -> Repeat {
        let seed = Some(seed);
        let mut repeat = Repeat { number, seed, incomplete: driven.broken, ..Repeat::default() };
        let span = closed.as_ref().map(|closed| closed.span);
        let (requests, receipts, done) = receipts(driven.sent).await;
        repeat.requests = requests;
        let Some((closed, span)) = closed.zip(span) else {
            repeat.incomplete.get_or_insert_with(|| "it ended before its window".to_owned());
            self.relate(&mut repeat, receipts);
            return repeat;
        };
        repeat.opened_ns = span.open_ns.saturating_sub(self.start_ns);
        repeat.window_ns = span.close_ns - span.open_ns;
        let mut requests = std::mem::take(&mut repeat.requests);
        tally(&mut repeat, &mut requests, span.open_ns, span.close_ns);
        repeat.requests = requests;
        let figures = self.energy.settle(closed).await;
        repeat.gauge = figures.gauge();
        repeat.counter = figures.counter();
        repeat.books = self.energy.accounts().window(span.open_ns, span.close_ns, &done);
        self.energy.accounts().forget(span.close_ns);
        if let Some(books) = &mut repeat.books {
            books.vouch(repeat.requests.iter().zip(&receipts), span.open_ns, span.close_ns);
        }
        self.relate(&mut repeat, receipts);
        repeat
    }

    /// Requests as the record has them: instants from the run's beginning, receipts beside them.
    fn relate(&self, repeat: &mut Repeat, receipts: Vec<record::ReceiptFigures>) {
        let kept = self.energy.keeps_books();
        for (request, receipt) in repeat.requests.iter_mut().zip(receipts) {
            request.due_ns = request.due_ns.saturating_sub(self.start_ns);
            request.sent_ns = request.sent_ns.saturating_sub(self.start_ns);
            request.receipt = kept.then_some(receipt);
        }
    }

    fn finish(mut self) -> Record {
        // Of a rung that was never begun there is nothing to say.
        self.record.rungs.retain(|rung| !rung.repeats.is_empty());
        self.record.sampler = self.energy.sampler();
        self.record.seconds = (now_ns() - self.start_ns) as f64 / 1e9;
        self.record.warnings.append(&mut self.energy.warnings);
        if let Some(balance) = self.energy.books().trial_balance() {
            if !balance.balances() {
                say_warning("the books do not balance; this is a fault of the program itself");
            }
            if balance.journal_failed > 0 {
                self.record.warnings.push(
                    "the journal (--journal) could not be written, and ends before the run does; no \
                     figure here rests on it (joulebook audit says how far it goes)"
                        .to_owned(),
                );
            }
        }
        self.record
    }
}

/// The requests, their receipts once they have settled or as they stand, and the numbers in the
/// books of those that ended well.
async fn receipts(
    sent: Vec<Sent>,
) -> (Vec<record::Request>, Vec<record::ReceiptFigures>, HashSet<u64>) {
    let until = tokio::time::Instant::now() + RECEIPTS;
    let (mut requests, mut figures, mut done) = (Vec::new(), Vec::new(), HashSet::new());
    for Sent { request, mut receipt } in sent {
        if request.outcome == Outcome::Done {
            done.extend(receipt.id());
        }
        let settled = tokio::time::timeout_at(until, &mut receipt).await;
        figures.push((&settled.unwrap_or_else(|_| receipt.now())).into());
        requests.push(request);
    }
    (requests, figures, done)
}

fn idle_line(baseline: &record::Baseline) -> String {
    let mut parts = Vec::new();
    if let (Some(gauge), Some(watts)) = (baseline.gauge, baseline.gauge_watts()) {
        parts.push(format!(
            "{watts:.1} W by the gauge ({} readings in {:.1} s)",
            gauge.samples,
            gauge.seconds()
        ));
    }
    if let (Some(counter), Some(watts)) = (baseline.counter, baseline.counter_watts()) {
        parts.push(format!("{watts:.1} W by the counter ({} publishes)", counter.samples));
    }
    format!("idle: {}, with nothing in flight", parts.join(", "))
}
