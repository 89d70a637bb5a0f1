use joulebook::{
    Fault, Reader, Tenants,
    nvml::PidNamespace,
    smi::{SmiCard, SmiTenants},
};

use super::bench::{Bench, scenario, script, until, watts};

fn tenants(bench: &Bench) -> (SmiTenants, SmiCard) {
    let feed = bench.feed();
    let card = feed.cards().unwrap().pop().unwrap();
    let tenants = SmiTenants::open(&feed, &card).in_namespace(PidNamespace::Host);
    (tenants, SmiCard::open(&feed, &card))
}

/// A tool that knows no list for programs, on a machine with two processes on its second card.
fn without_list(keeps: &str) -> Bench {
    let inner = scenario(
        "card 0\n proc 0 inf 900001 5 nobody\n card 1\n idle 81\n proc 0 inf 900002 1800 \
         /opt/serve",
    );
    let refuse = "echo 'Invalid combination of input arguments. Please run nvidia-smi -h for \
                  help.'; exit 2";
    let rest = format!("*query-gpu*|{keeps}) exec '{}' \"$@\" ;;", inner.path().display());
    let bench = script(&format!("case \"$*\" in\n{rest}\n*) {refuse} ;;\nesac"));
    // Its folder must live as long.
    std::mem::forget(inner);
    bench
}

#[test]
fn processes_are_listed_of_ones_own_card_in_one_call_for_all() {
    let bench = scenario(
        "card 0\n proc 0 inf 900001 5 nobody\n card 1\n proc 0 inf 900002 18200 /opt/run, \
         v2/serve --ids 1,2\n proc 0 inf 900003 -1 other",
    );
    let (mut tenants, _card) = tenants(&bench);
    let mut listed = tenants.resident().unwrap();
    listed.sort_by_key(|process| process.pid);
    let brief: Vec<_> =
        listed.iter().map(|one| (one.pid, one.used_mib, one.name.as_str())).collect();
    assert_eq!(
        brief,
        [(900_002, Some(18_200), "/opt/run, v2/serve --ids 1,2"), (900_003, None, "other")]
    );
    for _ in 0..20 {
        tenants.resident().unwrap();
    }
    let lists = bench.calls().iter().filter(|(_, call)| call.contains("compute-apps")).count();
    assert_eq!(lists, 1, "a list is kept for a while");
}

#[test]
fn the_monitor_and_the_xml_form_stand_in_for_the_list() {
    for keeps in ["pmon*", "*-q\\ -x*"] {
        let bench = without_list(keeps);
        let (mut tenants, _card) = tenants(&bench);
        let listed = until(|| tenants.resident().ok());
        let brief: Vec<_> = listed.iter().map(|one| (one.pid, one.used_mib)).collect();
        assert_eq!(brief, [(900_002, Some(1800))], "{keeps}");
        assert!(listed[0].name.ends_with("serve"), "{listed:?}");
    }
}

#[test]
fn tenancy_06_a_list_that_fails_is_not_nobody_and_costs_no_power() {
    let bench = scenario("card 0\n idle 230\n fault 0 inf procs timeout");
    let (mut tenants, mut card) = tenants(&bench);
    assert_eq!(tenants.resident(), Err(Fault::Unknown));
    assert_eq!(watts(card.read()), Ok(230.0));
}

#[test]
fn tenancy_01_an_empty_list_does_not_explain_a_full_and_busy_card() {
    let bench = scenario("card 0\n mem total_mib=11175 base_mib=10916\n util gpu=59");
    let (tenants, _card) = tenants(&bench);
    let mut inside = tenants.in_namespace(PidNamespace::Container);
    assert_eq!(inside.resident(), Err(Fault::Permission));
    assert_eq!(inside.hidden_by(), Some("pid_namespace"));
}
