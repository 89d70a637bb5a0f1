//! The flat keys of a record, which ceilings bound and other programs read.
//!
//! Each rung's keys have its prefix (`c8_`), the run's have none. A key whose value is not known is
//! not there. `gpu_rail` in a name: by the power gauge, which on some machines covers less or more
//! than a board; `gpu_counter`: by the energy counter; `books`: by the ledger.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{
    gauge::HOLD_FORWARD,
    record::{Books, Counter, Latencies, Record, Rung},
    statistics::Statistics,
    sums::{Metered, Sums, latencies},
};

/// The flat keys of a record, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys(Vec<(String, Value)>);

impl Keys {
    /// Of a record.
    pub fn of(record: &Record) -> Self {
        let mut keys = Self::of_run(record);
        for rung in &record.rungs {
            keys.rung(record, rung, &rung.kind.prefix());
        }
        keys
    }

    /// Of the run alone.
    pub fn of_run(record: &Record) -> Self {
        let mut keys = Self::default();
        keys.run(record);
        keys
    }

    /// Of one of its rungs, without the prefix.
    pub fn of_rung(record: &Record, rung: &Rung) -> Self {
        let mut keys = Self::default();
        keys.rung(record, rung, "");
        keys
    }

    /// One of them.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// One of them, as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn put(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        match value.into() {
            // What is no number has no place here: JSON has no NaN.
            Value::Null => {}
            value => self.0.push((key.into(), value)),
        }
    }

    fn put_some(&mut self, key: impl Into<String>, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn run(&mut self, record: &Record) {
        let windows = || record.rungs.iter().flat_map(|rung| &rung.repeats);
        let baseline = record.baseline.as_ref();
        let idle = baseline.and_then(|it| it.gauge);
        if idle.is_some() || windows().any(|repeat| repeat.gauge.is_some()) {
            self.put("gpu_rail_integral", HOLD_FORWARD);
        }
        self.put_some("gpu_rail_idle_power_w", baseline.and_then(|it| it.gauge_watts()));
        self.put_some("gpu_rail_idle_power_samples", idle.map(|it| it.samples));
        if let Some(sampler) = record.sampler {
            self.put("gpu_rail_sample_period_ms", sampler.period_ms);
            self.put_some("gpu_rail_sampler_cpu_s", sampler.cpu_ns.map(|ns| ns as f64 / 1e9));
            self.put("gpu_rail_sampler_wall_s", sampler.wall_ns as f64 / 1e9);
            let rejected = (sampler.rejected_lines > 0).then_some(sampler.rejected_lines);
            self.put_some("gpu_rail_sampler_rejected_lines", rejected);
        }
        self.put_some("gpu_counter_idle_power_w", baseline.and_then(|it| it.counter_watts()));
        let idle = baseline.and_then(|it| it.counter);
        self.put_some("gpu_counter_idle_power_samples", idle.map(|it| it.samples));
    }

    fn rung(&mut self, record: &Record, rung: &Rung, prefix: &str) {
        let Some(sums) = Sums::of(rung) else { return };
        let at = |name: &str| format!("{prefix}{name}");
        let idle = record.baseline.as_ref();
        self.put(at("repeats"), sums.repeats);
        self.put(at("window_s"), sums.seconds);
        self.put_some(at("completed"), sums.completed);
        self.put_some(at("failed"), sums.failed);
        if let Some(tokens) = sums.tokens {
            for (name, told, untold) in [
                ("prompt_tokens", tokens.prompt, tokens.prompt_untold),
                ("cached_tokens", tokens.cached, tokens.cached_untold),
            ] {
                self.put_some(at(name), told);
                // Without a sum there is nothing that is not whole.
                let untold = told.and((untold > 0).then_some(untold));
                self.put_some(at(&format!("{name}_untold")), untold);
            }
            self.put(at("output_tokens"), tokens.completion);
        }
        self.put_some(at("output_throughput"), sums.tokens_per_s());
        self.put_some(at("request_throughput"), sums.requests_per_s());
        if let Some(gauge) = &sums.gauge {
            let (window, tokens) = (gauge.energy, gauge.tokens);
            self.put(at("gpu_rail_energy_j"), window.joules());
            self.put_some(at("gpu_rail_energy_window_tokens"), tokens);
            self.put_some(at("gpu_rail_joules_per_token"), gauge.joules_per_token());
            self.put_some(at("gpu_rail_mean_power_w"), window.mean_watts());
            self.put(at("gpu_rail_max_power_w"), window.max_watts());
            self.put(at("gpu_rail_power_samples"), window.samples);
            self.put(at("gpu_rail_energy_window_s"), window.seconds());
            self.put_some(at("gpu_rail_sw_power_cap_frac"), window.capped.fraction());
            self.put_some(at("gpu_rail_hw_power_brake_frac"), window.braked.fraction());
            let above = gauge.above_idle_joules(idle);
            self.put_some(at("gpu_rail_energy_above_idle_j"), above);
        }
        if let Some(counter) = &sums.counter {
            self.counter(&at("gpu_counter"), counter);
            let above = counter.above_idle_joules(idle);
            self.put_some(at("gpu_counter_energy_above_idle_j"), above);
        }
        if let Some(books) = &sums.books {
            self.books(prefix, books);
        }
        for (name, counter) in &sums.rails {
            let rail = Metered { energy: *counter, tokens: None, windows: 0 };
            self.counter(&at(name.prefix()), &rail);
        }
        self.latencies(prefix, &latencies(rung));
    }

    fn counter(&mut self, name: &str, metered: &Metered<Counter>) {
        let counter = metered.energy;
        self.put(format!("{name}_energy_j"), counter.joules());
        self.put_some(format!("{name}_energy_window_tokens"), metered.tokens);
        self.put_some(format!("{name}_joules_per_token"), metered.joules_per_token());
        self.put_some(format!("{name}_mean_power_w"), counter.mean_watts());
        self.put(format!("{name}_samples"), counter.samples);
        self.put(format!("{name}_energy_window_s"), counter.seconds());
        self.put_some(format!("{name}_bound_j"), counter.bound_uj.map(|uj| uj as f64 / 1e6));
    }

    fn books(&mut self, prefix: &str, books: &Books) {
        let mut joules = |name: &str, uj: i64| {
            self.put(format!("{prefix}books_{name}_j"), uj as f64 / 1e6);
        };
        joules("counted", books.counted_uj);
        joules("prefill", books.prefill_uj);
        joules("decode", books.decode_uj);
        joules("failed", books.failed_uj);
        joules("idle", books.idle_uj);
        joules("foreign", books.foreign_uj);
        joules("unattributed", books.unattributed_uj);
        joules("gap", books.gap_uj);
        joules("suspense", books.suspense_uj);
        joules("residual", books.residual_uj());
        let bound = books.bound_uj.map(|uj| uj as f64 / 1e6);
        self.put_some(format!("{prefix}books_bound_j"), bound);
        self.put(format!("{prefix}books_receipts"), books.receipts);
        self.put(format!("{prefix}books_unsettled"), books.unsettled);
    }

    fn latencies(&mut self, prefix: &str, latencies: &Latencies) {
        let each = [
            ("ttft", &latencies.ttft_ms),
            ("tpot", &latencies.tpot_ms),
            ("itl", &latencies.itl_ms),
            ("e2el", &latencies.e2el_ms),
        ];
        for (name, statistics) in each {
            let Some(of) = statistics else { continue };
            self.put(format!("{prefix}mean_{name}_ms"), of.mean);
            self.put(format!("{prefix}median_{name}_ms"), of.median());
            self.put(format!("{prefix}std_{name}_ms"), of.std);
            for percent in [90, 95, 99] {
                let value = Statistics::percentile(of, percent);
                self.put_some(format!("{prefix}p{percent}_{name}_ms"), value);
            }
        }
    }
}

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
