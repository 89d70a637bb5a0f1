//! The thread that lists the processes on the cards, for all of them in one call.
//!
//! A call starts the tool anew, which takes some 24 ms of CPU, so it is made each five seconds: a
//! tenant that comes and goes in between is not seen. While no rows come none is made, since it would
//! hang as they do. Where the tool does not know the list for programs, its monitor or its XML form
//! is asked instead.

use std::{
    io::{self, PipeReader, PipeWriter, Write},
    process,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use joulebook_core::Fault;

use super::{
    processes::{Listed, compute_apps, monitor, of_xml},
    program::{News, Program, StartError, rest},
    sentence::{Meaning, meaning},
    state::Shared,
};
use crate::clock::now_ns;

/// How often the processes are listed.
pub(super) const EVERY: Duration = Duration::from_secs(5);
/// How long one list may take.
const LIMIT: Duration = Duration::from_secs(2);
const ENDING: Duration = Duration::from_millis(500);
/// Rows are no older than this where the driver answers.
const LIVELY_NS: u64 = 500_000_000;
const LOOK: Duration = Duration::from_millis(100);

/// What was seen, and when.
type Seen = (Instant, Result<Vec<Listed>, Fault>);

/// Lists while somebody holds it.
#[derive(Debug)]
pub(super) struct Lister {
    board: Arc<Board>,
    stop: PipeWriter,
    /// As a feed has it.
    process: u32,
}

#[derive(Debug, Default)]
struct Board {
    seen: Mutex<Option<Seen>>,
    news: Condvar,
}

/// A form of the list, the best first.
#[derive(Clone, Copy)]
struct Form {
    arguments: &'static [&'static str],
    read: fn(&str) -> Option<Vec<Listed>>,
}

const FORMS: [Form; 3] = [
    Form {
        arguments: &[
            "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
            "--format=csv,noheader,nounits",
        ],
        read: compute_apps,
    },
    Form { arguments: &["pmon", "-c", "1", "-s", "m"], read: monitor },
    Form { arguments: &["-q", "-x"], read: of_xml },
];

impl Lister {
    pub(super) fn start(program: &Program, shared: Arc<Shared>) -> io::Result<Arc<Self>> {
        let (theirs, stop) = io::pipe()?;
        let board = Arc::new(Board::default());
        let (program, theirs_board) = (program.clone(), Arc::clone(&board));
        thread::Builder::new()
            .name("joulebook-smi-processes".to_owned())
            .spawn(move || run(&program, &shared, &theirs_board, &theirs))?;
        Ok(Arc::new(Self { board, stop, process: process::id() }))
    }

    /// The processes of all cards as last listed; the first list is waited for a moment.
    pub(super) fn listed(&self, wait: Duration) -> Result<Vec<Listed>, Fault> {
        let seen = self.board.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.board.news.wait_timeout_while(seen, wait, |seen| seen.is_none());
        let seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        match &*seen {
            Some((at, listed)) if at.elapsed() <= EVERY * 3 => listed.clone(),
            Some(_) => Err(Fault::Timeout),
            None => Err(Fault::NotReady),
        }
    }
}

impl Drop for Lister {
    fn drop(&mut self) {
        if self.process == process::id() {
            let _ = self.stop.write_all(b".");
        }
    }
}

fn run(program: &Program, shared: &Shared, board: &Board, stop: &PipeReader) {
    let mut form = 0;
    loop {
        let lively = shared.is_lively(now_ns(), LIVELY_NS);
        if lively {
            let Some(listed) = list(program, shared, stop, &mut form) else { return };
            let mut seen = board.seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen = Some((Instant::now(), listed));
            board.news.notify_all();
        }
        if !rest(stop, if lively { EVERY } else { LOOK }) {
            return;
        }
    }
}

/// One list, by the first form that the tool knows; `None` when nobody wants it any more.
fn list(
    program: &Program,
    shared: &Shared,
    stop: &PipeReader,
    form: &mut usize,
) -> Option<Result<Vec<Listed>, Fault>> {
    let first = *form;
    for number in (first..FORMS.len()).chain(0..first) {
        let asked = FORMS.get(number)?;
        let (text, code) = match call(program, shared, stop, asked.arguments)? {
            Ok(answer) => answer,
            Err(fault) => return Some(Err(fault)),
        };
        if code == Some(0) {
            *form = number;
            return Some((asked.read)(&text).ok_or(Fault::MalformedRow));
        }
        match meaning(&text, code) {
            Meaning::UnknownField(_)
            | Meaning::UnknownOption
            | Meaning::Failed(Fault::NotSupported) => {}
            Meaning::Failed(fault) => return Some(Err(fault)),
        }
    }
    Some(Err(Fault::NotSupported))
}

type Answer = Result<(String, Option<i32>), Fault>;

/// A single call: what it said, and its exit code; `None` when nobody wants it any more.
fn call(
    program: &Program,
    shared: &Shared,
    stop: &PipeReader,
    arguments: &[&str],
) -> Option<Answer> {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let mut child = match program.start(&arguments) {
        Ok(child) => child,
        Err(StartError::Stuck) => return Some(Err(Fault::Timeout)),
        Err(StartError::System(_)) => return Some(Err(Fault::DriverAbsent)),
    };
    shared.count(|cost| cost.starts += 1);
    let until = Instant::now() + LIMIT;
    let mut text = Vec::new();
    let ended = loop {
        match child.news(stop, until.saturating_duration_since(Instant::now())) {
            News::Stopped => return None,
            News::Late if Instant::now() >= until => break false,
            News::Late => {}
            News::End => break true,
            News::Text => {
                if !child.read(&mut text) {
                    break true;
                }
            }
        }
    };
    let (code, cpu_ns) = child.end(if ended { ENDING } else { Duration::ZERO });
    shared.count(|cost| cost.cpu_ns += cpu_ns);
    if !ended {
        return Some(Err(Fault::Timeout));
    }
    Some(Ok((String::from_utf8_lossy(&text).into_owned(), code)))
}
