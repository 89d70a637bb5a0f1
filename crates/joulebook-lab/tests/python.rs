//! The real nvidia-ml-py from PyPI reads the lab's library, under a load that a Python program
//! sets live. `./test` brings the Python; without it the test says that it is skipped.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "the file is tests")]

use std::{
    path::Path,
    process::{Command, Output},
};

use joulebook_lab::driver;

const SCRIPT: &str = r#"
import json, os, sys, time
sys.path.insert(0, os.environ["LAB_PYTHON"])
from joulebook_live import Live
import pynvml as nvml

live = Live.create(os.environ["FAKEGPU_CONTROL"], cards=2, capacity=100)
nvml.nvmlInit()
assert nvml.nvmlSystemGetDriverVersion() == "555.42.06"
assert nvml.nvmlDeviceGetCount() == 2
card = nvml.nvmlDeviceGetHandleByIndex(0)
assert nvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"
other = nvml.nvmlDeviceGetHandleByUUID("GPU-11111111-2222-3333-4444-555555555555")
assert nvml.nvmlDeviceGetIndex(other) == 1
assert nvml.nvmlDeviceGetPciInfo(card).busId == "00000000:18:00.0"
assert nvml.nvmlDeviceGetCudaComputeCapability(card) == (9, 0)
assert nvml.nvmlDeviceGetArchitecture(card) == nvml.NVML_DEVICE_ARCH_HOPPER
assert nvml.nvmlDeviceGetMemoryInfo(card).used >> 20 == 516
assert nvml.nvmlDeviceGetMemoryInfo(card, nvml.nvmlMemory_v2).total >> 20 == 81559
apps = [(a.pid, a.usedGpuMemory) for a in nvml.nvmlDeviceGetComputeRunningProcesses(card)]
assert apps == [(41, 512 << 20), (42, None)], apps
assert nvml.nvmlDeviceGetUtilizationRates(card).gpu == 93
assert nvml.nvmlDeviceGetEnforcedPowerLimit(card) == 700000
assert nvml.nvmlDeviceGetMigMode(card) == [0, 0]
assert nvml.nvmlDeviceGetPowerUsage(card) == 70000
for call, error in [
    (lambda: nvml.nvmlDeviceGetFanSpeed(card), nvml.NVMLError_NotSupported),
    (lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(other), nvml.NVMLError_GpuIsLost),
    (lambda: nvml.nvmlDeviceGetHandleByIndex(2), nvml.NVMLError_InvalidArgument),
]:
    try:
        call()
    except error:
        continue
    raise AssertionError(f"no {error.__name__}")

windows = []
for watts in (400, 70, 650.5, 0):
    t0 = live.set(0, watts)
    time.sleep(0.02)
    t1 = time.monotonic_ns()
    values = nvml.nvmlDeviceGetFieldValues(card, [83, 185, 186])
    assert [v.nvmlReturn for v in values] == [0, 0, 0]
    assert values[2].value.uiVal == round(watts * 1000), values[2].value.uiVal
    energy = nvml.nvmlDeviceGetTotalEnergyConsumption(card)
    assert values[0].value.ullVal <= energy
    windows.append([t0, t1, live.joules(0, t0, t1), energy])
epoch = int(os.environ["FAKEGPU_EPOCH_NS"])
low = live.joules(0, epoch, windows[-1][1] - 1_000_000)
high = live.joules(0, epoch, time.monotonic_ns())
assert low * 1000 - 1 <= windows[-1][3] <= high * 1000 + 1, (low, windows[-1][3], high)
nvml.nvmlShutdown()
print(json.dumps(windows))
"#;

const SCENARIO: &str = "driver 555.42.06
card 0
  dynamic
  counter period_ms=1
  instant period_ms=1
  proc 0 inf 41 512 a
  proc 0 inf 42 -1 b
  util gpu=93
card 1
  uuid GPU-11111111-2222-3333-4444-555555555555
  fault 0 inf energy lost
";

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {err}");
    output
}

#[test]
fn the_real_python_library_reads_the_lab() {
    let Some(python) = std::env::var_os("JOULEBOOK_TEST_PYTHON") else {
        eprintln!("skipped: JOULEBOOK_TEST_PYTHON names no Python with nvidia-ml-py (see ./test)");
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let library = driver::library().unwrap_or_else(|error| panic!("{error}"));
    driver::install(&library, dir.path()).expect("it is copied");
    let (scenario, control) = (dir.path().join("cards.scenario"), dir.path().join("live"));
    std::fs::write(&scenario, SCENARIO).expect("a scenario");
    let epoch_ns = joulebook_lab::clock::system_ns(joulebook_lab::scenario::ClockKind::Monotonic);
    let output = succeeds(
        Command::new(python)
            .args(["-c", SCRIPT])
            .env("LAB_PYTHON", Path::new(env!("CARGO_MANIFEST_DIR")).join("python"))
            .env("LD_LIBRARY_PATH", dir.path())
            .env("FAKEGPU_SCENARIO", &scenario)
            .env("FAKEGPU_CONTROL", &control)
            .env("FAKEGPU_EPOCH_NS", epoch_ns.to_string()),
    );
    let windows: Vec<(i64, i64, f64, u64)> =
        serde_json::from_slice(&output.stdout).expect("windows");
    assert_eq!(windows.len(), 4);
    for (t0_ns, t1_ns, python_joules, _) in windows {
        // The same truth from the program, on the clock's own seconds.
        let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let output = succeeds(
            Command::new(env!("CARGO_BIN_EXE_joulebook-lab"))
                .args(["truth", "--json", "--card", "0", "--epoch-ns", "0", "--control"])
                .arg(&control)
                .arg(&scenario)
                .args([seconds(t0_ns), seconds(t1_ns)]),
        );
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a line");
        let joules = line.get("joules").and_then(serde_json::Value::as_f64).expect("joules");
        assert!((joules - python_joules).abs() < 1e-9, "{joules} and {python_joules}");
    }
}
