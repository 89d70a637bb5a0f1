//! Remote windows beside local ones on the same card, over ways of several lengths and with a clock
//! three seconds off: no figure may lie outside of its own bound. `measure/remote` does the same for
//! longer, and says how far off they are.

use std::{sync::atomic::Ordering, thread, time::Duration};

use joulebook::{Meter, Node};

use super::{
    agent::{Agent, at, meter},
    bench::{Bench, Moment, REST_W},
    relay::relay,
};

const LONG: Duration = Duration::from_secs(20);

/// What the windows of one way came to.
#[derive(Debug, Default)]
struct Count {
    figures: u32,
    missing: u32,
    outside: u32,
}

impl Count {
    fn add(&mut self, measured: &joulebook::Measurement, truth_j: f64, open_j: f64) {
        match (measured.gross_joules, measured.bound_joules) {
            (Some(gross_j), Some(bound_j)) => {
                self.figures += 1;
                if (gross_j - truth_j).abs() > bound_j + open_j {
                    self.outside += 1;
                    println!("{truth_j} J (± {open_j}) is not {measured:?}");
                }
            }
            _ => self.missing += 1,
        }
    }
}

/// Half of the windows end while the work goes on: an end that is taken for another instant then
/// shows.
fn measure(
    bench: &Bench,
    meters: [&Meter; 2],
    length: Duration,
    goes_on: bool,
    counts: &mut [Count; 3],
) {
    let (opened, windows) = Moment::of(|| meters.map(Meter::open));
    bench.draws(400.0);
    thread::sleep(length / 2);
    bench.draws(if goes_on { 400.0 } else { 180.0 });
    thread::sleep(length / 2);
    if !goes_on {
        bench.draws(REST_W);
    }
    let (closed, pending) = Moment::of(|| windows.map(joulebook::Window::close));
    let truth_j = bench.truth_j(opened.after_ns, closed.before_ns);
    let open_s = (opened.after_ns - opened.before_ns + closed.after_ns - closed.before_ns) as f64;
    let open_j = 700.0 * open_s / 1e9 + 0.01;
    if goes_on {
        thread::sleep(Duration::from_millis(250));
        bench.draws(REST_W);
    }
    let [local, remote] = pending;
    counts[0].add(&local.settle(LONG), truth_j, open_j);
    counts[1].add(&remote.now(), truth_j, open_j);
    counts[2].add(&remote.settle(LONG), truth_j, open_j);
    thread::sleep(Duration::from_millis(150));
}

#[test]
fn no_remote_window_lies_outside_of_its_bound() {
    let bench = Bench::new();
    let local = bench.meter();
    // There and back, ms.
    for (there, back) in [(0, 0), (20, 20), (200, 200), (5, 60)] {
        let agent = Agent::of(&bench.card);
        agent.hand.ahead_ns.store(3_000_000_000, Ordering::SeqCst);
        let ms = Duration::from_millis;
        let way = relay(agent.port, ms(there), ms(back));
        let remote = meter(&Node::at(at(way), "0").idle_watts(REST_W));
        let mut counts: [Count; 3] = Default::default();
        for (length_ms, times) in [(100, 8), (1000, 2)] {
            for turn in 0..times {
                let goes_on = turn % 2 == 1;
                measure(&bench, [&local, &remote], ms(length_ms), goes_on, &mut counts);
            }
        }
        println!("{there} + {back} ms: local, remote at once, remote settled: {counts:?}");
        for count in &counts {
            assert_eq!(count.outside, 0, "{there} + {back} ms: {counts:?}");
        }
        assert_eq!(counts[2].missing, 0, "{there} + {back} ms: {counts:?}");
    }
}
