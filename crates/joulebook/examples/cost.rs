//! What metering costs, on the lab's card: `measure/cost` runs it.
//!
//!     cost open COUNT                open + close, one after the other, on a simulated card
//!     cost window COUNT              open + close + now
//!     cost now COUNT                 the answer at once of a window of 250 ms
//!     cost settle COUNT              its settled answer, the publishes it needs having come
//!     cost at-once COUNT             so many windows open at the same time, on the driver's card
//!     cost recorder SECONDS [PERIOD_MS]   the recorder alone, on the driver's card
//!     cost memory                    what a card keeps in memory
//!
//! Times are CPU time, not wall time. The first four are also what an instruction
//! counter wants: the difference of two counts, by the difference of their windows.

#![allow(clippy::print_stdout, reason = "its output is its result")]

#[path = "support/cpu.rs"]
mod cpu;
#[path = "support/probed.rs"]
mod probed;

use std::{error::Error, fs, hint::black_box, sync::Arc, thread, time::Duration};

use joulebook::{
    Card, Measurement, Meter, Node, Pending, Settings, Window,
    core::{ring::Point, series::series},
    profile::{Profile, Profiles},
    record,
};
use joulebook_lab::{Clock, Scenario, SimulatedCard};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const IDLE_W: f64 = 70.0;
const READY: Duration = Duration::from_secs(5);
/// Longer than the last publish that a window may want takes to come.
const PUBLISHED: Duration = Duration::from_millis(700);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["open", count] => windows("open + close", count.parse()?, drop),
        ["window", count] => windows("open + close + now", count.parse()?, |pending| {
            black_box(pending.now());
        }),
        ["now", count] => answers("now", count.parse()?, Pending::now),
        ["settle", count] => {
            answers("settle", count.parse()?, |pending| pending.settle(Duration::ZERO))
        }
        ["at-once", count] => at_once(count.parse()?),
        ["recorder", seconds] => recorder(seconds.parse()?, None),
        ["recorder", seconds, period_ms] => recorder(seconds.parse()?, Some(period_ms.parse()?)),
        ["memory"] => memory(),
        _ => Err("usage: cost open N | window N | now N | settle N | at-once N | recorder S [PERIOD_MS] | memory"
            .into()),
    }
}

fn windows(what: &str, count: u32, done: impl Fn(Pending)) -> Outcome {
    let meter = simulated()?;
    let begin_ns = cpu::thread_ns();
    for _ in 0..count {
        done(meter.open().close());
    }
    say(what, "a window", per(cpu::thread_ns() - begin_ns, count));
    Ok(())
}

fn answers(what: &str, count: u32, ask: impl Fn(&Pending) -> Measurement) -> Outcome {
    let meter = simulated()?;
    let window = meter.open();
    thread::sleep(Duration::from_millis(250));
    let pending = window.close();
    thread::sleep(PUBLISHED);
    let begin_ns = cpu::thread_ns();
    for _ in 0..count {
        black_box(ask(&pending));
    }
    let took_ns = cpu::thread_ns() - begin_ns;
    let rule = serde_json::to_string(&ask(&pending).rule)?;
    say(&format!("{what}, a window of 250 ms (rule {rule})"), "a window", per(took_ns, count));
    Ok(())
}

fn at_once(count: u32) -> Outcome {
    let meter = driven(Some(100.0))?;
    let card = meter.cards().first().ok_or("no card")?;
    let reads = |phase: &str, seconds: u64| -> Outcome {
        let (cost, began) = (card.cost(), thread_cpu_ns("joulebook-0")?);
        thread::sleep(Duration::from_secs(seconds));
        let polls = card.cost().polls - cost.polls;
        let took_ns = thread_cpu_ns("joulebook-0")? - began;
        say(&format!("{phase}: reads of the card"), "a second", polls as f64 / seconds as f64);
        say(
            &format!("{phase}: recorder, µs of CPU"),
            "a second",
            took_ns as f64 / 1e3 / seconds as f64,
        );
        Ok(())
    };
    reads("no window open", 10)?;
    let begin_ns = cpu::thread_ns();
    let open: Vec<Window> = (0..count).map(|_| meter.open()).collect();
    let opened_ns = cpu::thread_ns() - begin_ns;
    reads(&format!("{count} windows open"), 10)?;
    let begin_ns = cpu::thread_ns();
    let pending: Vec<_> = open.into_iter().map(Window::close).collect();
    let closed_ns = cpu::thread_ns() - begin_ns;
    let begin_ns = cpu::thread_ns();
    pending.iter().for_each(|window| drop(black_box(window.now())));
    let now_ns = cpu::thread_ns() - begin_ns;
    thread::sleep(PUBLISHED);
    let begin_ns = cpu::thread_ns();
    let joules: f64 =
        pending.iter().filter_map(|window| window.settle(Duration::ZERO).gross_joules).sum();
    let settled_ns = cpu::thread_ns() - begin_ns;
    say("open", "a window", per(opened_ns, count));
    say("close", "a window", per(closed_ns, count));
    say("now", "a window", per(now_ns, count));
    say("settle, all overlapping", "a window", per(settled_ns, count));
    say("gross J of all settled windows together", "", joules);
    Ok(())
}

fn recorder(seconds: u64, period_ms: Option<f64>) -> Outcome {
    let meter = driven(period_ms)?;
    let card = meter.cards().first().ok_or("no card")?;
    // The first seconds find the grid.
    thread::sleep(Duration::from_secs(5));
    let (cost, began_ns) = (card.cost(), thread_cpu_ns("joulebook-0")?);
    thread::sleep(Duration::from_secs(seconds));
    let (after, took_ns) = (card.cost(), thread_cpu_ns("joulebook-0")? - began_ns);
    let hour = 3600.0 / seconds as f64;
    say("reads", "a second", (after.polls - cost.polls) as f64 / seconds as f64);
    say("recorder, s of CPU", "an hour", took_ns as f64 / 1e9 * hour);
    say(
        "the same by its own count, s of CPU",
        "an hour",
        (after.cpu_ns - cost.cpu_ns) as f64 / 1e9 * hour,
    );
    say("reads that came late", "", (after.late - cost.late) as f64);
    Ok(())
}

fn memory() -> Outcome {
    const CARDS: usize = 64;
    const DAY_S: u64 = 86_400;
    let before = resident_kib()?;
    let mut kept = Vec::new();
    for _ in 0..CARDS {
        kept.push(simulated_card(&Clock::monotonic(), Profile::default())?);
    }
    thread::sleep(Duration::from_secs(3));
    let started = resident_kib()?;
    say("just started, KiB", "a card", (started - before) as f64 / CARDS as f64);
    // What a day of publishes each 100 ms fills.
    let (mut writer, filled) = series();
    for publish in 0..DAY_S * 10 {
        let at_ns = publish * 100_000_000;
        writer.push(Point { at_ns, energy_uj: publish * 7_000_000, ..Point::default() });
    }
    let full = resident_kib()?;
    say("series after a day, KiB", "a card", (full - started) as f64);
    drop(black_box((kept, writer, filled)));
    Ok(())
}

/// A meter of a simulated card in this process, its publish period known.
fn simulated() -> Outcome<Meter> {
    let card = simulated_card(&Clock::monotonic(), probed::profile(100.0))?;
    let meter = Meter::of_cards(&Node::of("0").idle_watts(IDLE_W), vec![card]);
    ready(&meter)?;
    thread::sleep(Duration::from_secs(2));
    Ok(meter)
}

fn simulated_card(clock: &Clock, profile: Profile) -> Outcome<Arc<Card>> {
    let scenario = Scenario::parse("card 0\n  counter period_ms=100 jitter_ms=1\n")?;
    let card = SimulatedCard::all(&scenario, clock, |_| None).pop().ok_or("no card")?;
    let settings = Settings { profile, gap_ns: None };
    Ok(record(Box::new(card.clone()), Some(Box::new(card)), settings))
}

/// A meter of the card that the driver library shows.
fn driven(period_ms: Option<f64>) -> Outcome<Meter> {
    let folder = tempfile::tempdir()?;
    let profiles = Profiles::at(folder.path());
    let node = Node::of("0").idle_watts(IDLE_W);
    let mut meter = Meter::for_node_with(&node, &profiles)?;
    if let Some(period_ms) = period_ms {
        let device = meter.cards().first().ok_or("no card")?.device();
        let (uuid, name) = (device.uuid.clone(), device.name.clone());
        let driver = device.driver.clone();
        profiles.save(&Profile { uuid, name, driver, ..probed::profile(period_ms) })?;
        drop(meter);
        joulebook::release();
        // The recorder of the first meter ends at its next poll.
        thread::sleep(Duration::from_millis(300));
        meter = Meter::for_node_with(&node, &profiles)?;
    }
    ready(&meter)?;
    Ok(meter)
}

fn ready(meter: &Meter) -> Outcome {
    if meter.wait_ready(READY) { Ok(()) } else { Err("the card has shown nothing yet".into()) }
}

/// CPU time of the thread of that name, by the scheduler's own count.
fn thread_cpu_ns(name: &str) -> Outcome<u64> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == name {
            let text = fs::read_to_string(task.join("schedstat"))?;
            return Ok(text.split_whitespace().next().ok_or("an empty schedstat")?.parse()?);
        }
    }
    Err(format!("no thread {name}").into())
}

fn resident_kib() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// µs each.
fn per(ns: u64, count: u32) -> f64 {
    ns as f64 / 1e3 / f64::from(count)
}

fn say(what: &str, each: &str, figure: f64) {
    let unit = if each == "a window" { "µs of CPU a window" } else { each };
    println!("| {what} | {figure:.3} {unit} |");
}
