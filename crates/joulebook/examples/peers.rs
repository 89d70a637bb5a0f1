//! This library's part of `measure/peers`: a worker that opens the windows it is told to, on the
//! lab's card, and says what it measured.
//!
//!     peers CARD CONTROL STATE_DIR [PERIOD_MS | serving=NAME]
//!
//! A line `window SECONDS` on its input is one window: it opens, sets the card to 400 W, sleeps,
//! sets it to 70 W and closes. One line of JSON answers with the instants, the figure at once and
//! the settled one, each with the CPU time it took. With PERIOD_MS the card's profile says what a
//! probe would have found (that period, no lag, ± 1 ms); without, nothing is known of the card. With
//! serving=NAME the node says what its own process is called, so others on the card contend. A line
//! `hold COUNT SECONDS` opens so many windows at once and settles them all. At the end of input a
//! line says what the other threads of the process took.

#![allow(clippy::print_stdout, reason = "its output is its result")]

#[path = "support/cpu.rs"]
mod cpu;
#[path = "support/probed.rs"]
mod probed;

use std::{
    error::Error,
    io::BufRead,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use joulebook::{
    Measurement, Meter, Method, Node,
    core::Flags,
    profile::{Profile, Profiles},
};
use joulebook_lab::{clock::system_ns, control::Control, scenario::ClockKind};
use serde_json::{Value, json};

const IDLE_W: f64 = 70.0;
const BUSY_W: f64 = 400.0;
const READY: Duration = Duration::from_secs(5);
const SETTLE: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (card, control, state, option) = match arguments.as_slice() {
        [card, control, state] => (card, control, state, None),
        [card, control, state, option] => (card, control, state, Some(option.as_str())),
        _ => return Err("usage: peers CARD CONTROL STATE_DIR [PERIOD_MS | serving=NAME]".into()),
    };
    let serving_match =
        option.and_then(|option| option.strip_prefix("serving=")).map(str::to_owned);
    let period_ms = option.filter(|_| serving_match.is_none()).map(str::parse).transpose()?;
    let node = Node { serving_match, ..Node::of(card).idle_watts(IDLE_W) };
    let profiles = Profiles::at(state);
    if let Some(period_ms) = period_ms {
        save_profile(&node, &profiles, period_ms)?;
    }
    let meter = Meter::for_node_with(&node, &profiles)?;
    if !meter.wait_ready(READY) {
        return Err("the card has shown nothing yet".into());
    }
    let control = Control::open(Path::new(control))?;
    let card: usize = card.parse()?;
    let (began, began_cpu) = (Instant::now(), cpu::others_ns());
    println!("{}", json!({ "ready": true }));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["window", seconds] => window(&meter, &control, card, seconds.parse()?)?,
            ["hold", count, seconds] => hold(&meter, count.parse()?, seconds.parse()?),
            _ => return Err("commands: window SECONDS, hold COUNT SECONDS".into()),
        };
        println!("{answer}");
    }
    let background_ns = cpu::others_ns() - began_cpu;
    println!(
        "{}",
        json!({ "background_ns": background_ns, "seconds": began.elapsed().as_secs_f64() })
    );
    Ok(())
}

/// What a probe of the card would have stored.
fn save_profile(node: &Node, profiles: &Profiles, period_ms: f64) -> Result<(), Box<dyn Error>> {
    let meter = Meter::for_node_with(node, profiles)?;
    let device = meter.cards().first().ok_or("there is no card")?.device();
    drop(meter);
    joulebook::release();
    profiles.save(&Profile {
        uuid: device.uuid.clone(),
        name: device.name.clone(),
        driver: device.driver.clone(),
        ..probed::profile(period_ms)
    })?;
    Ok(())
}

fn window(
    meter: &Meter,
    control: &Control,
    card: usize,
    seconds: f64,
) -> Result<Value, Box<dyn Error>> {
    let open_ns = system_ns(ClockKind::Monotonic);
    let cpu_begin_ns = cpu::thread_ns();
    let window = meter.open();
    let cpu_open_ns = cpu::thread_ns();
    control.set_watts(card, BUSY_W)?;
    thread::sleep(Duration::from_secs_f64(seconds));
    control.set_watts(card, IDLE_W)?;
    let cpu_end_ns = cpu::thread_ns();
    let pending = window.close();
    let at_once = pending.now();
    let cpu_now_ns = cpu::thread_ns();
    let close_ns = system_ns(ClockKind::Monotonic);
    let settled = pending.settle(SETTLE);
    let cpu_settled_ns = cpu::thread_ns();
    let window_ns = cpu_open_ns - cpu_begin_ns + cpu_now_ns - cpu_end_ns;
    Ok(json!({
        "open_ns": open_ns,
        "close_ns": close_ns,
        "answers": {
            "now": answer(&at_once, window_ns),
            "settle": answer(&settled, window_ns + cpu_settled_ns - cpu_now_ns),
        },
    }))
}

/// So many windows at once: how many were measured, and what they came to together.
fn hold(meter: &Meter, count: u32, seconds: f64) -> Value {
    let open: Vec<_> = (0..count).map(|_| meter.open()).collect();
    thread::sleep(Duration::from_secs_f64(seconds));
    let pending: Vec<_> = open.into_iter().map(joulebook::Window::close).collect();
    let measured: Vec<_> = pending.iter().map(|window| window.settle(SETTLE)).collect();
    let sampled = measured.iter().filter(|measured| measured.method == Method::Sampled).count();
    let joules: f64 = measured.iter().filter_map(|measured| measured.joules).sum();
    json!({ "sampled": sampled, "joules": joules })
}

fn answer(measured: &Measurement, cpu_ns: u64) -> Value {
    json!({
        "joules": measured.joules.filter(|_| measured.method == Method::Sampled),
        "bound": measured.bound_joules,
        "unresolved": measured.flags.contains(Flags::UNRESOLVED),
        "error": measured.error.map(|fault| fault.to_string()),
        "contended": measured.contended_by.is_some(),
        "rule": measured.rule,
        "settled": measured.settled,
        "cpu_ns": cpu_ns,
    })
}
