//! Whose work is on a card.

use joulebook::{
    Fault, Process,
    nvml::known_mib,
    tenancy::{Own, Rules, Tenancy, decide},
};
use serde_json::Value;

use super::passes;

fn serving(part: &str) -> Rules {
    Rules { own: Own::Matching(part.to_owned()), ..Rules::default() }
}

#[test]
fn tenancy_01() {
    let answer = passes("tenancy-01");
    let reason = answer["reason"].as_str().expect("a reason");
    assert!(reason.contains("pid_namespace"), "{reason}");
    assert_ne!(answer["contended"], false, "it does not vouch");
}

#[test]
fn tenancy_03() {
    let answer = passes("tenancy-03");
    assert_eq!(known_mib(u64::MAX), None, "not 17,592,186,044,415 MiB");
    let by = answer["contended_by"].as_str().expect("a name");
    assert!(by.contains("other.exe") && by.contains("N/A"), "{by}");
}

#[test]
fn tenancy_05() {
    passes("tenancy-05");
    // Two servers of one name on the host, each on a card of its own, contend for none.
    let worker = |pid| Process { pid, used_mib: Some(9000), name: "VLLM::Worker".to_owned() };
    let parents = |pid: u32| Some(pid / 10);
    for pid in [9001, 7771] {
        let alone = decide(Ok(&[worker(pid)]), &serving("VLLM"), &parents);
        assert_eq!((alone.tenancy, alone.contended), (Tenancy::Alone, false));
    }
    let both = decide(Ok(&[worker(9001), worker(7771)]), &serving("VLLM"), &parents);
    assert!(both.contended, "of two trees neither can be taken for ours");
}

#[test]
fn tenancy_06() {
    let answer = passes("tenancy-06");
    assert_eq!(answer["contended"], Value::Null);
    let unseen = decide(Err(Fault::Timeout.into()), &serving("vllm"), &|_| None);
    assert!(matches!(unseen.tenancy, Tenancy::Unknown(why) if why.contains("timeout")));
}
