//! Windows on cards that only the tool can read. Each test in a process of its own: which driver
//! library and which tool are meant is said by the environment.

use std::{env, process::Command, thread, time::Duration};

use joulebook::{Fault, Meter, Method, Node, core::Tenancy};

use super::bench::{Bench, scenario, script, until};

const CHILD: &str = "JOULEBOOK_TEST_METER";

/// Runs the test again with this tool and no driver library.
fn with_tool(name: &str, bench: &Bench, library: &str, body: impl FnOnce()) {
    if env::var_os(CHILD).is_some() {
        return body();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args([&format!("smi_reader::meter::{name}"), "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("JOULEBOOK_NVML", library)
        // Found on PATH, by its usual name.
        .env("PATH", format!("{}:/usr/bin:/bin", bench.folder.path().display()))
        .env("XDG_STATE_HOME", bench.folder.path())
        .env_remove("JOULEBOOK_SMI")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    print!("{said}");
}

const NO_LIBRARY: &str = "/nowhere/libnvidia-ml.so.1";

#[test]
fn windows_are_measured_where_only_the_tool_reads_the_card() {
    let text = "card 0\n idle 50\n step 2 250\n step 4 50\n card 1\n idle 80";
    let bench = scenario(text);
    let name = "windows_are_measured_where_only_the_tool_reads_the_card";
    with_tool(name, &bench, NO_LIBRARY, || {
        let meter = Meter::for_node(&Node::of("0").idle_watts(50.0)).unwrap();
        assert!(meter.wait_ready(Duration::from_secs(10)));
        // The scenario began before this process: the step may be anywhere, the truth is constant
        // after it.
        until(|| meter.power().filter(|power| *power == 250.0));
        let window = meter.open();
        thread::sleep(Duration::from_millis(900));
        let measured = window.close().settle(Duration::from_secs(3));
        assert_eq!(measured.method, Method::Sampled, "{measured:?}");
        assert_eq!(measured.backend, "smi_sampler");
        let truth = 200.0 * measured.seconds;
        let joules = measured.joules.unwrap();
        let bound = measured.bound_joules.unwrap();
        assert!((joules - truth).abs() <= bound, "{joules} ± {bound}, not {truth}");
        assert!(measured.samples >= 4 && measured.rejected == 0, "{measured:?}");
        assert_eq!(measured.tenancy, Tenancy::Alone);
        // With the last meter the tool ends.
        drop(meter);
        until(|| (super::life::children().is_empty()).then_some(()));
    });
}

#[test]
fn a_window_shorter_than_the_sensor_averages_is_refused() {
    let bench = scenario("driver 470.1\n card 0\n idle 50\n name NVIDIA GeForce RTX 3090");
    let name = "a_window_shorter_than_the_sensor_averages_is_refused";
    with_tool(name, &bench, NO_LIBRARY, || {
        let meter = Meter::for_node(&Node::of("0").idle_watts(10.0)).unwrap();
        assert!(meter.wait_ready(Duration::from_secs(10)));
        let window = meter.open();
        thread::sleep(Duration::from_millis(300));
        let measured = window.close().settle(Duration::from_secs(2));
        assert_eq!(measured.error, Some(Fault::WindowBelowResolution), "{measured:?}");
        assert_eq!((measured.method, measured.joules), (Method::Unknown, None));
        let window = meter.open();
        thread::sleep(Duration::from_millis(1500));
        let measured = window.close().settle(Duration::from_secs(2));
        assert_eq!(measured.method, Method::Sampled, "{measured:?}");
    });
}

#[test]
fn a_tool_that_hangs_closes_its_windows_as_unknown() {
    let bench = scenario("card 0\n fault 1 inf smi.hang x 600000");
    with_tool("a_tool_that_hangs_closes_its_windows_as_unknown", &bench, NO_LIBRARY, || {
        let meter = Meter::for_node(&Node::of("0").idle_watts(10.0)).unwrap();
        assert!(meter.wait_ready(Duration::from_secs(10)));
        until(|| meter.cards()[0].trouble());
        let window = meter.open();
        thread::sleep(Duration::from_millis(200));
        let measured = window.close().now();
        assert_eq!(measured.error, Some(Fault::Timeout), "{measured:?}");
        assert_eq!((measured.method, measured.joules), (Method::Unknown, None));
        assert_eq!(measured.backend, "smi_sampler");
    });
}

#[test]
fn false_zero_04_where_nothing_reads_both_reasons_are_told() {
    // A library that is not NVML, and a tool that finds no driver.
    let bench = script("exit 9");
    let libc =
        ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6"];
    let Some(library) = libc.into_iter().find(|path| std::path::Path::new(path).exists()) else {
        println!("skipped: no library at hand that is not NVML");
        return;
    };
    with_tool("false_zero_04_where_nothing_reads_both_reasons_are_told", &bench, library, || {
        let error = Meter::for_node(&Node::of("0")).unwrap_err();
        assert_eq!(error.fault(), Fault::NvmlSymbolMissing);
        let text = error.to_string();
        assert!(text.contains("no NVML library") && text.contains("nvidia-smi"), "{text}");
        assert!(text.contains("driver_absent"), "{text}");
        let measured = Meter::for_node_or_none(&Node::of("0")).open().close().now();
        assert_eq!((measured.backend, measured.method), ("none", Method::Unknown));
        assert_eq!(measured.error, Some(Fault::NvmlSymbolMissing));
        assert_eq!(measured.joules, None);
    });
}

#[test]
fn a_hundred_windows_cost_one_child() {
    let bench = scenario("card 0\n smi spawn_ms=24 mode=spin");
    with_tool("a_hundred_windows_cost_one_child", &bench, NO_LIBRARY, || {
        let seconds = env::var("JOULEBOOK_TEST_SECONDS").ok().and_then(|text| text.parse().ok());
        let seconds = seconds.unwrap_or(1.0);
        let meter = Meter::for_node(&Node::of("0").idle_watts(10.0)).unwrap();
        assert!(meter.wait_ready(Duration::from_secs(10)));
        let feed = joulebook::smi::Feed::of(&joulebook::smi::Program::default()).unwrap();
        until(|| (feed.cost().starts == 2).then_some(()));
        let before = (feed.cost(), meter.cards()[0].cost());
        let windows: Vec<_> = (0..100).map(|_| meter.open()).collect();
        thread::sleep(Duration::from_secs_f64(seconds));
        let measured: Vec<_> = windows.into_iter().map(|window| window.close().now()).collect();
        assert!(measured.iter().all(|one| one.gross_joules.is_some()), "{:?}", measured[0]);
        let after = (feed.cost(), meter.cards()[0].cost());
        println!(
            "100 windows for {seconds} s: the tool {:.1} ms of CPU in {} new calls, {} rows; the \
             thread that reads it {:.1} ms, the recorder {:.1} ms",
            (after.0.cpu_ns - before.0.cpu_ns) as f64 / 1e6,
            after.0.starts - before.0.starts,
            after.0.rows - before.0.rows,
            (after.0.thread_cpu_ns - before.0.thread_cpu_ns) as f64 / 1e6,
            (after.1.cpu_ns - before.1.cpu_ns) as f64 / 1e6
        );
        let lists = seconds / 5.0 + 1.0;
        assert!((after.0.starts - before.0.starts) as f64 <= lists, "no call for a window");
    });
}
