//! The thread that asks the tool and reads what it prints.
//!
//! It starts the child itself and lives as long as it, since the kernel ends the child with it. It
//! never stops reading to do something else, so that no row waits in the pipe; what rows mean is
//! decided elsewhere ([`super::table`], [`super::sentence`]), and how to go on in [`super::policy`].

use std::{
    io::PipeReader,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use joulebook_core::Fault;

use super::{
    columns::Columns,
    policy::{Ended, Mode, Policy},
    program::{News, Program, StartError, rest},
    sentence::{Meaning, meaning},
    state::Shared,
    table::{Row, Table},
};
use crate::{clock::now_ns, recorder::thread_cpu_ns};

/// A single call that takes longer is given up.
const SINGLE_LIMIT: Duration = Duration::from_secs(5);
/// A loop whose next row takes longer than this, and than four of those before, hangs.
const SILENCE: Duration = Duration::from_secs(2);
/// Cells that show nothing but errors for this long have gone bad.
const BAD_CELLS: Duration = Duration::from_secs(1);
/// How long a child that prints no more may take to end.
const ENDING: Duration = Duration::from_millis(500);
/// A line is not longer.
const LONGEST_LINE: usize = 1 << 16;
/// So many lines in a row that are no rows are a flood.
const FLOOD: u32 = 1000;
/// What is kept of what it says.
const MOST_SAID: usize = 4096;
const COST_EVERY: Duration = Duration::from_secs(1);

/// Asks until nobody wants it any more.
pub(super) fn run(shared: &Arc<Shared>, stop: &PipeReader, program: &Program, period: Duration) {
    let mut columns = Columns::default();
    let mut policy = Policy::default();
    loop {
        let wait = match call(shared, stop, program, period, &policy, &columns) {
            Call::Stopped => break,
            Call::Unknown(field) if columns.refuse(&field) && columns.suffice() => {
                tracing::info!("this nvidia-smi does not know {field}; it is asked without");
                continue;
            }
            Call::Unknown(field) => {
                shared.failed(Fault::NotSupported, &format!("it does not know {field}"));
                policy.ended(Ended {
                    fault: Some(Fault::NotSupported),
                    ticks: 0,
                    ran: Duration::ZERO,
                })
            }
            Call::Over(ended, said) => {
                if let Some(fault) = ended.fault {
                    tracing::debug!("nvidia-smi shows no cards now: {fault}: {said}");
                    shared.failed(fault, &said);
                }
                policy.ended(ended)
            }
        };
        if !rest(stop, wait) {
            break;
        }
    }
    shared.ended();
}

enum Call {
    Stopped,
    Unknown(String),
    Over(Ended, String),
}

/// One call, from its start to its end.
fn call(
    shared: &Arc<Shared>,
    stop: &PipeReader,
    program: &Program,
    period: Duration,
    policy: &Policy,
    columns: &Columns,
) -> Call {
    let begun = Instant::now();
    let mut arguments =
        vec![format!("--query-gpu={}", columns.query()), "--format=csv,nounits".to_owned()];
    if policy.mode() == Mode::Loop {
        arguments.extend(["-lms".to_owned(), period.as_millis().to_string()]);
    }
    let over = |fault, ticks, said| Call::Over(Ended { fault, ticks, ran: begun.elapsed() }, said);
    let mut child = match program.start(&arguments) {
        Ok(child) => child,
        Err(StartError::Stuck) => return over(Some(Fault::Timeout), 0, String::new()),
        Err(StartError::System(error)) => {
            return over(Some(Fault::DriverAbsent), 0, error.to_string());
        }
    };
    shared.count(|cost| cost.starts += 1);
    let mut text = Text::new(shared, policy);
    let mut counted = (begun, 0);
    let mut count = |cpu_ns: u64| {
        let now = Instant::now();
        let wall_ns = u64::try_from((now - counted.0).as_nanos()).unwrap_or(u64::MAX);
        shared.count(|cost| {
            cost.cpu_ns += cpu_ns.saturating_sub(counted.1);
            cost.wall_ns += wall_ns;
            cost.thread_cpu_ns = thread_cpu_ns().unwrap_or(cost.thread_cpu_ns);
        });
        counted = (now, cpu_ns.max(counted.1));
    };
    let mut count_at = begun + COST_EVERY;
    let why = loop {
        let left = text.deadline().saturating_duration_since(Instant::now());
        match child.news(stop, left) {
            News::Stopped => {
                count(child.cpu_ns());
                return Call::Stopped;
            }
            News::Late if text.deadline() <= Instant::now() => break Why::Silent,
            News::Late => {}
            News::End => break Why::End,
            News::Text => {
                if !child.read(&mut text.rest) {
                    break Why::End;
                }
                text.lines();
                if let Some(fault) = text.spoiled() {
                    break Why::Spoiled(fault);
                }
            }
        }
        if Instant::now() >= count_at {
            count_at += COST_EVERY;
            count(child.cpu_ns());
        }
    };
    // Unless it ended by itself there is nothing to wait for.
    let patience = if why == Why::End { ENDING } else { Duration::ZERO };
    let (code, cpu_ns) = child.end(patience);
    count(cpu_ns);
    text.finish();
    let (ticks, said) = (text.ticks, text.said);
    match why {
        Why::Silent => over(Some(Fault::Timeout), ticks, said),
        Why::Spoiled(fault) => over(Some(fault), ticks, said),
        Why::End if policy.mode() == Mode::Single && ticks > 0 && code == Some(0) => {
            over(text.bad.map(|(_, fault)| fault), ticks, said)
        }
        Why::End => match meaning(&said, code) {
            Meaning::UnknownField(field) => Call::Unknown(field),
            Meaning::UnknownOption => over(Some(Fault::NotSupported), ticks, said),
            Meaning::Failed(fault) => over(Some(fault), ticks, said),
        },
    }
}

/// Why a call is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    End,
    Silent,
    Spoiled(Fault),
}

/// What a child prints, line by line.
struct Text<'a> {
    shared: &'a Shared,
    single: bool,
    /// What is not a whole line yet.
    rest: Vec<u8>,
    table: Option<Table>,
    /// What it says beside its table.
    said: String,
    /// Whose rows have come in this tick.
    tick: Vec<String>,
    ticks: u64,
    /// When the next row is due at the latest.
    deadline: Instant,
    last: Option<Instant>,
    slowest: Duration,
    /// Since when cells show nothing but errors, and the last of them.
    bad: Option<(Instant, Fault)>,
    strays: u32,
}

impl<'a> Text<'a> {
    fn new(shared: &'a Shared, policy: &Policy) -> Self {
        let single = policy.mode() == Mode::Single;
        let limit = if single { SINGLE_LIMIT } else { policy.first_row() };
        Self {
            shared,
            single,
            rest: Vec::new(),
            table: None,
            said: String::new(),
            tick: Vec::new(),
            ticks: 0,
            deadline: Instant::now() + limit,
            last: None,
            slowest: Duration::ZERO,
            bad: None,
            strays: 0,
        }
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Why it is not worth reading on.
    fn spoiled(&self) -> Option<Fault> {
        if self.strays >= FLOOD {
            return Some(Fault::MalformedRow);
        }
        let (since, fault) = self.bad?;
        (!self.single && since.elapsed() >= BAD_CELLS).then_some(fault)
    }

    /// Takes the whole lines.
    fn lines(&mut self) {
        if let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') {
            let whole: Vec<u8> = self.rest.drain(..=end).collect();
            for line in whole.split(|byte| *byte == b'\n') {
                self.line(&String::from_utf8_lossy(line));
            }
        }
        if self.rest.len() > LONGEST_LINE {
            self.rest.clear();
            self.stray("a line without an end");
        }
    }

    fn line(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let Some(table) = &self.table else {
            self.table = Table::of_header(line).filter(Table::has_power);
            if self.table.is_none() {
                self.stray(line);
            }
            return;
        };
        match table.row(line) {
            Some(row) if row.is_bound() => self.row(&row),
            _ if Table::of_header(line).as_ref() == Some(table) => {}
            _ => self.stray(line),
        }
    }

    fn row(&mut self, row: &Row) {
        let unix_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        self.shared.deliver(row, now_ns(), unix_ns);
        self.strays = 0;
        let key = [row.uuid.clone(), row.pci.clone(), row.index.map(|index| index.to_string())];
        let key = key.into_iter().flatten().next().unwrap_or_default();
        if self.tick.contains(&key) {
            self.tick.clear();
            self.ticked();
        }
        self.tick.push(key);
        self.look(row);
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            // A stall of ours is no hint of how slow the tool is.
            self.slowest = self.slowest.max(now - last).min(Duration::from_secs(15));
        }
        self.deadline = now + SILENCE.max(self.slowest * 4);
    }

    fn ticked(&mut self) {
        self.ticks += 1;
        self.shared.completed();
    }

    /// Whether the row's cells show a power, or have gone bad.
    fn look(&mut self, row: &Row) {
        let powers = [row.instant, row.average, row.draw];
        let faults = powers.iter().flatten().filter_map(|power| power.err());
        if powers.iter().flatten().any(Result::is_ok) {
            self.bad = None;
        } else if let Some(fault) = faults.into_iter().find(|fault| *fault != Fault::NotSupported) {
            let since = self.bad.map_or_else(Instant::now, |(since, _)| since);
            self.bad = Some((since, fault));
        }
    }

    /// A line that is no row.
    fn stray(&mut self, line: &str) {
        self.strays += 1;
        // Before the table it is a sentence, and told as such.
        if self.table.is_some() {
            self.shared.count(|cost| cost.rejected_lines += 1);
        }
        if self.said.len() < MOST_SAID {
            self.said.extend(line.chars().take(MOST_SAID / 4));
            self.said.push('\n');
        }
    }

    /// Nothing more comes. A row that was cut off would read too low: it is none.
    fn finish(&mut self) {
        let cut = std::mem::take(&mut self.rest);
        let cut = String::from_utf8_lossy(&cut);
        if !cut.trim().is_empty() {
            self.stray(cut.trim());
        }
        if !self.tick.is_empty() {
            self.ticked();
        }
    }
}
