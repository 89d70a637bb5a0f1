use std::time::Duration;

use joulebook::{Method, Node, Process, Tenancy, wire};

use super::{
    agent::{Agent, meter},
    bench::{Bench, eventually},
};

const LONG: Duration = Duration::from_secs(20);

fn residents(names: &[(u32, &str)]) -> wire::Residents {
    let process = |(pid, name): &(u32, &str)| Process {
        pid: *pid,
        used_mib: Some(4000),
        name: (*name).to_owned(),
    };
    let kin = |pid, parent, ports: &[u16]| wire::Kin {
        pid,
        parent: Some(parent),
        name: None,
        ports: Some(ports.to_vec()),
    };
    // Two servers, each with a worker on the card; 1 is the host's first process.
    let family = vec![
        kin(1, 0, &[22]),
        kin(60, 1, &[8000]),
        kin(61, 60, &[]),
        kin(70, 1, &[8001]),
        kin(71, 70, &[]),
    ];
    let processes = Some(names.iter().map(process).collect());
    wire::Residents { gpu: 0, from_ns: 1, processes, error: None, family }
}

/// What a window says of who was there.
fn seen(bench: &Bench, node: &Node) -> (Tenancy, Method, Option<String>) {
    let meter = meter(node);
    let window = meter.open();
    bench.works(400.0, 100);
    let settled = window.close().settle(LONG);
    (settled.tenancy, settled.method, settled.contended_by)
}

#[test]
fn ours_is_told_by_the_remote_hosts_processes() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let node = agent.node();
    let both = "VLLM::B (4000 MiB)";
    agent.hand.residents(residents(&[(61, "VLLM::A"), (71, "VLLM::B")]));
    let card = meter(&node).cards()[0].clone();
    eventually(|| card.residents_now().is_some());
    for named in [
        Node { serving_pid: Some(60), ..node.clone() },
        Node { serving_port: Some(8000), ..node.clone() },
        Node { serving_match: Some("VLLM::A".into()), ..node.clone() },
    ] {
        let (tenancy, method, by) = seen(&bench, &named);
        assert_eq!((tenancy, method), (Tenancy::Foreign, Method::Unknown), "{named:?}");
        assert_eq!(by.as_deref(), Some(both), "{named:?}");
    }
    // Nothing said: whose they are is not known, and nobody is accused.
    let (tenancy, method, by) = seen(&bench, &node);
    assert_eq!((tenancy, method, by), (Tenancy::Unknown, Method::Sampled, None));
    // A process of ours that happens to have the number of a remote one is not it.
    let own = std::process::id();
    agent.hand.residents(residents(&[(own, "python")]));
    eventually(|| {
        let now = card.residents_now().unwrap().processes.unwrap();
        now.iter().any(|process| process.pid == own)
    });
    let (tenancy, ..) = seen(&bench, &node);
    assert_eq!(tenancy, Tenancy::Unknown);
    // One alone.
    agent.hand.residents(residents(&[(61, "VLLM::A")]));
    eventually(|| card.residents_now().unwrap().processes.unwrap().len() == 1);
    let port = Node { serving_port: Some(8000), ..node };
    eventually(|| seen(&bench, &port).0 == Tenancy::Alone);
}

#[test]
fn what_cannot_be_seen_there_is_unknown_here() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let node = Node { serving_match: Some("vllm".into()), ..agent.node() };
    // Nobody has looked.
    let (tenancy, method, _) = seen(&bench, &node);
    assert_eq!((tenancy, method), (Tenancy::Unknown, Method::Sampled));
    let mut hidden = residents(&[]);
    (hidden.processes, hidden.error) = (None, Some("pid_namespace".into()));
    agent.hand.residents(hidden);
    let card = meter(&node).cards()[0].clone();
    eventually(|| card.residents_now().is_some());
    assert_eq!(card.residents_now().unwrap().error.as_deref(), Some("pid_namespace"));
    assert_eq!(seen(&bench, &node).0, Tenancy::Unknown);
    // An agent that does not tell where processes come from: a child of ours is not told apart.
    let mut orphans = residents(&[(61, "worker")]);
    orphans.family.clear();
    agent.hand.residents(orphans);
    eventually(|| card.residents_now().unwrap().processes.is_some());
    let pid = Node { serving_pid: Some(60), ..agent.node() };
    assert_eq!(seen(&bench, &pid).0, Tenancy::Unknown);
    let port = Node { serving_port: Some(8000), ..agent.node() };
    assert_eq!(seen(&bench, &port).0, Tenancy::Unknown);
}
