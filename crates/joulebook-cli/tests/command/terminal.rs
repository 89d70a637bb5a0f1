//! In a terminal: the command reads it, and its keys reach the command once.

use std::{
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use super::bench::{Bench, QUICK, wait_for};

/// Runs a line in a terminal of its own, types, and returns what the terminal showed; `None` where
/// there is no `script` to make one.
fn typed(bench: &Bench, line: &str, keys: &[u8]) -> Option<String> {
    let mark = bench.path("ready");
    let around = bench.joulebook([]);
    let environment = around.get_envs().filter_map(|(key, value)| Some((key, value?)));
    let script = Command::new("script")
        .args(["-qec", line, "/dev/null"])
        .envs(environment)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut script) = script else {
        println!("skipped: there is no script(1) here");
        return None;
    };
    wait_for(&mark);
    std::thread::sleep(Duration::from_millis(200));
    let mut input = script.stdin.take().unwrap();
    input.write_all(keys).unwrap();
    input.flush().unwrap();
    let output = script.wait_with_output().unwrap();
    drop(input);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_command_reads_the_terminal() {
    let bench = Bench::with(QUICK);
    let ready = bench.path("ready");
    let line = format!(
        "{} run --idle 0 -- sh -c 'touch {}; read word </dev/tty; echo \"got <$word>\"'",
        env!("CARGO_BIN_EXE_joulebook"),
        ready.display()
    );
    let Some(shown) = typed(&bench, &line, b"tea\n") else { return };
    assert!(shown.contains("got <tea>") && shown.contains("joulebook: "), "{shown}");
    assert!(!shown.contains('\u{1b}'), "NO_COLOR: {shown:?}");
}

#[test]
fn control_c_reaches_the_command_once_and_the_result_comes() {
    let bench = Bench::with(QUICK);
    let ready = bench.path("ready");
    let line = format!(
        "{} run --idle 0 -- sh -c 'trap \"echo struck\" INT; touch {}; i=0; \
         while [ $i -lt 30 ]; do sleep 0.05; i=$((i+1)); done; exit 6'; echo code $?",
        env!("CARGO_BIN_EXE_joulebook"),
        ready.display()
    );
    // The shell around it would be struck too.
    let line = format!("trap : INT; {line}");
    let Some(shown) = typed(&bench, &line, b"\x03") else { return };
    assert_eq!(shown.matches("struck").count(), 1, "{shown}");
    assert!(shown.contains("code 6") && shown.contains("(exit code 6)"), "{shown}");
}
