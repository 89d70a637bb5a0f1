//! A summary as records hold it: each percentile under its name.

use serde::{Deserialize, Serialize};

use super::Statistics;

/// The fields of [`Statistics`].
#[derive(Serialize, Deserialize)]
pub struct Named {
    count: u64,
    sum: f64,
    mean: f64,
    std: f64,
    min: f64,
    p1: f64,
    p5: f64,
    p10: f64,
    p25: f64,
    p50: f64,
    p75: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl From<Named> for Statistics {
    fn from(of: Named) -> Self {
        let Named { count, sum, mean, std, min, max, .. } = of;
        let percentiles = [of.p1, of.p5, of.p10, of.p25, of.p50, of.p75, of.p90, of.p95, of.p99];
        Self { count, sum, mean, std, min, max, percentiles }
    }
}

impl From<Statistics> for Named {
    fn from(of: Statistics) -> Self {
        let Statistics { count, sum, mean, std, min, max, percentiles } = of;
        let [p1, p5, p10, p25, p50, p75, p90, p95, p99] = percentiles;
        Self { count, sum, mean, std, min, p1, p5, p10, p25, p50, p75, p90, p95, p99, max }
    }
}
