//! Waits outside the interpreter, and tells Python when what it waits for is there.
//!
//! One thread polls all that is waited for; the wakers of the core only ring it. It attaches to the
//! interpreter for the one call that hands a value over (mostly `loop.call_soon_threadsafe`), so a
//! recorder never waits for Python. Jobs end by their own deadlines even where a driver hangs.
//!
//! Invariants: nothing is handed over once the interpreter goes down; a fork's child has a thread of
//! its own, and what its parent waited for is not waited for there.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use pyo3::prelude::*;

/// A day: as good as no limit, and no clock runs over.
const LONGEST: Duration = Duration::from_secs(86_400);
/// How long the end of the interpreter waits for a value that is just being handed over.
const FAREWELL: Duration = Duration::from_secs(1);

static BRIDGE: Mutex<Option<Sender<Message>>> = Mutex::new(None);
static CLOSED: AtomicBool = AtomicBool::new(false);
static HANDING: AtomicUsize = AtomicUsize::new(0);

/// Something that is waited for.
pub trait Job: Send {
    /// Looks; what is not there yet wakes the context when it may be.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// The value, ready or not; made without the interpreter where that takes long.
    fn prepare(&mut self);

    /// The value, for Python.
    fn hand_over<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

enum Message {
    New(Waiting),
    Look(u64),
}

struct Waiting {
    job: Box<dyn Job>,
    until: Instant,
    then: Py<PyAny>,
}

struct Bell {
    number: u64,
    sender: Sender<Message>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // A bridge that is gone needs no bell.
        let _ = self.sender.send(Message::Look(self.number));
    }
}

/// A time-out as Python says it.
pub fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(LONGEST).min(LONGEST)
}

/// Calls `then` with the job's value once it is there, at the latest after `timeout`.
pub fn wait(job: Box<dyn Job>, timeout: Duration, then: Py<PyAny>) {
    let waiting = Waiting { job, until: Instant::now() + timeout, then };
    // Locked by threads that hold the interpreter alone.
    let mut bridge = BRIDGE.lock().unwrap_or_else(PoisonError::into_inner);
    if bridge.is_none() {
        let (sender, receiver) = mpsc::channel();
        let bell = sender.clone();
        let run = move || run(&receiver, &bell);
        let spawned = thread::Builder::new().name("joulebook-wait".to_owned()).spawn(run);
        *bridge = spawned.is_ok().then_some(sender);
    }
    let sender = bridge.clone();
    drop(bridge);
    match sender {
        Some(sender) => drop(sender.send(Message::New(waiting))),
        // The system gives no more threads: nobody waits for ever.
        None => waiting.hand_over(),
    }
}

/// Runs something that may take long on a thread of its own, and calls `then` with what came of it.
pub fn run_apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    give: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    then: Py<PyAny>,
) -> PyResult<()> {
    let work = move || {
        let value = work();
        handing(|py| give(py, value).and_then(|value| then.call1(py, (value,)).map(drop)));
    };
    thread::Builder::new().name("joulebook-ask".to_owned()).spawn(work)?;
    Ok(())
}

fn run(receiver: &Receiver<Message>, sender: &Sender<Message>) {
    let mut waiting: HashMap<u64, (Waiting, Waker)> = HashMap::new();
    let mut deadlines: BTreeSet<(Instant, u64)> = BTreeSet::new();
    let mut next = 0;
    loop {
        let now = Instant::now();
        if let Some((until, number)) = deadlines.first().copied().filter(|(until, _)| *until <= now)
        {
            deadlines.remove(&(until, number));
            if let Some((late, _)) = waiting.remove(&number) {
                late.hand_over();
            }
            continue;
        }
        let left = deadlines.first().map_or(LONGEST, |(until, _)| *until - now);
        let number = match receiver.recv_timeout(left) {
            Ok(Message::New(new)) => {
                next += 1;
                let waker = Waker::from(Arc::new(Bell { number: next, sender: sender.clone() }));
                deadlines.insert((new.until, next));
                waiting.insert(next, (new, waker));
                next
            }
            Ok(Message::Look(number)) => number,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some((it, waker)) = waiting.get_mut(&number) else { continue };
        if it.job.poll(&mut Context::from_waker(waker)).is_ready() {
            deadlines.remove(&(it.until, number));
            if let Some((ready, _)) = waiting.remove(&number) {
                ready.hand_over();
            }
        }
    }
}

impl Waiting {
    fn hand_over(mut self) {
        self.job.prepare();
        handing(|py| self.then.call1(py, (self.job.hand_over(py)?,)).map(drop));
    }
}

/// Attaches for one call. What fails in it (a loop that is closed by now) is nobody's any more.
fn handing(call: impl FnOnce(Python<'_>) -> PyResult<()>) {
    HANDING.fetch_add(1, Ordering::SeqCst);
    if !CLOSED.load(Ordering::SeqCst) {
        let _ = Python::try_attach(call);
    }
    HANDING.fetch_sub(1, Ordering::SeqCst);
}

/// The interpreter goes down: from here on nothing is handed over. Waits for what just is.
pub fn close(py: Python<'_>) {
    CLOSED.store(true, Ordering::SeqCst);
    py.detach(|| {
        let until = Instant::now() + FAREWELL;
        while HANDING.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// This process is a fork's child.
pub fn forked() {
    HANDING.store(0, Ordering::SeqCst);
    let parents = BRIDGE.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Its other end lies in a thread that is not here.
    std::mem::forget(parents);
}
