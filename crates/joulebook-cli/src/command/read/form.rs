//! The report as one JSON object.

use joulebook::replay::{Answer, Card, Track};
use serde_json::{Value, json};

use super::{
    Report,
    tally::{all_logs, tally},
};

/// One log's object; several logs' objects in one, with their sum where they have one.
pub(super) fn forms(reports: &[Report]) -> String {
    let whole = match reports {
        [report] => form(report),
        reports => {
            let (sum, why) = match all_logs(reports) {
                Ok(sum) => (
                    json!({
                        "gross_joules": sum.gross_j,
                        "gross_bound_joules": sum.bound_j,
                        "joules": sum.joules,
                    }),
                    None,
                ),
                Err(why) => (Value::Null, Some(why)),
            };
            let logs: Vec<Value> = reports.iter().map(form).collect();
            json!({"logs": logs, "sum": sum, "no_sum_because": why})
        }
    };
    format!("{whole}\n")
}

fn form(report: &Report) -> Value {
    let recording = &report.recording;
    let warnings = report
        .warnings
        .iter()
        .map(|warning| json!({"word": warning.word(), "text": warning.to_string()}))
        .collect::<Vec<_>>();
    let cards = report.cards.iter().zip(&recording.cards);
    let mut whole = json!({
        "recording": {
            "file": report.path,
            "format": recording.format,
            "rows": recording.rows,
            "refused": recording.refused.len(),
            "seconds": recording.span.seconds(),
        },
        "cards": cards.map(|(answer, card)| card_form(report, answer, card)).collect::<Vec<_>>(),
        "gain_percent": super::page::GAIN_PERCENT,
        "warnings": warnings,
    });
    let mut put = |key: &str, value: Value| {
        if let Some(map) = whole.as_object_mut() {
            map.insert(key.to_owned(), value);
        }
    };
    if let Some(sum) = &report.sum {
        put("sum", answer_form(sum));
    }
    if !report.windows.is_empty() {
        let windows = report.windows.iter().map(|window| {
            let mut form = answer_form(&window.sum);
            if window.cards.len() > 1
                && let Some(map) = form.as_object_mut()
            {
                let cards = window.cards.iter().map(answer_form).collect::<Vec<_>>();
                map.insert("cards".to_owned(), cards.into());
            }
            if let Some(map) = form.as_object_mut() {
                let from_ns = window.sum.span.open_ns;
                let after_s = (from_ns as f64 - recording.span.open_ns as f64) / 1e9;
                map.insert("from_start_s".to_owned(), after_s.into());
                if let Some(name) = &window.name {
                    map.insert("name".to_owned(), name.as_str().into());
                }
            }
            form
        });
        put("windows", windows.collect::<Vec<_>>().into());
        let sum = tally(&report.windows);
        put(
            "windows_sum",
            json!({
                "windows": sum.windows,
                "seconds": sum.seconds,
                "measured": {
                    "windows": sum.measured.windows,
                    "joules": (sum.measured.above_idle > 0).then_some(sum.measured.joules),
                    "above_idle_windows": sum.measured.above_idle,
                    "gross_joules": sum.measured.gross_j,
                    "gross_bound_joules": sum.measured.bound_j,
                },
                "not_measured": {
                    "windows": sum.seen.windows,
                    "gross_joules": sum.seen.gross_j,
                    "gross_low_joules": sum.seen.low_j,
                    "gross_high_joules": sum.seen.high_j,
                },
                "nothing_seen": sum.nothing,
            }),
        );
    }
    whole
}

fn card_form(report: &Report, answer: &Answer, card: &Card) -> Value {
    let used = report.ask.track(card, f64::INFINITY);
    let mut form = answer_form(answer);
    if let Some(map) = form.as_object_mut() {
        let name = &card.name;
        map.insert(
            "card".to_owned(),
            json!({
                "index": name.index, "uuid": name.uuid, "pci": name.pci, "model": name.model,
                "name": name.name,
            }),
        );
        if let Some(track) = used {
            map.insert("min_watts".to_owned(), track.range_w.0.into());
            map.insert("max_watts".to_owned(), track.range_w.1.into());
            map.insert("ceiling_watts".to_owned(), track.facts.ceiling_w.into());
        }
        let columns = card.tracks.iter().map(track_form).collect::<Vec<_>>();
        map.insert("power_columns".to_owned(), columns.into());
    }
    form
}

fn track_form(track: &Track) -> Value {
    json!({
        "name": track.channel.name,
        "readings": track.readings,
        "missing": track.lost.len(),
        "updates": track.updates,
        "update_period_s": track.update_s,
        "poll_gap_s": track.facts.poll_gap_s,
        "counter": track.is_counter(),
        "averaging_s": (!track.is_counter()).then(|| track.averaging_s()),
        "averaging_assumed": track.assumed,
    })
}

/// The measurement's own form, and its gross energy with its bound.
fn answer_form(answer: &Answer) -> Value {
    let mut form = serde_json::to_value(answer.measurement.form(0)).unwrap_or_default();
    if let Some(map) = form.as_object_mut() {
        map.insert("columns".to_owned(), json!(answer.columns));
        if let Some(seen) = &answer.seen {
            map.insert("gross_bound_joules".to_owned(), seen.bound_j.into());
            map.insert("gross_low_joules".to_owned(), seen.range_j.0.into());
            map.insert("gross_high_joules".to_owned(), seen.range_j.1.into());
        }
    }
    form
}
