//! A metric as aiperf writes them: a tag, a unit, and one value or a summary.

use serde_json::{Map, Value, json};

use crate::bench::{
    files::csv_line,
    statistics::{PERCENTILES, Statistics, nearest_rank},
};

/// One metric.
pub struct Metric {
    tag: String,
    header: String,
    unit: &'static str,
    figures: Figures,
}

enum Figures {
    /// One value of the run.
    One(f64),
    /// Of all requests or pieces.
    Summary(Statistics),
    /// Of all requests, where those that failed count as never answered: count, least, percentiles.
    Adjusted(usize, f64, [Option<f64>; 9]),
}

impl Metric {
    /// One value.
    pub fn one(tag: &str, header: &str, unit: &'static str, value: f64) -> Self {
        Self { tag: tag.to_owned(), header: header.to_owned(), unit, figures: Figures::One(value) }
    }

    /// A summary; none of no values.
    pub fn summary(tag: &str, header: &str, unit: &'static str, values: &[f64]) -> Option<Self> {
        let figures = Figures::Summary(Statistics::of(values)?);
        Some(Self { tag: tag.to_owned(), header: header.to_owned(), unit, figures })
    }

    /// The same, with so many requests that were never answered; none where all were.
    pub fn adjusted(
        tag: &str,
        header: &str,
        unit: &'static str,
        values: &[f64],
        failed: usize,
    ) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let least = *sorted.first().filter(|_| failed > 0)?;
        let at = |percent: u8| nearest_rank(&sorted, failed, f64::from(percent));
        let figures = Figures::Adjusted(sorted.len() + failed, least, PERCENTILES.map(at));
        let (tag, header) = (format!("adj_{tag}"), format!("{header} (error-adjusted)"));
        Some(Self { tag, header, unit, figures })
    }

    /// Its mean, or its value.
    pub const fn average(&self) -> Option<f64> {
        match &self.figures {
            Figures::One(value) => Some(*value),
            Figures::Summary(of) => Some(of.mean),
            Figures::Adjusted(..) => None,
        }
    }

    /// Its tag.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// As the summary's JSON holds it.
    pub fn json(&self) -> Value {
        let mut all = Map::new();
        all.insert("unit".to_owned(), json!(self.unit));
        for name in JSON_ORDER {
            if let Some(value) = self.figure(name) {
                let value = if name == "count" { json!(value as u64) } else { json!(value) };
                all.insert(name.to_owned(), value);
            }
        }
        Value::Object(all)
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let percentile = name
            .strip_prefix('p')
            .and_then(|percent| percent.parse::<u8>().ok())
            .and_then(|percent| PERCENTILES.iter().position(|it| *it == percent));
        match (&self.figures, percentile) {
            (Figures::One(value), None) => (name == "avg").then_some(*value),
            (Figures::One(_), Some(_)) => None,
            (Figures::Summary(of), Some(at)) => of.percentiles.get(at).copied(),
            (Figures::Adjusted(_, _, of), Some(at)) => of.get(at).copied().flatten(),
            (Figures::Summary(of), None) => match name {
                "avg" => Some(of.mean),
                "min" => Some(of.min),
                "max" => Some(of.max),
                "std" => Some(of.std),
                "sum" => Some(of.sum),
                "count" => Some(of.count as f64),
                _ => None,
            },
            (Figures::Adjusted(count, least, _), None) => match name {
                "min" => Some(*least),
                "count" => Some(*count as f64),
                _ => None,
            },
        }
    }

    const fn has_percentiles(&self) -> bool {
        !matches!(self.figures, Figures::One(_))
    }

    fn name(&self) -> String {
        if matches!(self.unit, "count" | "requests") {
            return self.header.clone();
        }
        format!("{} ({})", self.header, self.unit)
    }
}

const JSON_ORDER: [&str; 15] = [
    "avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std",
    "count", "sum",
];
const CSV_ORDER: [&str; 14] = [
    "avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std",
];

/// The two tables of aiperf's CSV: summaries, then single values, each by tag.
pub fn csv(metrics: &[Metric]) -> String {
    let mut metrics: Vec<&Metric> = metrics.iter().collect();
    metrics.sort_by(|a, b| a.tag.cmp(&b.tag));
    let mut text = csv_line(["Metric"].into_iter().chain(CSV_ORDER));
    for metric in metrics.iter().filter(|metric| metric.has_percentiles()) {
        let cells = CSV_ORDER.map(|name| metric.figure(name).map(cell).unwrap_or_default());
        let name = metric.name();
        text += &csv_line([name.as_str()].into_iter().chain(cells.iter().map(String::as_str)));
    }
    text += "\n";
    text += &csv_line(["Metric", "Value"]);
    for metric in metrics.iter().filter(|metric| !metric.has_percentiles()) {
        let value = metric.figure("avg").map(cell).unwrap_or_default();
        text += &csv_line([metric.name().as_str(), value.as_str()]);
    }
    text
}

fn cell(value: f64) -> String {
    format!("{value:.2}")
}
