use std::time::Duration;

use joulebook::{Fault, Measurement, Method, Node, Process, Tenancy, core::estimate::Rule};

use super::bench::{Bench, REST_W, Setup};

const LONG: Duration = Duration::from_secs(20);

fn process(pid: u32, name: &str) -> Process {
    Process { pid, used_mib: Some(4096), name: name.to_owned() }
}

fn measure(tenants: Vec<Process>, node: &Node) -> Measurement {
    let bench = Bench::with(Setup { tenants, ..Setup::default() });
    bench.pass(20);
    let mut window = bench.meter_of(node).open();
    bench.works(400.0, 150);
    window.mark("all");
    window.close().settle(LONG)
}

/// No process of this machine.
const STRANGER: u32 = 4_100_000_000;

#[test]
fn our_own_process_is_no_tenant() {
    let node = Node::of("0").idle_watts(REST_W);
    let measured = measure(vec![process(std::process::id(), "/bin/us")], &node);
    assert_eq!((measured.tenancy, measured.method), (Tenancy::Alone, Method::Sampled));
    let nobody = measure(Vec::new(), &node);
    assert_eq!(nobody.tenancy, Tenancy::Alone);
}

#[test]
fn a_stranger_decides_the_rule_and_demotes_nothing_unless_the_node_named_its_own() {
    let stranger = || vec![process(STRANGER, "/opt/other"), process(std::process::id(), "serve")];
    let plain = Node::of("0").idle_watts(REST_W);
    let measured = measure(stranger(), &plain);
    assert_eq!((measured.tenancy, measured.contended_by), (Tenancy::Foreign, None));
    assert_eq!((measured.method, measured.rule), (Method::Sampled, Some(Rule::Shared)));

    let named = Node { serving_match: Some("serve".into()), ..plain };
    let measured = measure(stranger(), &named);
    assert_eq!(measured.contended_by.as_deref(), Some("/opt/other (4096 MiB)"));
    assert_eq!((measured.method, measured.joules), (Method::Unknown, None));
    assert_eq!(measured.error, Some(Fault::SharedDevice));
    assert!(measured.gross_joules.is_some(), "witnessed, not measured");
    let (_, stage) = &measured.stages[0];
    assert_eq!((stage.method, stage.joules), (Method::Unknown, None), "{stage:?}");
    assert!(stage.contended_by.is_some() && stage.gross_joules.is_some());

    let ignored = Node { contention_ignore: vec!["OTHER".into()], ..named };
    assert_eq!(measure(stranger(), &ignored).method, Method::Sampled);
}
