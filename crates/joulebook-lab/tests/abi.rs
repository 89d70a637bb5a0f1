//! The driver's ABI, read by nvml-wrapper. The library reads its environment once in a process, so
//! each test runs its checks in a child: this same binary, told by `LAB_CHILD` which one to run.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the whole file is tests"
)]

use std::{
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use joulebook_lab::{
    card::{Model, PowerRegister},
    clock::system_ns,
    control::Control,
    driver,
    scenario::{ClockKind, Scenario},
};
use nvml_wrapper::{
    Nvml,
    enum_wrappers::device::{Brand, Clock, TemperatureSensor},
    enums::device::{DeviceArchitecture, UsedGpuMemory},
    error::NvmlError,
    structs::device::FieldId,
};

const CARDS: &str = "driver 555.42.06
card 0
  idle 70
  square 0 inf period_ms=7 duty=0.5 w=300
  counter period_ms=20 lag_ms=5 jitter_ms=1 base_mj=1000000
  sensor gain=1.05
  instant period_ms=10
  mem total_mib=40960 base_mib=600
  limit w=400 min=100 max=400
  clocks sm=1410 mem=1593 temp=61 reasons=0x84
  util gpu=97 mem=40
  proc 0 inf 4242 18200 sm=40 /opt/run serve
  proc 0 inf 4243 -1 Xorg
card 1
  name NVIDIA GeForce RTX 4090
  uuid GPU-11111111-2222-3333-4444-555555555555
  pci 0001:4b:00.0
  arch 10
  cc 8.9
  mig -1
  counter supported=0
  sensor supported=0
  instant supported=0
  fault 0 inf mem lost
  fault 0 inf fields nodata
card 2
  fault 0 inf all lost
";

type Check = fn(&Nvml);

/// What the child checks, by name.
const CHILDREN: &[(&str, Check)] = &[
    ("reads", reads),
    ("refusals", refusals),
    ("starts", starts),
    ("hangs", hangs),
    ("live", live),
    ("symbols", symbols),
];

/// Runs a child's checks on a scenario whose epoch is now.
fn child(name: &str, scenario: &str, control: Option<&str>) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("cards.scenario");
    std::fs::write(&path, scenario).expect("a scenario");
    let library = driver::library().unwrap_or_else(|error| panic!("{error}"));
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child
        .args(["--exact", "run_as_child", "--nocapture"])
        .env("LAB_CHILD", name)
        .env("LAB_LIBRARY", library)
        .env("FAKEGPU_SCENARIO", &path)
        .env("FAKEGPU_EPOCH_NS", system_ns(ClockKind::Monotonic).to_string())
        .env("FAKEGPU_CONTROL", control.unwrap_or_default());
    child.output().expect("the child runs")
}

fn passes(name: &str, scenario: &str, control: Option<&str>) {
    let output = child(name, scenario, control);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("child done"), "{out}\n{err}");
}

#[test]
fn run_as_child() {
    let Ok(name) = std::env::var("LAB_CHILD") else { return };
    let library = PathBuf::from(std::env::var_os("LAB_LIBRARY").expect("a library"));
    if name == "nothing" {
        let error = Nvml::builder().lib_path(library.as_os_str()).init().err();
        assert!(matches!(error, Some(NvmlError::DriverNotLoaded)), "{error:?}");
    } else {
        let nvml = Nvml::builder().lib_path(library.as_os_str()).init().expect("it starts");
        let (_, check) = CHILDREN.iter().find(|(known, _)| *known == name).expect("a known child");
        check(&nvml);
    }
    println!("child done");
}

#[test]
fn everything_that_is_described_is_read() {
    passes("reads", CARDS, None);
}

#[test]
fn what_fails_fails_with_its_own_error() {
    passes("refusals", CARDS, None);
}

#[test]
fn a_library_without_a_scenario_has_no_driver() {
    passes_without("");
    passes_without("/nonexistent/cards.scenario");
}

fn passes_without(scenario: &str) {
    let library = driver::library().unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "run_as_child", "--nocapture"])
        .env("LAB_CHILD", "nothing")
        .env("LAB_LIBRARY", library)
        .env("FAKEGPU_SCENARIO", scenario)
        .output()
        .expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(err.contains("cannot read the scenario"), !scenario.is_empty(), "{err}");
}

#[test]
fn a_driver_that_comes_late_can_be_started_again() {
    // The child itself only starts when the fault is over.
    let output = child("starts", "card 0\nfault 0 inf init nodriver\n", None);
    assert!(!output.status.success());
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("DriverNotLoaded"), "{err}");
    passes("starts", "card 0\nfault 0 0.000000001 init nodriver\n", None);
}

#[test]
fn a_call_that_hangs_takes_its_time_once() {
    let cost = "cost energy_us=2000 power_us=1000 mode=sleep";
    passes("hangs", &format!("{cost}\ncard 0\nfault 0 inf all hang 30\n"), None);
}

#[test]
fn live_watts_are_integrated_exactly() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("live");
    Control::create(&path, 1, 1024, ClockKind::Monotonic).expect("a control file");
    let scenario = "card 0\ndynamic\nidle 50\ncounter period_ms=1\n";
    passes("live", scenario, path.to_str());
}

#[test]
fn every_symbol_of_the_api_is_there() {
    passes("symbols", CARDS, None);
}

/// A program that links the lab must not offer the driver's symbols to what it loads: the real
/// library beside it would bind to them.
#[test]
#[allow(unsafe_code)]
fn a_program_that_links_the_lab_exports_none_of_it() {
    let this = libloading::os::unix::Library::this();
    for name in ["nvmlInit_v2", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFanSpeed"] {
        // SAFETY: the symbol is looked up and never used.
        let found = unsafe { this.get::<unsafe extern "C" fn() -> u32>(name.as_bytes()) };
        assert!(found.is_err(), "{name} is exported");
    }
}

/// The card's model, to ask what it shows between two instants.
fn model(index: u32) -> (Model, i64) {
    let path = PathBuf::from(std::env::var_os("FAKEGPU_SCENARIO").expect("a scenario"));
    let scenario = Scenario::read(&path).expect("it parses");
    let epoch_ns = std::env::var("FAKEGPU_EPOCH_NS").expect("an epoch").parse().expect("ns");
    (Model::new(index, scenario.cards[index as usize].clone(), None), epoch_ns)
}

fn reads(nvml: &Nvml) {
    assert_eq!(nvml.sys_driver_version().expect("a version"), "555.42.06");
    assert_eq!(nvml.device_count().expect("a count"), 3);
    let card = nvml.device_by_index(0).expect("card 0");
    let (model, epoch_ns) = model(0);
    let now_ns = || system_ns(ClockKind::Monotonic) - epoch_ns;
    // The counter never shows less than at the instant before the call, nor more than after it.
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let before = model.energy_mj(now_ns(), false).value.expect("energy");
        let shown = card.total_energy_consumption().expect("energy");
        let after = model.energy_mj(now_ns(), false).value.expect("energy");
        assert!((before..=after).contains(&shown), "{before} {shown} {after}");
        seen.insert(shown);
        std::thread::sleep(Duration::from_micros(500));
    }
    assert!(seen.len() > 2, "the counter stood still at {seen:?}");
    let between = |register, read: &dyn Fn() -> u32| {
        // A register that publishes between two looks is looked at again.
        for _ in 0..20 {
            let before = model.power_mw(register, now_ns(), false).value.expect("power");
            let shown = read();
            if before == model.power_mw(register, now_ns(), false).value.expect("power") {
                assert_eq!(shown, before);
                return;
            }
        }
        panic!("never two equal looks in twenty");
    };
    between(PowerRegister::Average, &|| card.power_usage().expect("power"));
    let field = |id: u32| {
        let mut fields = card.field_values_for(&[FieldId(id)]).expect("the call succeeds");
        fields.remove(0).expect("one field").value.expect("a value")
    };
    let uint = |id| match field(id) {
        nvml_wrapper::enums::device::SampleValue::U32(value) => value,
        other => panic!("field {id} is {other:?}"),
    };
    between(PowerRegister::Average, &|| uint(185));
    between(PowerRegister::Instant, &|| uint(186));
    let before = model.energy_mj(now_ns(), true).value.expect("energy");
    let nvml_wrapper::enums::device::SampleValue::U64(shown) = field(83) else {
        panic!("energy is no 64-bit number")
    };
    assert!((before..before + 1_000_000).contains(&shown), "{before} {shown}");
    let memory = card.memory_info().expect("memory");
    assert_eq!((memory.total >> 20, memory.used >> 20), (40_960, 18_800));
    assert_eq!(memory.free, memory.total - memory.used);
    let mut processes = card.running_compute_processes().expect("processes");
    processes.sort_by_key(|process| process.pid);
    assert_eq!(processes[0].pid, 4242);
    assert!(
        matches!(processes[0].used_gpu_memory, UsedGpuMemory::Used(bytes) if bytes >> 20 == 18_200)
    );
    assert!(matches!(processes[1].used_gpu_memory, UsedGpuMemory::Unavailable));
    assert_eq!(card.running_graphics_processes().expect("a list").len(), 0);
    assert_eq!(nvml.sys_process_name(4242, 64).expect("a name"), "/opt/run serve");
    let samples = card.process_utilization_stats(None).expect("samples");
    assert_eq!((samples.len(), samples[0].pid, samples[0].sm_util), (1, 4242, 40));
    assert_eq!(card.utilization_rates().expect("rates").gpu, 97);
    assert_eq!(card.power_management_limit().expect("a limit"), 400_000);
    assert_eq!(card.enforced_power_limit().expect("a limit"), 400_000);
    let limits = card.power_management_limit_constraints().expect("a range");
    assert_eq!((limits.min_limit, limits.max_limit), (100_000, 400_000));
    assert_eq!(card.current_throttle_reasons().expect("reasons").bits(), 0x84);
    assert_eq!(card.clock_info(Clock::SM).expect("a clock"), 1410);
    assert_eq!(card.clock_info(Clock::Memory).expect("a clock"), 1593);
    assert_eq!(card.temperature(TemperatureSensor::Gpu).expect("a temperature"), 61);
    assert_eq!(card.mig_mode().expect("a mode").current, 0);
    assert_eq!(card.architecture().expect("an architecture"), DeviceArchitecture::Hopper);
    assert_eq!(card.brand().expect("a brand"), Brand::Nvidia);

    let other = nvml.device_by_uuid("GPU-11111111-2222-3333-4444-555555555555").expect("by UUID");
    assert_eq!(other.index().expect("an index"), 1);
    assert_eq!(other.name().expect("a name"), "NVIDIA GeForce RTX 4090");
    assert_eq!(other.brand().expect("a brand"), Brand::GeForceRTX);
    let capability = other.cuda_compute_capability().expect("a capability");
    assert_eq!((capability.major, capability.minor), (8, 9));
    let by_address = nvml.device_by_pci_bus_id("0001:4B:00.0").expect("by address");
    assert_eq!(by_address.uuid().expect("a UUID"), other.uuid().expect("a UUID"));
    let pci = other.pci_info().expect("an address");
    assert_eq!((pci.domain, pci.bus, pci.device), (1, 0x4b, 0));
    assert_eq!(pci.bus_id, "00000001:4B:00.0");
}

fn refusals(nvml: &Nvml) {
    let card = nvml.device_by_index(1).expect("card 1");
    assert!(matches!(card.total_energy_consumption(), Err(NvmlError::NotSupported)));
    assert!(matches!(card.power_usage(), Err(NvmlError::NotSupported)));
    assert!(matches!(card.memory_info(), Err(NvmlError::GpuLost)));
    assert!(matches!(card.field_values_for(&[FieldId(186)]), Err(NvmlError::NoData)));
    assert!(matches!(card.mig_mode(), Err(NvmlError::NotSupported)));
    assert!(matches!(card.fan_speed(0), Err(NvmlError::NotSupported)));
    assert!(matches!(nvml.device_by_index(2), Err(NvmlError::GpuLost)));
    assert!(matches!(nvml.device_by_index(3), Err(NvmlError::InvalidArg)));
    assert!(matches!(nvml.device_by_uuid("GPU-0"), Err(NvmlError::NotFound)));
    assert!(matches!(nvml.sys_process_name(1, 64), Err(NvmlError::NotFound)));
    let fields = nvml.device_by_index(0).expect("card 0").field_values_for(&[FieldId(1)]);
    let field = fields.expect("the call succeeds").remove(0).expect("it came back");
    assert!(matches!(field.value, Err(NvmlError::NotSupported)));
}

fn starts(nvml: &Nvml) {
    assert_eq!(nvml.device_count().expect("a count"), 1);
}

fn hangs(nvml: &Nvml) {
    let card = nvml.device_by_index(0).expect("card 0");
    let took = |call: &dyn Fn()| {
        let begun = std::time::Instant::now();
        call();
        begun.elapsed()
    };
    // Lower bounds only: how much longer a loaded machine takes is no property of the lab.
    let energy = took(&|| drop(card.total_energy_consumption()));
    assert!(energy >= Duration::from_millis(32), "{energy:?}");
    let fields = took(&|| drop(card.field_values_for(&[FieldId(83), FieldId(185), FieldId(186)])));
    assert!(fields >= Duration::from_millis(34), "{fields:?}");
}

fn live(nvml: &Nvml) {
    let path = PathBuf::from(std::env::var_os("FAKEGPU_CONTROL").expect("a control file"));
    let control = Control::open(&path).expect("it is there");
    let epoch_ns: i64 = std::env::var("FAKEGPU_EPOCH_NS").expect("an epoch").parse().expect("ns");
    let card = nvml.device_by_index(0).expect("card 0");
    let mut truth_mj = 0.0;
    let (mut last_ns, mut last_watts) = (epoch_ns, 50.0);
    for watts in [400.0, 0.0, 123.0, 700.0, 90.0] {
        let t_ns = control.set_watts(0, watts).expect("it fits");
        truth_mj += last_watts * (t_ns - last_ns) as f64 / 1e6;
        (last_ns, last_watts) = (t_ns, watts);
        std::thread::sleep(Duration::from_millis(7));
        let before = system_ns(ClockKind::Monotonic);
        let shown = card.total_energy_consumption().expect("energy") as f64;
        let after = system_ns(ClockKind::Monotonic);
        // A publish is at most a millisecond old.
        let low = truth_mj + watts * (before - 1_000_000 - t_ns) as f64 / 1e6 - 1.0;
        let high = truth_mj + watts * (after - t_ns) as f64 / 1e6 + 1.0;
        assert!((low..=high).contains(&shown), "{low} {shown} {high}");
    }
}

/// Every name in the list answers, and the list and the rest are all that nvml-wrapper knows.
#[allow(unsafe_code)]
fn symbols(_: &Nvml) {
    let (_, list) = include_str!("../src/abi/unsupported.rs")
        .split_once("unsupported! {\n")
        .expect("the list begins there");
    let names = list.split_whitespace().filter(|word| *word != "}");
    let path = std::env::var_os("LAB_LIBRARY").expect("a library");
    // SAFETY: the lab's library runs no code when it is loaded, and its functions of these names
    // take no arguments.
    let count = unsafe {
        let library = libloading::Library::new(path).expect("it loads");
        names
            .map(|name| {
                let call = library
                    .get::<unsafe extern "C" fn() -> u32>(name.as_bytes())
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(call(), 3, "{name}");
            })
            .count()
    };
    assert!(count > 300, "only {count} names");
}
