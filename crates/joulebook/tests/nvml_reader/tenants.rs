use std::{thread, time::Duration};

use joulebook::{
    AtWork, Meter, Method, Node, Process, Reader, Tenants,
    books::{Books, BooksError, Labels, Receipt, Settings, Usage},
    core::Fault,
    nvml::{CardState, Fit, NvmlGauge, NvmlTenants, PidNamespace, PowerField, fits, state},
    profile::Profiles,
    tenancy::{self, Own, Rules, Tenancy, Unseen},
};

use super::child::until;

// Process ids above the system's highest: no process of this machine has them.
with_scenario!(
    processes_are_listed_with_names_and_memory,
    "card 0\n proc 0 inf 5000001 18200 /opt/vllm/bin/python\n proc 0 inf 5000002 -1 Xorg",
    |bench| {
        let mut tenants = NvmlTenants::open(&bench.driver, &bench.card());
        let mut resident = tenants.resident().unwrap();
        resident.sort_by_key(|process| process.pid);
        assert_eq!(
            resident,
            [
                Process {
                    pid: 5_000_001,
                    used_mib: Some(18_200),
                    name: "/opt/vllm/bin/python".to_owned()
                },
                Process { pid: 5_000_002, used_mib: None, name: "Xorg".to_owned() },
            ]
        );
        assert_eq!(tenants.hidden_by(), None);
    }
);

with_scenario!(
    who_was_at_work_is_told_since_the_last_time,
    "card 0\n proc 0 inf 5000001 18200 sm=60 /opt/vllm\n proc 0 inf 5000002 9000 sm=0 /opt/rests\n \
     proc 0 inf 5000003 9000 /opt/untold\ncard 1\n proc 0 inf 5000004 9000 sm=0 /opt/rests\ncard 2\n \
     proc 0 inf 5000005 9000 sm=10 x\n fault 0 inf util notsupported\ncard 3\n fault 0 inf util \
     noperm",
    |bench| {
        let mut tenants: Vec<_> =
            bench.cards().iter().map(|card| NvmlTenants::open(&bench.driver, card)).collect();
        for _ in 0..3 {
            assert_eq!(tenants[0].at_work(), Ok(vec![AtWork { pid: 5_000_001, percent: 60 }]));
            // "Not found" is nobody.
            assert_eq!(tenants[1].at_work(), Ok(vec![]));
            assert_eq!(tenants[2].at_work(), Err(Fault::NotSupported));
            assert_eq!(tenants[3].at_work(), Err(Fault::Permission));
            // What this call cannot do, the list can.
            assert_eq!(tenants[2].resident().unwrap().len(), 1);
            thread::sleep(Duration::from_millis(20));
        }
    }
);

/// A request of half a second on a card that is shared all the while.
fn receipt_of(gpu: &str, folder: &std::path::Path) -> (Receipt, f64, f64) {
    let node = Node { serving_match: Some("vllm".to_owned()), ..Node::of(gpu).idle_watts(70.0) };
    let meter = Meter::for_node_with(&node, &Profiles::at(folder)).unwrap();
    assert!(meter.wait_ready(Duration::from_secs(30)));
    let books = Books::of(&meter, Settings::default()).unwrap();
    // Of the time before the second look nothing is told.
    thread::sleep(Duration::from_millis(2500));
    let mut ticket = books.open(&Labels::default());
    for _ in 0..50 {
        ticket.tokens(1);
        thread::sleep(Duration::from_millis(10));
    }
    let receipt = ticket.close(Usage::default()).settle(Duration::from_secs(30));
    let balance = books.trial_balance().unwrap();
    assert!(balance.balances());
    (receipt, balance.cards[0].foreign_joules, balance.cards[0].foreign_unresolved_joules)
}

with_scenario!(
    a_tenant_whose_work_is_told_is_charged_with_it,
    "card 0\n step 0 370\n counter period_ms=20\n proc 0 inf 5000001 18200 sm=60 /opt/vllm\n \
     proc 0 inf 5000002 9000 sm=20 /opt/train\ncard 1\n step 0 370\n counter period_ms=20\n \
     proc 0 inf 5000003 18200 sm=60 /opt/vllm\n proc 0 inf 5000004 9000 sm=20 /opt/train\n \
     fault 0 inf util notsupported",
    |bench| {
        let (receipt, foreign, _) = receipt_of("0", &bench.folder);
        assert_eq!((receipt.method, receipt.error), (Method::Sampled, None), "{receipt:?}");
        assert_eq!(receipt.contended_by.as_deref(), Some("/opt/train (9000 MiB)"));
        // 300 W above rest; three quarters of the work is ours. The ticks at its two ends are its
        // own whole, of 100 ms at most each.
        let (joules, bound) = (receipt.joules.unwrap(), receipt.bound_joules.unwrap());
        let truth = 300.0 * 0.75 * receipt.seconds;
        assert!(joules > truth - bound && joules < truth + bound + 45.0, "{truth} {receipt:?}");
        assert!(foreign > 0.25 * 300.0 * receipt.seconds, "{foreign}");
        let (receipt, foreign, unresolved) = receipt_of("1", &bench.folder);
        assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::SharedDevice)));
        assert_eq!(receipt.high_joules.map(|high| high > 150.0), Some(true), "{receipt:?}");
        assert!(foreign == 0.0 && unresolved > 150.0, "{foreign} {unresolved}");
    }
);

with_scenario!(
    a_card_that_is_read_anew_has_its_one_book_still,
    "card 0\n step 0 370\n counter period_ms=20",
    |bench| {
        let profiles = Profiles::at(&bench.folder);
        let far = Node::at("http://127.0.0.1:9", "0");
        for node in [Node::of("0"), far] {
            let meter = || Meter::for_node_with(&node, &profiles).unwrap();
            let open = |meter| Books::of(meter, Settings::default());
            let first = meter();
            let books = open(&first).unwrap();
            joulebook::release();
            let second = meter();
            assert!(matches!(open(&second), Err(BooksError::Kept { .. })), "{node:?}");
            books.close();
            drop(open(&second).unwrap());
            let books = open(&second).unwrap();
            // In a fork's child the parent's books are not kept.
            joulebook::fork::hold().in_child();
            assert!(open(&meter()).is_ok(), "{node:?}");
            drop(books);
        }
    }
);

// Case tenancy-06.
with_scenario!(
    a_list_that_fails_costs_no_reading_and_comes_back,
    "card 0\n idle 230\n fault 0 0.5 procs timeout",
    |bench| {
        let card = bench.card();
        let mut tenants = NvmlTenants::open(&bench.driver, &card);
        assert_eq!(tenants.resident(), Err(Fault::Timeout));
        assert_eq!(tenants.hidden_by(), None);
        assert!(NvmlGauge::open(&bench.driver, &card, PowerField::Average).read().is_ok());
        assert_eq!(until(|| tenants.resident().ok()), []);
    }
);

// Case tenancy-01.
with_scenario!(
    hidden_tenants_are_not_nobody,
    "card 0\n mem total_mib=11175 base_mib=10916\n util gpu=59\ncard 1\n mem base_mib=4",
    |bench| {
        let [busy, empty] = <[_; 2]>::try_from(bench.cards()).unwrap();
        for namespace in [PidNamespace::Host, PidNamespace::Container] {
            let open = |card| NvmlTenants::open(&bench.driver, card).in_namespace(namespace);
            let mut tenants = open(&busy);
            assert_eq!(tenants.resident(), Err(Fault::Permission), "{namespace:?}");
            assert!(tenants.hidden_by().is_some());
            assert_eq!(open(&empty).resident(), Ok(vec![]), "{namespace:?}");
        }
        let mut tenants =
            NvmlTenants::open(&bench.driver, &busy).in_namespace(PidNamespace::Container);
        let fault = tenants.resident().unwrap_err();
        let unseen = Unseen { fault, hidden_by: tenants.hidden_by() };
        let rules = Rules { own: Own::Matching("vllm".to_owned()), ..Rules::default() };
        let verdict = tenancy::decide(Err(unseen), &rules, &|_| None);
        assert!(!verdict.contended);
        let Tenancy::Unknown(why) = verdict.tenancy else { panic!("{verdict:?}") };
        assert!(why.contains("pid_namespace"), "{why}");
    }
);

with_scenario!(
    the_state_of_a_card_is_one_shape_and_says_what_fits,
    "card 0\n idle 120\n mem total_mib=24000 base_mib=100\n util gpu=35\n \
     proc 0 inf 5000001 20000 /opt/other",
    |bench| {
        let card = bench.card();
        let seen = state(&bench.driver, &card.uuid).unwrap();
        let CardState { gpu, watts, utilization_pct, compute_apps, .. } = &seen;
        assert_eq!((*gpu, *watts, *utilization_pct), (Some(0), Some(120.0), Some(35)));
        assert_eq!(compute_apps.as_ref().map(Vec::len), Some(1));
        assert_eq!(seen.memory_total_mib, Some(24_000));
        assert_eq!(seen.memory_used_mib, Some(20_100));
        assert_eq!(joulebook::probe_node(&joulebook::Node::of("0")).as_ref(), Some(&seen));
        assert_eq!(joulebook::fits(&joulebook::Node::of("0"), 1_000), Fit::Yes);
        assert_eq!(joulebook::fits(&joulebook::Node::of("9"), 1), Fit::Unknown);
        assert_eq!(fits(&seen, 1_000), Fit::Yes);
        let Fit::No { short_by_mib, held_by } = fits(&seen, 10_000) else { panic!("{seen:?}") };
        assert_eq!(short_by_mib, 10_000 - seen.memory_free_mib.unwrap());
        assert_eq!(held_by, ["/opt/other (20000 MiB)"]);
        let text = serde_json::to_value(&seen).unwrap();
        for key in [
            "gpu",
            "name",
            "watts",
            "memory_used_mib",
            "memory_total_mib",
            "memory_free_mib",
            "utilization_pct",
            "compute_apps",
        ] {
            assert!(text.get(key).is_some(), "{key}: {text}");
        }
    }
);

with_scenario!(
    a_field_that_fails_takes_no_other_with_it,
    "card 0\n fault 0 inf mem nodata\ncard 1\n fault 0 inf util notsupported\n\
     card 2\n fault 0 inf procs noperm\ncard 3\n fault 0 inf power lost\n \
     fault 0 inf instant lost\ncard 4\n fault 0 inf name unknown",
    |bench| {
        let states: Vec<CardState> =
            bench.cards().iter().map(|card| state(&bench.driver, &card.uuid).unwrap()).collect();
        let absent: Vec<Vec<&str>> = states
            .iter()
            .map(|state| {
                [
                    ("name", state.name.is_none()),
                    ("watts", state.watts.is_none()),
                    ("memory", state.memory_used_mib.is_none() && state.memory_free_mib.is_none()),
                    ("utilization", state.utilization_pct.is_none()),
                    ("processes", state.compute_apps.is_none()),
                ]
                .into_iter()
                .filter_map(|(name, is_absent)| is_absent.then_some(name))
                .collect()
            })
            .collect();
        assert_eq!(
            absent,
            [vec!["memory"], vec!["utilization"], vec!["processes"], vec!["watts"], vec!["name"]]
        );
        assert_eq!(fits(&states[0], 1), Fit::Unknown);
    }
);

with_scenario!(
    a_card_of_which_nothing_can_be_read_has_no_state,
    "card 0\n fault 0.3 inf all lost",
    |bench| {
        let uuid = bench.card().uuid;
        let fault = until(|| state(&bench.driver, &uuid).err());
        assert_eq!(fault, Fault::Lost);
        assert_eq!(state(&bench.driver, "GPU-none").unwrap_err(), Fault::Absent);
    }
);
