use std::collections::BTreeMap;

use super::*;

/// A tree whose processes have names.
struct Tree(BTreeMap<u32, (u32, &'static str)>);

impl Tree {
    fn of<const N: usize>(list: [(u32, u32, &'static str); N]) -> Self {
        Self(list.into_iter().map(|(pid, parent, name)| (pid, (parent, name))).collect())
    }
}

impl Ancestry for Tree {
    fn parent(&self, pid: u32) -> Option<u32> {
        self.0.get(&pid).map(|(parent, _)| *parent)
    }

    fn name(&self, pid: u32) -> Option<String> {
        self.0.get(&pid).map(|(_, name)| (*name).to_owned())
    }
}

fn orphan(_: u32) -> Option<u32> {
    None
}

fn process(pid: u32, used_mib: Option<u64>, name: &str) -> Process {
    Process { pid, used_mib, name: name.to_owned() }
}

fn matching(text: &str) -> Rules {
    Rules { own: Own::Matching(text.to_owned()), ..Rules::default() }
}

fn foreign(names: &[&str]) -> Tenancy {
    Tenancy::Foreign(names.iter().map(ToString::to_string).collect())
}

#[test]
fn nobody_is_alone() {
    let verdict = decide(Ok(&[]), &matching("vllm"), &orphan);
    assert_eq!(verdict, Verdict { tenancy: Tenancy::Alone, contended: false });
    assert_eq!(verdict.contended_by(), None);
}

// Cases tenancy-01 and tenancy-06.
#[test]
fn not_seen_is_not_nobody() {
    let hidden = Unseen { fault: Fault::Permission, hidden_by: Some("pid_namespace") };
    for (unseen, word) in [(hidden, "pid_namespace"), (Fault::Timeout.into(), "timeout")] {
        let verdict = decide(Err(unseen), &matching("vllm"), &orphan);
        assert!(!verdict.contended);
        assert!(
            matches!(&verdict.tenancy, Tenancy::Unknown(why) if why.contains(word)),
            "{verdict:?}"
        );
    }
}

// Case tenancy-03.
#[test]
fn memory_that_is_not_known_counts_as_large() {
    let rows = [process(1300, None, r"C:\apps\other.exe")];
    let verdict = decide(Ok(&rows), &matching("vllm"), &orphan);
    assert_eq!(verdict.tenancy, foreign(&[r"C:\apps\other.exe (N/A MiB)"]));
    assert!(verdict.contended);
}

// Case tenancy-05.
#[test]
fn one_tree_is_ours_and_of_two_none_is() {
    let parents = |pid: u32| match pid {
        10 | 11 => Some(900),
        20 => Some(901),
        21 => Some(777),
        _ => None,
    };
    let rules = matching("VLLM");
    for worker in
        [process(10, Some(900), "VLLM::Worker_TP0"), process(11, Some(900), "VLLM::Worker_TP1")]
    {
        assert_eq!(decide(Ok(&[worker]), &rules, &parents).tenancy, Tenancy::Alone);
    }
    let both =
        [process(10, Some(900), "VLLM::Worker_TP0"), process(11, Some(900), "VLLM::Worker_TP1")];
    assert_eq!(decide(Ok(&both), &rules, &parents).tenancy, Tenancy::Alone, "one parent");
    let two =
        [process(20, Some(900), "VLLM::EngineCore"), process(21, Some(800), "VLLM::EngineCore")];
    let verdict = decide(Ok(&two), &rules, &parents);
    assert!(verdict.contended);
    assert_eq!(
        verdict.contended_by().unwrap(),
        "VLLM::EngineCore (800 MiB), VLLM::EngineCore (900 MiB)"
    );
}

#[test]
fn two_servers_of_one_shell_are_two_and_workers_of_one_server_are_one() {
    let tree = Tree::of([
        (50, 1, "bash -c llama-server a & llama-server b"),
        (51, 50, "llama-server --port 1"),
        (52, 50, "llama-server --port 2"),
        (60, 50, "vllm serve model"),
        (61, 60, "VLLM::EngineCore"),
        (62, 61, "VLLM::Worker_DP0"),
        (63, 61, "VLLM::Worker_DP1"),
    ]);
    let two =
        [process(51, Some(900), "/opt/llama-server"), process(52, Some(900), "/opt/llama-server")];
    assert!(decide(Ok(&two), &matching("llama-server"), &tree).contended);
    let workers = [
        process(61, Some(600), "VLLM::EngineCore"),
        process(62, Some(900), "VLLM::Worker_DP0"),
        process(63, Some(900), "VLLM::Worker_DP1"),
    ];
    assert_eq!(decide(Ok(&workers), &matching("vllm"), &tree).tenancy, Tenancy::Alone);
    // In a container the server may be the first process of all.
    let contained = Tree::of([(1, 0, "vllm serve"), (2, 1, "VLLM::A"), (3, 1, "VLLM::B")]);
    let pair = [process(2, Some(600), "VLLM::A"), process(3, Some(600), "VLLM::B")];
    assert_eq!(decide(Ok(&pair), &matching("vllm"), &contained).tenancy, Tenancy::Alone);
}

#[test]
fn a_process_told_by_its_id_goes_before_names() {
    let tree = Tree::of([(51, 1, "llama-server"), (52, 1, "llama-server"), (53, 51, "worker")]);
    let all = [
        process(51, Some(900), "/opt/llama-server"),
        process(52, Some(700), "/opt/llama-server"),
        process(53, Some(800), "/opt/worker"),
    ];
    let own = Own::choose(Some("llama-server"), Some(vec![51]), vec![]);
    let rules = Rules { own, ..Rules::default() };
    let verdict = decide(Ok(&all), &rules, &tree);
    assert_eq!(verdict.tenancy, foreign(&["/opt/llama-server (700 MiB)"]));
    assert!(verdict.contended);
    // A port on which nobody listens names nobody: all are others.
    let nobody = Rules { own: Own::Serving(vec![]), ..Rules::default() };
    assert!(decide(Ok(&all), &nobody, &tree).contended);
}

#[test]
fn a_node_that_named_nothing_is_never_contended() {
    let tree = Tree::of([(100, 1, "app"), (101, 100, "child"), (200, 1, "other")]);
    let rules = Rules { own: Own::choose(None, None, vec![100]), ..Rules::default() };
    let ours = [process(101, Some(900), "child")];
    assert_eq!(decide(Ok(&ours), &rules, &tree).tenancy, Tenancy::Alone);
    let both = [process(101, Some(900), "child"), process(200, Some(900), "other")];
    let verdict = decide(Ok(&both), &rules, &tree);
    assert_eq!(verdict.tenancy, foreign(&["other (900 MiB)"]));
    assert!(!verdict.contended);
    assert_eq!(verdict.contended_by(), None);
    assert_eq!(Own::choose(Some(" "), None, vec![1]), Own::Trees(vec![1]), "an empty name is none");
}

#[test]
fn small_ones_and_ignored_ones_are_no_tenants() {
    let rules = Rules {
        contention_ignore: vec!["XORG".to_owned(), "gnome-shell".to_owned(), String::new()],
        ..matching("vllm")
    };
    let rows = [
        process(1, Some(511), "/usr/bin/small"),
        process(2, Some(4000), "/usr/lib/xorg/Xorg"),
        process(3, None, "/usr/bin/gnome-shell"),
        process(4, Some(8000), "/opt/VLLM/engine"),
    ];
    assert_eq!(decide(Ok(&rows), &rules, &orphan).tenancy, Tenancy::Alone);
    let at_the_floor = [process(1, Some(512), "/usr/bin/b"), process(2, Some(900), "/usr/bin/a")];
    let verdict = decide(Ok(&at_the_floor), &rules, &orphan);
    assert_eq!(verdict.contended_by().unwrap(), "/usr/bin/a (900 MiB), /usr/bin/b (512 MiB)");
}

#[test]
fn long_names_are_cut_between_characters() {
    let name = format!("{}é{}", "x".repeat(79), "y".repeat(40));
    assert_eq!(witness(&process(1, Some(7), &name)), format!("{}é (7 MiB)", "x".repeat(79)));
}

#[test]
fn a_tree_that_bites_its_tail_ends() {
    let ring = |pid: u32| Some(if pid == 2 { 3 } else { 2 });
    let rows = [process(2, Some(900), "vllm")];
    assert_eq!(decide(Ok(&rows), &matching("vllm"), &ring).tenancy, Tenancy::Alone);
    let rules = Rules { own: Own::Trees(vec![9]), ..Rules::default() };
    assert!(matches!(decide(Ok(&rows), &rules, &ring).tenancy, Tenancy::Foreign(_)));
}

/// A tree whose processes listen on ports; a port that cannot be seen is `None`.
struct Listeners(BTreeMap<u32, (u32, Option<u16>)>);

impl Ancestry for Listeners {
    fn parent(&self, pid: u32) -> Option<u32> {
        self.0.get(&pid).map(|(parent, _)| *parent)
    }

    fn ports(&self, pid: u32) -> Option<Vec<u16>> {
        self.0.get(&pid)?.1.map(|port| vec![port])
    }

    fn is_known(&self, pid: u32) -> bool {
        self.0.contains_key(&pid)
    }
}

#[test]
fn two_servers_of_one_name_are_told_apart_by_their_port() {
    let tree = |unseen: bool| {
        let port = |port: u16| Some(port).filter(|_| !unseen);
        Listeners(BTreeMap::from([
            (50, (0, Some(1))),
            (60, (50, port(8000))),
            (61, (60, Some(1))),
            (70, (50, port(8001))),
            (71, (70, Some(1))),
        ]))
    };
    let both = [process(61, Some(900), "VLLM::A"), process(71, Some(800), "VLLM::B")];
    let listening = |port| Rules { own: Own::Listening(port), ..Rules::default() };
    let verdict = decide(Ok(&both), &listening(8000), &tree(false));
    assert_eq!(verdict.contended_by().as_deref(), Some("VLLM::B (800 MiB)"));
    let verdict = decide(Ok(&both[..1]), &listening(8000), &tree(false));
    assert_eq!(verdict.tenancy, Tenancy::Alone);
    // Nobody listens, and all could be seen: nobody on the card is ours.
    let verdict = decide(Ok(&both), &listening(9), &tree(false));
    assert_eq!(verdict.tenancy, foreign(&["VLLM::A (900 MiB)", "VLLM::B (800 MiB)"]));
    // Whoever listens may be one that cannot be seen.
    let verdict = decide(Ok(&both), &listening(8000), &tree(true));
    assert!(!verdict.contended);
    assert!(matches!(&verdict.tenancy, Tenancy::Unknown(why) if why.contains("8000")));
}

#[test]
fn a_process_of_unknown_descent_is_neither_ours_nor_others() {
    let resident = [process(7, Some(900), "python")];
    let nothing_known = Listeners(BTreeMap::new());
    let serving = |pid| Rules { own: Own::Serving(vec![pid]), ..Rules::default() };
    assert_eq!(decide(Ok(&resident), &serving(7), &nothing_known).tenancy, Tenancy::Alone);
    let verdict = decide(Ok(&resident), &serving(8), &nothing_known);
    assert!(matches!(verdict.tenancy, Tenancy::Unknown(_)) && !verdict.contended);
    let elsewhere = Rules { own: Own::Elsewhere, ..Rules::default() };
    let verdict = decide(Ok(&resident), &elsewhere, &nothing_known);
    assert!(matches!(&verdict.tenancy, Tenancy::Unknown(why) if why.contains("serving_match")));
    assert_eq!(decide(Ok(&[]), &elsewhere, &nothing_known).tenancy, Tenancy::Alone);
}

#[test]
fn a_name_that_would_steer_a_terminal_is_written_without_that() {
    let named = witness(&process(1, Some(9), "\u{1b}[2J\u{7}evil\r\n\u{9b}31mname"));
    assert_eq!(named, "[2Jevil31mname (9 MiB)");
    let turned = witness(&process(1, Some(9), "\u{202e}gpj.exe\u{2066}\u{200b} Ünïcode"));
    assert_eq!(turned, "gpj.exe Ünïcode (9 MiB)");
    let long = "\u{1b}".repeat(80) + &"x".repeat(200);
    assert_eq!(witness(&process(1, None, &long)), "x".repeat(80) + " (N/A MiB)");
}
