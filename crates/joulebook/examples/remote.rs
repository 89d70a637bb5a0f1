//! The measurement `measure/remote`: windows on one simulated card, read here and through an agent in
//! another process, over ways of several lengths.
//!
//!     remote create CONTROL
//!     remote PORT CONTROL STATE_DIR [ROUNDS]
//!
//! The first makes the memory by which the card's watts are set. PORT is the agent's, CONTROL the live watts of card 0, STATE_DIR where both keep their profiles. A
//! window opens on the local and the remote card at once, the load steps to 400 W and to 180 W, and
//! both close; every other time the 400 W go on beyond the end. The truth is the load's exact integral.
//! Between windows the card rests at 70 W.

#![allow(clippy::print_stdout, reason = "its output is its result")]

#[path = "support/relay.rs"]
mod relay;

use std::{error::Error, path::Path, sync::Arc, thread, time::Duration};

use joulebook::{Measurement, Meter, Node, clock::now_ns, core::estimate::Rule, profile::Profiles};
use joulebook_lab::{
    Card, Load,
    clock::system_ns,
    control::{Control, ControlledCard},
    scenario::ClockKind,
};

const REST_W: f64 = 70.0;
const READY: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(10);
/// One way, ms.
const WAYS: [u64; 3] = [0, 20, 200];
/// Length, ms, and how many a round.
const LENGTHS: [(u64, usize); 3] = [(100, 20), (1000, 8), (5000, 3)];

/// One answer to one kind of window.
#[derive(Default)]
struct Tally {
    /// Off the truth above idle, as a share of it.
    off: Vec<f64>,
    /// Its bound, J.
    bounds: Vec<f64>,
    alone: usize,
    unresolved: usize,
    outside: usize,
    none: usize,
}

impl Tally {
    fn add(&mut self, measured: &Measurement, truth_j: f64, open_j: f64) {
        let figure = measured.gross_joules.zip(measured.bound_joules);
        let Some((gross_j, bound_j)) = figure else {
            self.none += 1;
            return;
        };
        let above_j = truth_j - REST_W * measured.seconds;
        self.off.push((gross_j - truth_j).abs() / above_j);
        self.bounds.push(bound_j);
        self.alone += usize::from(measured.rule == Some(Rule::Alone));
        self.unresolved += usize::from(measured.low_joules.is_some());
        self.outside += usize::from((gross_j - truth_j).abs() > bound_j + open_j);
    }

    fn cells(&mut self) -> String {
        let middle = |values: &mut Vec<f64>, share: f64| {
            values.sort_by(f64::total_cmp);
            let last = values.len().saturating_sub(1) as f64;
            values.get((last * share).round() as usize).copied().unwrap_or(f64::NAN)
        };
        format!(
            "{:.2} % | {:.2} % | {:.2} J | {} / {} / {} | {} | {}",
            100.0 * middle(&mut self.off, 0.5),
            100.0 * middle(&mut self.off, 0.95),
            middle(&mut self.bounds, 0.5),
            self.alone,
            self.off.len() - self.alone,
            self.none,
            self.unresolved,
            self.outside,
        )
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, path] = arguments.as_slice()
        && command == "create"
    {
        let control = Control::create(Path::new(path), 1, 1 << 16, ClockKind::Monotonic)?;
        control.set_watts(0, REST_W)?;
        return Ok(());
    }
    let (port, control_path, state, rounds) = match arguments.as_slice() {
        [port, control, state] => (port, control, state, 1),
        [port, control, state, rounds] => (port, control, state, rounds.parse()?),
        _ => return Err("usage: remote PORT CONTROL STATE_DIR [ROUNDS]".into()),
    };
    let control = Control::open(Path::new(control_path))?;
    control.set_watts(0, REST_W)?;
    let live = ControlledCard::new(control_path.into(), ClockKind::Monotonic, 0, 0);
    let card = Card { idle_w: REST_W, dynamic: true, ..Card::default() };
    let load = Load::new(&card, Some(Arc::new(live)));
    let local = Meter::for_node_with(&Node::of("0").idle_watts(REST_W), &Profiles::at(state))?;

    println!(
        "| one way | window | read | off (median) | (95 %) | bound | alone / shared / none | unresolved | outside |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut chance = now_ns();
    let mut outside = 0;
    for late_ms in WAYS {
        let late = Duration::from_millis(late_ms);
        let way = relay::relay(port.parse()?, late, late);
        let node = Node::at(format!("http://127.0.0.1:{way}"), "0").idle_watts(REST_W);
        let remote = Meter::for_node(&node)?;
        if !(local.wait_ready(READY) && remote.wait_ready(READY)) {
            return Err("a card has shown nothing yet".into());
        }
        thread::sleep(Duration::from_secs(2) + 4 * late);
        for (length_ms, times) in LENGTHS {
            let mut tallies: [Tally; 3] = Default::default();
            for turn in 0..times * rounds {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let pause_ms = 700 + (chance >> 33) % 300;
                thread::sleep(Duration::from_millis(pause_ms));
                let kind = (length_ms, turn % 2 == 1);
                window([&local, &remote], &control, &load, kind, &mut tallies)?;
            }
            for (name, mut tally) in
                ["here", "there, at once", "there, settled"].into_iter().zip(tallies)
            {
                println!("| {late_ms} ms | {length_ms} ms | {name} | {} |", tally.cells());
                outside += tally.outside;
            }
        }
        let connection = remote.cards().first().and_then(|card| card.connection());
        if let Some(offset) = connection.and_then(|connection| connection.now().offset) {
            eprintln!(
                "{late_ms} ms: the agent's clock is {:.3} s behind, ± {:.3} ms",
                offset.offset_ns as f64 / 1e9,
                offset.uncertainty_ns as f64 / 1e6
            );
        }
    }
    eprintln!("outside of their bounds: {outside}");
    Ok(())
}

fn window(
    meters: [&Meter; 2],
    control: &Control,
    load: &Load,
    (length_ms, goes_on): (u64, bool),
    tallies: &mut [Tally; 3],
) -> Result<(), Box<dyn Error>> {
    let half = Duration::from_millis(length_ms) / 2;
    let open_ns = now_ns();
    let windows = meters.map(Meter::open);
    let opened_ns = now_ns();
    control.set_watts(0, 400.0)?;
    thread::sleep(half);
    control.set_watts(0, if goes_on { 400.0 } else { 180.0 })?;
    thread::sleep(half);
    if !goes_on {
        control.set_watts(0, REST_W)?;
    }
    let close_ns = now_ns();
    let pending = windows.map(joulebook::Window::close);
    let closed_ns = now_ns();
    let before_ns = now_ns();
    let ahead_ns = system_ns(ClockKind::Monotonic) - before_ns.midpoint(now_ns()) as i64;
    let truth_j = load.energy(opened_ns as i64 + ahead_ns, close_ns as i64 + ahead_ns);
    // What the measurement itself cannot tell: when inside the calls each window opened and closed.
    let open_j = 400.0 * ((opened_ns - open_ns) + (closed_ns - close_ns)) as f64 / 1e9 + 0.01;
    let [local, remote] = pending;
    let at_once = remote.now();
    if goes_on {
        thread::sleep(Duration::from_millis(300));
        control.set_watts(0, REST_W)?;
    }
    let [here, there, settled] = tallies;
    there.add(&at_once, truth_j, open_j);
    here.add(&local.settle(SETTLE), truth_j, open_j);
    settled.add(&remote.settle(SETTLE), truth_j, open_j);
    Ok(())
}
