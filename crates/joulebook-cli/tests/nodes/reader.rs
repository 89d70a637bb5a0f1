//! The remote reader on a real agent in another process: windows through its stream, and its lives.

use std::{sync::Arc, thread, time::Duration};

use joulebook::{Fault, Measurement, Meter, Method, Node, Source, clock::now_ns, core::Flags};
use joulebook_lab::{Card, Load, clock::system_ns, control::ControlledCard, scenario::ClockKind};

use super::{
    bench::Bench,
    server::{Serving, until},
};

const LONG: Duration = Duration::from_secs(20);
const REST_W: f64 = 70.0;

/// A machine whose card's load is set by hand, and its truth.
struct Machine {
    bench: Bench,
    control: joulebook_lab::control::Control,
}

impl Machine {
    fn new() -> Self {
        let (bench, control) = Bench::live("counter period_ms=20\n");
        control.set_watts(0, REST_W).unwrap();
        Self { bench, control }
    }

    fn works(&self, watts: f64, milliseconds: u64) {
        self.control.set_watts(0, watts).unwrap();
        thread::sleep(Duration::from_millis(milliseconds));
        self.control.set_watts(0, REST_W).unwrap();
    }

    fn truth_j(&self, from_ns: u64, to_ns: u64) -> f64 {
        let live =
            Arc::new(ControlledCard::new(self.bench.path("control"), ClockKind::Monotonic, 0, 0));
        let card = Card { idle_w: REST_W, dynamic: true, ..Card::default() };
        let load = Load::new(&card, Some(live));
        let before_ns = now_ns();
        let ahead_ns = system_ns(ClockKind::Monotonic) - before_ns.midpoint(now_ns()) as i64;
        load.energy(from_ns as i64 + ahead_ns, to_ns as i64 + ahead_ns)
    }

    fn window(&self, meter: &Meter, meanwhile: impl FnOnce()) -> Measurement {
        let opened_ns = now_ns();
        let window = meter.open();
        let open_s = (now_ns() - opened_ns) as f64 / 1e9;
        self.works(400.0, 120);
        meanwhile();
        self.works(250.0, 80);
        let before_ns = now_ns();
        let pending = window.close();
        let close_s = (now_ns() - before_ns) as f64 / 1e9;
        let settled = pending.settle(LONG);
        if let (Some(gross_j), Some(bound_j)) = (settled.gross_joules, settled.bound_joules) {
            let truth_j = self.truth_j(opened_ns, before_ns);
            let open_j = 700.0 * (open_s + close_s) + 0.05;
            let off_j = (gross_j - truth_j).abs();
            assert!(off_j <= bound_j + open_j, "{truth_j} J is not {settled:?}");
        }
        settled
    }
}

fn follows(meter: &Meter) {
    let card = &meter.cards()[0];
    let more = card.series().pushed() + 12;
    until(|| (card.series().pushed() >= more && card.trouble().is_none()).then_some(()));
}

#[test]
fn windows_through_a_real_agent_hold_and_a_life_that_ends_is_no_figure() {
    let machine = Machine::new();
    let mut agent = Serving::on(&machine.bench, &[]);
    let address = agent.address.to_string();
    let node = Node::at(format!("http://{address}"), "0").idle_watts(REST_W);
    let meter = Meter::for_node(&node).unwrap();
    follows(&meter);
    for _ in 0..3 {
        let settled = machine.window(&meter, || {});
        assert_eq!(
            (settled.method, settled.source),
            (Method::Sampled, Source::Remote),
            "{settled:?}"
        );
        assert!(settled.settled && !settled.flags.contains(Flags::CLOCK_SKEW), "{settled:?}");
    }
    let state = joulebook::probe_node(&node).unwrap();
    assert_eq!(state.gpu, Some(0));
    assert!(state.watts.is_some() && state.memory_free_mib.is_some(), "{state:?}");

    let card = &meter.cards()[0];
    let torn = machine.window(&meter, || {
        agent.stop();
        until(|| card.trouble());
        agent = Serving::begin(
            &machine.bench,
            machine.bench.joulebook(["agent", "--bind"]).arg(&address),
        );
        follows(&meter);
    });
    assert_eq!((torn.method, torn.error), (Method::Unknown, Some(Fault::CounterReset)), "{torn:?}");
    let good = machine.window(&meter, || {});
    assert_eq!(good.method, Method::Sampled, "{good:?}");
    drop(agent);
}
