//! Two dozen requests at once on a simulated engine that knows what each truly cost: their
//! receipts beside the truth, the trial balance, and an audit of the journal.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::Context;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::ProgressBar;
use joulebook::{
    books::{
        self, Audit, Books, CardTrial, Labels, PendingReceipt, Receipt, Rhos, Settings, Ticket,
        TokenSource, TrialBalance, Usage,
    },
    core::units::significant,
};
use joulebook_lab::{
    engine::{self, Arrivals, Event, Job, Kind, Request, Sink, Status, live::LiveEngine},
    load::LiveLoad,
};
use serde::Serialize;

use super::card::{self, IDLE_W, LAG_MS, PERIOD_MS};
use crate::context;

/// Requests, and the time between two of them.
const REQUESTS: u32 = 24;
const APART: Duration = Duration::from_millis(110);
/// What a decode token costs in prompt tokens on the simulated engine, as its isolated points show.
const RHO: &str = "[[rho]]\nrho_a = 2.93\nrho_b = 123.9\n";

/// A request: its receipt and its truth.
#[derive(Serialize)]
struct Row {
    prompt_tokens: u32,
    answer_tokens: u64,
    true_joules: f64,
    receipt: Receipt,
}

#[derive(Serialize)]
struct Report {
    simulated: bool,
    idle_watts: f64,
    requests: Vec<Row>,
    /// The requests' true joules above idle, and what they were charged, J.
    true_joules: f64,
    charged_joules: f64,
    /// What each would have been told if it had claimed all that the card drew above idle
    /// meanwhile, together, J.
    claimed_joules: f64,
    trial_balance: TrialBalance,
    journal_transactions: u64,
}

/// Runs the demo.
pub fn run(json: bool, journal_file: Option<&Path>) -> anyhow::Result<ExitCode> {
    // Refused before anything is done.
    let mut file = journal_file
        .map(|path| {
            File::create_new(path).map_err(|error| {
                let why = format!("{}: {error}; --journal wants a new file", path.display());
                context::Usage(why)
            })
        })
        .transpose()?;
    let progress = if io::stderr().is_terminal() && !json {
        ProgressBar::new(u64::from(REQUESTS)).with_message("requests")
    } else {
        ProgressBar::hidden()
    };
    let (meter, simulated, load) = card::meter()?;
    let journal = Journal::default();
    let rho = Rhos::parse(RHO, "the demo's calibration").context("the demo's own calibration")?;
    let settings =
        Settings { rho, journal: Some(books::Journal::to(journal.clone())), ..Settings::default() };
    let books = Books::of(&meter, settings)?;
    let ended = Ended::default();
    let desk = Desk { books: books.clone(), load, open: HashMap::new(), ended: Arc::clone(&ended) };
    let engine = engine::Settings { arrivals: Arrivals::None, ..engine::Settings::default() };
    let engine = LiveEngine::start(engine, simulated.clock().clone(), desk);
    for number in 0..REQUESTS {
        engine.submit(job(number));
        progress.inc(1);
        thread::sleep(APART);
    }
    let run = engine.finish();
    let pending = std::mem::take(&mut *ended.lock().unwrap_or_else(PoisonError::into_inner));
    let mut receipts: HashMap<u64, Receipt> = pending
        .into_iter()
        .map(|(request, pending)| (request, pending.settle(Duration::from_secs(5))))
        .collect();
    let trial_balance = books.trial_balance().context("the books do not answer")?;
    books.close();
    progress.finish_and_clear();

    let claimed_joules = run.requests.iter().map(|request| claim(request, &simulated)).sum();
    let requests: Vec<Row> = run
        .requests
        .iter()
        .filter_map(|request| {
            Some(Row {
                prompt_tokens: request.prompt_tokens,
                answer_tokens: request.answer_tokens(),
                true_joules: request.truth.joules(),
                receipt: receipts.remove(&request.id)?,
            })
        })
        .collect();
    let report = Report {
        simulated: true,
        idle_watts: IDLE_W,
        true_joules: requests.iter().map(|row| row.true_joules).sum(),
        charged_joules: requests.iter().filter_map(|row| row.receipt.joules).sum(),
        claimed_joules,
        requests,
        trial_balance,
        journal_transactions: journal.audit()?,
    };
    if let Some(file) = &mut file {
        file.write_all(&journal.bytes()).context("the journal")?;
    }
    let mut out = anstream::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        write!(out, "{}", page(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Chat, long prompts with short answers, and one whose client leaves.
fn job(number: u32) -> Job {
    let (prompt_tokens, answer_tokens) = match number % 6 {
        0 => (180 + 20 * number, 240),
        1 => (90, 420 - 10 * number),
        2 => (4000 + 150 * number, 48),
        3 => (320, 160 + 8 * number),
        4 => (60 + number, 300),
        _ => (1500, 90),
    };
    Job {
        prompt_tokens,
        cached_tokens: if number % 6 == 5 { 1000 } else { 0 },
        answer_tokens,
        patience_ns: (number == 13).then_some(900_000_000),
        parent: None,
    }
}

/// What a window over the request's life would have claimed: all that the card drew above idle.
fn claim(request: &Request, card: &joulebook_lab::SimulatedCard) -> f64 {
    let end_ns = request.ended_ns.unwrap_or(request.arrived_ns);
    let seconds = (end_ns - request.arrived_ns) as f64 / 1e9;
    card.model().load().energy(request.arrived_ns, end_ns) - IDLE_W * seconds
}

type Ended = Arc<Mutex<Vec<(u64, PendingReceipt)>>>;

/// The gateway's part: it hears what the engine does and keeps a ticket for each request.
struct Desk {
    books: Books,
    load: LiveLoad,
    open: HashMap<u64, (Ticket, Usage)>,
    ended: Ended,
}

impl Sink for Desk {
    fn power(&mut self, t_ns: i64, _card: usize, watts: f64) {
        // A change that comes after a later one is of no account: the card is the engine's alone.
        let _ = self.load.set_watts_at(t_ns, watts);
    }

    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::Arrived { request, prompt_tokens, cached_tokens, .. } => {
                let labels = Labels {
                    model: Some("8b"),
                    queued: true,
                    prompt_bytes: u64::from(prompt_tokens) * 4,
                    ..Labels::default()
                };
                let mut ticket = self.books.open(&labels);
                ticket.prompt(prompt_tokens.into(), Some(cached_tokens.into()));
                let usage = Usage {
                    prompt: Some(prompt_tokens.into()),
                    cached: Some(cached_tokens.into()),
                    completion: Some(0),
                    reasoning: None,
                    source: TokenSource::Counted,
                };
                self.open.insert(request, (ticket, usage));
            }
            Kind::Admitted { request } => {
                if let Some((ticket, _)) = self.open.get_mut(&request) {
                    ticket.admitted();
                }
            }
            Kind::Tokens { request, count } => {
                if let Some((ticket, usage)) = self.open.get_mut(&request) {
                    ticket.tokens(count.into());
                    usage.completion = usage.completion.map(|tokens| tokens + u64::from(count));
                }
            }
            Kind::Ended { request, status } => {
                let Some((ticket, usage)) = self.open.remove(&request) else { return };
                let pending = if status == Status::Cancelled {
                    ticket.cancel(usage)
                } else {
                    ticket.close(usage)
                };
                let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.push((request, pending));
            }
            Kind::Power { .. } => {}
        }
    }
}

/// A journal in memory.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<u8>>>);

impl Write for Journal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Journal {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Proves the books from the journal alone; the number of transactions.
    fn audit(&self) -> anyhow::Result<u64> {
        let mut audit = Audit::new();
        audit.read(&mut self.bytes().as_slice())?;
        match audit.broken() {
            Some(broken) => anyhow::bail!("the journal breaks the law: {}", broken.what),
            None => Ok(audit.transactions()),
        }
    }
}

fn page(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "request",
            "prompt",
            "answer",
            "truth J",
            "receipt J",
            "± J",
            "off by",
            "prefill J",
            "decode J",
            "J/token",
            "status",
        ]);
    let figure = |value: Option<f64>| value.map_or("–".to_owned(), significant);
    for (number, row) in report.requests.iter().enumerate() {
        let receipt = &row.receipt;
        let off = receipt.joules.map(|joules| (joules / row.true_joules - 1.0) * 100.0);
        table.add_row([
            (number + 1).to_string(),
            row.prompt_tokens.to_string(),
            row.answer_tokens.to_string(),
            significant(row.true_joules),
            figure(receipt.joules),
            receipt.bound_joules.map_or("–".into(), |bound| format!("{bound:.1}")),
            off.map_or("–".into(), |off| format!("{off:+.1} %")),
            figure(receipt.prefill_joules),
            figure(receipt.decode_joules),
            figure(receipt.joules_per_token),
            serde_json::to_value(receipt.status)
                .ok()
                .and_then(|status| status.as_str().map(str::to_owned))
                .unwrap_or_default(),
        ]);
    }
    for column in table.column_iter_mut().take(10) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let balance: String = report.trial_balance.cards.iter().map(balance).collect();
    format!(
        "A simulated card and engine in this process: no GPU of this machine is read.\n\
         {REQUESTS} requests, one each {} ms, many of them in flight at once. The card rests at \
         {IDLE_W} W; its register\nshows a new value about every {PERIOD_MS} ms, {LAG_MS} ms late.\
         \n\n{table}\n\n\
         All requests: {} J in truth, {} J by their receipts ({:+.1} %). Had each claimed what the \
         card drew above\nidle while it was there: {} J, {:.0} times the truth.\n\n\
         Trial balance\n{balance}\n\
         Audit of the journal: {} transactions, and after each of them every microjoule that the \
         register counted\nstood in exactly one account.\n\n\
         Joules are above idle. ± is the measurement's alone; that the division among requests \
         follows the engine's own\ncost (a decode step costs a fixed part, shared, and a part for \
         each) rests on its calibration.\n\
         joulebook demo --windows shows single pieces of work of 5 ms to 2 s; --journal FILE keeps the journal,\nand joulebook audit FILE proves it anew.\n",
        APART.as_millis(),
        significant(report.true_joules),
        significant(report.charged_joules),
        (report.charged_joules / report.true_joules - 1.0) * 100.0,
        significant(report.claimed_joules),
        report.claimed_joules / report.true_joules,
        report.journal_transactions,
    )
}

fn balance(card: &CardTrial) -> String {
    let lines = [
        ("requests", card.requests_joules),
        ("idle, model loaded", card.idle_resident_joules),
        ("idle, no model", card.idle_off_joules),
        ("foreign", card.foreign_joules + card.foreign_unresolved_joules),
        ("unattributed", card.unattributed_joules),
        ("gap", card.gap_joules),
        ("suspense (not settled yet)", card.suspense_joules),
    ];
    let lines = lines.iter().filter(|(_, joules)| *joules != 0.0);
    let lines: String =
        lines.map(|(name, joules)| format!("  {name:<28} {joules:>12.6} J\n")).collect();
    format!(
        "{lines}  {:<28} {:>12.6} J   imbalance {} µJ\n",
        "counted by the register", card.counted_joules, card.imbalance_uj
    )
}
