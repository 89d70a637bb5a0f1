//! A comparison in words, and as JSON.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use joulebook::core::units::significant;
use serde_json::{Value, json as value};

use super::{Comparison, Measure, Pairing, Row, Verdict};

/// For people.
pub fn page(of: &Comparison) -> String {
    let mut page = String::new();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["rung", "", "A", "B", "B to A", "95 % interval", "verdict"]);
    let mut last = None;
    for row in &of.rows {
        let rung = if last == Some(row.kind) { String::new() } else { row.kind.to_string() };
        last = Some(row.kind);
        let interval = match &row.ratio {
            Ok(it) => format!("{} to {}", percent(it.low), percent(it.high)),
            Err(_) => "–".to_owned(),
        };
        let measure = row.measure.name().to_owned();
        let (a, b) = (significant(row.a), significant(row.b));
        let verdict = words(row, of.margin);
        table.add_row([rung, measure, a, b, percent(row.middle()), interval, verdict]);
    }
    for column in table.column_iter_mut().skip(2).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut say = |line: &str| {
        page.push_str(line);
        page.push('\n');
    };
    if !of.rows.is_empty() {
        say(&table.trim_fmt());
        say("");
    }
    say(&verdict(of));
    say(&method(of));
    for (name, kinds) in [("A", &of.only_a), ("B", &of.only_b)] {
        if !kinds.is_empty() {
            let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            say(&format!("In {name} alone, and not compared: {}.", kinds.join(", ")));
        }
    }
    for caution in &of.cautions {
        say(&format!("caution: {caution}"));
    }
    page
}

/// For programs: the same numbers.
pub fn json(of: &Comparison) -> Value {
    let row = |row: &Row| {
        let interval = row.ratio.as_ref().ok();
        value!({
            "rung": row.kind.to_string(),
            "measure": key(row.measure),
            "a_median": row.a,
            "b_median": row.b,
            "a_repeats": row.repeats.0,
            "b_repeats": row.repeats.1,
            "ratio": row.middle(),
            "low": interval.map(|it| it.low),
            "high": interval.map(|it| it.high),
            "confidence": interval.map(|_| crate::bench::interval::CONFIDENCE),
            "method": method_of(row.pairing),
            "verdict": word(row.verdict),
        })
    };
    let kinds = |kinds: &[super::Kind]| kinds.iter().map(ToString::to_string).collect::<Vec<_>>();
    value!({
        "energy_by": of.ruler.map(|ruler| ruler.prefix()),
        "margin": of.margin,
        "rows": of.rows.iter().map(row).collect::<Vec<_>>(),
        "only_a": kinds(&of.only_a),
        "only_b": kinds(&of.only_b),
        "cautions": of.cautions,
        "verdict": verdict(of),
    })
}

/// All rungs' energies in a sentence.
fn verdict(of: &Comparison) -> String {
    let energies: Vec<&Row> =
        of.rows.iter().filter(|row| row.measure == Measure::JoulesPerToken).collect();
    let Some(first) = energies.first() else {
        return "Nothing can be said of energy: no rung of both has J/token.".to_owned();
    };
    let (least, most) =
        energies.iter().fold((first.middle(), first.middle()), |(low, high), row| {
            (low.min(row.middle()), high.max(row.middle()))
        });
    let rungs = |count: usize| match count {
        1 => "one rung".to_owned(),
        many => format!("{many} rungs"),
    };
    let lower = of.count(Verdict::Lower);
    let higher = of.count(Verdict::Higher);
    let (same, untold) = (of.count(Verdict::Same), of.count(Verdict::Untold));
    let all = energies.len();
    let span = if (most - least).abs() < 5e-4 {
        percent(least)
    } else {
        format!("{} to {}", percent(least), percent(most))
    };
    if untold == all {
        return format!(
            "Nothing can be claimed: one repeat each. The figures differ by {span}; run both with \
             --repeats 3 or more."
        );
    }
    if lower == all {
        return format!("B's tokens cost less than A's at {} ({span}).", each(all));
    }
    if higher == all {
        return format!("B's tokens cost more than A's at {} ({span}).", each(all));
    }
    if same == all {
        let within = of.margin * 100.0;
        return format!("B's tokens cost the same as A's within {within} % at {}.", each(all));
    }
    let mut parts = Vec::new();
    for (count, what) in [
        (lower, "less"),
        (higher, "more"),
        (same, "the same"),
        (of.count(Verdict::Open) + untold, "it cannot be told"),
    ] {
        if count > 0 {
            parts.push(format!("{what} at {}", rungs(count)));
        }
    }
    format!("What B's tokens cost against A's: {} ({span}).", parts.join(", "))
}

fn each(count: usize) -> String {
    match count {
        1 => "the one rung".to_owned(),
        2 => "both rungs".to_owned(),
        many => format!("all {many} rungs"),
    }
}

fn method(of: &Comparison) -> String {
    let mut parts = vec!["A and B: medians over repeats".to_owned()];
    let has = |pairing| of.rows.iter().any(|row| row.pairing == pairing);
    if has(Pairing::Paired) {
        parts.push("intervals by Student on log ratios, repeats paired by seed".to_owned());
    }
    if has(Pairing::Apart) {
        parts.push("intervals by Welch on logarithms where seeds or repeats differ".to_owned());
    }
    if let Some(ruler) = of.ruler {
        parts.push(format!("energy gross, by the {}", ruler.name()));
    }
    parts.push("each interval stands alone".to_owned());
    parts.join("; ") + "."
}

/// One row's verdict.
fn words(row: &Row, margin: f64) -> String {
    let is_good = match row.measure {
        Measure::TokensPerSecond => Verdict::Higher,
        _ => Verdict::Lower,
    };
    match row.verdict {
        Verdict::Same => format!("the same within {} %", margin * 100.0),
        Verdict::Open => "cannot be told".to_owned(),
        Verdict::Untold => "one repeat: no claim".to_owned(),
        verdict if verdict == is_good => "B is better".to_owned(),
        _ => "B is worse".to_owned(),
    }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Lower => "lower",
        Verdict::Higher => "higher",
        Verdict::Same => "same",
        Verdict::Open => "open",
        Verdict::Untold => "untold",
    }
}

const fn method_of(pairing: Pairing) -> Option<&'static str> {
    match pairing {
        Pairing::Paired => Some("student_log_paired"),
        Pairing::Apart => Some("welch_log"),
        Pairing::Single => None,
    }
}

const fn key(measure: Measure) -> &'static str {
    match measure {
        Measure::JoulesPerToken => "joules_per_token",
        Measure::TokensPerSecond => "output_throughput",
        Measure::Ttft => "median_ttft_ms",
        Measure::Tpot => "median_tpot_ms",
        Measure::E2el => "median_e2el_ms",
    }
}

/// A ratio as a change.
fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    // A change that rounds to none has no sign.
    let text = format!("{change:+.1} %");
    if text == "-0.0 %" || text == "+0.0 %" { "0.0 %".to_owned() } else { text }
}
