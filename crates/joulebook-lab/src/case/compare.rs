//! An answer against what was expected of it.
//!
//! Numbers agree within 0.5 %, those in joules also within the case's own `tolerance_j`; `a | b` and
//! `a or b` allow either; null stands for absent; a remark in parentheses behind a word is a remark.
//! Of a list that holds what was seen (flags) one word may be expected. Some words of cases have
//! another name in the product ([`SAME`]).

use serde_json::{Map, Value};

/// Keys that hold prose for people, or how to compare.
const PROSE: &[&str] = &[
    "must",
    "must_not",
    "rule",
    "why",
    "note",
    "also_note",
    "log",
    "hint",
    "extra",
    "check",
    "tolerance_j",
];
/// A case's word, and ours.
const SAME: &[(&str, &str)] = &[
    ("chip", "gpu"),
    ("own", "alone"),
    ("none_seen", "alone"),
    ("contended", "foreign"),
    ("apportioned", "ledger"),
];
const TOLERANCE: f64 = 0.005;

/// The answer's values for the keys that are expected, prose left out.
pub(super) fn picked(
    expected: &Map<String, Value>,
    answer: &Map<String, Value>,
) -> Map<String, Value> {
    let pick = |(key, expected): (&String, &Value)| {
        let got = answer.get(key)?;
        let got = match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => Value::Object(picked(expected, got)),
            _ => got.clone(),
        };
        Some((key.clone(), got))
    };
    wanted(expected).filter_map(pick).collect()
}

/// Where they differ, in words; empty where they agree.
pub(super) fn differences(expected: &Map<String, Value>, got: &Map<String, Value>) -> Vec<String> {
    let tolerance_j = expected.get("tolerance_j").and_then(Value::as_f64).unwrap_or(0.0);
    let mut differs = Vec::new();
    for (key, expected) in wanted(expected) {
        let at = if key.ends_with("_j") { tolerance_j } else { 0.0 };
        match (expected, got.get(key)) {
            (_, None) => differs.push(format!("{key}: expected {expected}, nothing came")),
            (Value::Object(expected), Some(Value::Object(got))) => {
                let inner = differences(expected, got);
                differs.extend(inner.into_iter().map(|inner| format!("{key}.{inner}")));
            }
            (_, Some(got)) if agrees(expected, got, at) => {}
            (_, Some(got)) => differs.push(format!("{key}: expected {expected}, got {got}")),
        }
    }
    differs
}

fn wanted(expected: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    expected.iter().filter(|(key, _)| !PROSE.contains(&key.as_str()))
}

fn agrees(expected: &Value, got: &Value, tolerance: f64) -> bool {
    match (expected, got) {
        (Value::Number(expected), Value::Number(got)) => {
            let (Some(expected), Some(got)) = (expected.as_f64(), got.as_f64()) else {
                return false;
            };
            (expected - got).abs() <= (TOLERANCE * expected.abs()).max(tolerance)
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len()
                && expected.iter().zip(got).all(|(expected, got)| agrees(expected, got, tolerance))
        }
        (Value::String(_), Value::Array(seen)) => {
            seen.iter().any(|seen| agrees(expected, seen, tolerance))
        }
        (Value::Object(expected), Value::Object(got)) => differences(expected, got).is_empty(),
        (Value::String(expected), Value::String(got)) => words_agree(expected, got),
        _ => expected == got,
    }
}

fn words_agree(expected: &str, got: &str) -> bool {
    let same = |one: &str, other: &str| one == other || SAME.contains(&(one, other));
    let either = expected.split('|').flat_map(|word| word.split(" or ")).map(str::trim);
    let allowed: Vec<&str> = either.collect();
    let bare = |word: &str| word.split(" (").next().unwrap_or(word).to_owned();
    // Several answers at once must each be an allowed one.
    let each = |got: &str| allowed.iter().any(|word| same(word, got) || same(&bare(word), got));
    same(expected, got) || got.split(" | ").all(each)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differ(expected: Value, got: Value) -> usize {
        let (Value::Object(expected), Value::Object(got)) = (expected, got) else { return 99 };
        differences(&expected, &picked(&expected, &got)).len()
    }

    #[test]
    fn numbers_agree_within_half_a_per_cent_or_the_cases_own_tolerance() {
        assert_eq!(differ(json!({"gross_j": 100.0}), json!({"gross_j": 100.4})), 0);
        assert_eq!(differ(json!({"gross_j": 100.0}), json!({"gross_j": 100.6})), 1);
        let wide = json!({"gross_j": 100.0, "samples": 100, "tolerance_j": 1.0});
        assert_eq!(differ(wide.clone(), json!({"gross_j": 100.9, "samples": 100})), 0);
        assert_eq!(differ(wide, json!({"gross_j": 100.9, "samples": 101})), 1);
        assert_eq!(differ(json!({"joules": 0}), json!({"joules": 0.001})), 1);
    }

    #[test]
    fn absent_is_null_and_nothing_else() {
        assert_eq!(differ(json!({"joules": null}), json!({"joules": null})), 0);
        for got in [json!({"joules": 0}), json!({"joules": false}), json!({})] {
            assert_eq!(differ(json!({"joules": null}), got), 1);
        }
        assert_eq!(differ(json!({"joules": 0}), json!({"joules": null})), 1);
    }

    #[test]
    fn words_have_alternatives_remarks_and_other_names() {
        for (expected, got) in [
            ("nvml_power|smi_sampler", "smi_sampler"),
            ("permission | absent", "permission | absent"),
            ("permission | absent", "absent"),
            ("chip counter or gauge", "chip counter"),
            ("contended (two parents)", "foreign"),
            ("none_seen", "alone"),
        ] {
            assert_eq!(differ(json!({"is": expected}), json!({"is": got})), 0, "{expected} {got}");
        }
        for (expected, got) in
            [("sampled", "unknown"), ("a | b", "c"), ("a | b", "a | c"), ("own", "foreign")]
        {
            assert_eq!(differ(json!({"is": expected}), json!({"is": got})), 1, "{expected} {got}");
        }
    }

    #[test]
    fn prose_is_no_part_of_it_and_one_flag_of_several_will_do() {
        let expected =
            json!({"flag": "gap", "must_not": "x", "inner": {"note": "y", "w": [1, null]}});
        let got = json!({"flag": ["partial", "gap"], "inner": {"w": [1, null], "more": 3}});
        assert_eq!(differ(expected.clone(), got), 0);
        assert_eq!(differ(expected, json!({"flag": [], "inner": {"w": [1]}})), 2);
    }
}
