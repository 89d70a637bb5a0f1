use std::{collections::BTreeSet, path::Path};

use super::*;
use crate::bench::{
    record::{Rail, RailName},
    sample,
};

/// The names in the tables of the page on records: those of rungs and those of the run.
fn documented() -> (BTreeSet<String>, BTreeSet<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench.md");
    let page = std::fs::read_to_string(path).unwrap();
    let section = |title: &str| {
        let from = page.split(title).nth(1).unwrap();
        let table = from.split("\n## ").next().unwrap();
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned));
        names.flat_map(|name| expanded(&name)).collect()
    };
    (section("## Keys of a rung"), section("## Keys of the run"))
}

/// `{a,b}_c` as `a_c` and `b_c`.
fn expanded(name: &str) -> Vec<String> {
    match name.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((each, rest)) => each.split(',').map(|it| format!("{it}{rest}")).collect(),
        None => vec![name.to_owned()],
    }
}

#[test]
fn the_page_names_all_keys_and_no_others() {
    let mut record = sample::everything();
    let repeat = record.rungs.first_mut().unwrap().repeats.first_mut().unwrap();
    repeat.rails.push(Rail { name: RailName::Dram, counter: sample::counter(5.0, 10.0) });
    repeat.gauge.as_mut().unwrap().braked.reported = 1;
    let tokens = repeat.tokens.as_mut().unwrap();
    (tokens.prompt_untold, tokens.cached_untold) = (1, 1);
    let of = |keys: &Keys| keys.iter().map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>();
    let (rung, run) = documented();
    let written = of(&Keys::of_rung(&record, record.rungs.first().unwrap()));
    assert_eq!(rung.symmetric_difference(&written).collect::<Vec<_>>(), Vec::<&String>::new());
    let written = of(&Keys::of_run(&record));
    assert_eq!(run.symmetric_difference(&written).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// The keys of the gauge, letter by letter, since other programs read them.
#[test]
fn the_gauge_has_these_keys() {
    let mut record = sample::everything();
    let repeat = record.rungs.first_mut().unwrap().repeats.first_mut().unwrap();
    repeat.gauge.as_mut().unwrap().braked.reported = 1;
    let keys = Keys::of(&record);
    for name in [
        "gpu_rail_energy_j",
        "gpu_rail_energy_window_tokens",
        "gpu_rail_joules_per_token",
        "gpu_rail_mean_power_w",
        "gpu_rail_max_power_w",
        "gpu_rail_power_samples",
        "gpu_rail_energy_window_s",
        "gpu_rail_sw_power_cap_frac",
        "gpu_rail_hw_power_brake_frac",
        "gpu_rail_energy_above_idle_j",
    ] {
        assert!(keys.number(&format!("c1_{name}")).is_some(), "{name}");
    }
    for name in [
        "gpu_rail_idle_power_w",
        "gpu_rail_idle_power_samples",
        "gpu_rail_sample_period_ms",
        "gpu_rail_sampler_cpu_s",
        "gpu_rail_sampler_wall_s",
        "gpu_rail_sampler_rejected_lines",
    ] {
        assert!(keys.number(name).is_some(), "{name}");
    }
    assert_eq!(keys.get("gpu_rail_integral"), Some(&Value::from("hold_forward")));
}
