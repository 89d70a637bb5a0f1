//! Readings as cases write them: pairs `[time, value]`, or a sentence for many of them.
//!
//! Sentences: `1000 polls 1 ms apart; value 90.0 for t<0.5 s, 210.0 from t=0.5 s` · `60 W at 1 Hz for
//! t=0..10 and t=3610..3620` · `60 W t=0..10, 250 W t=10..20` (once a second) · `70 W constant from
//! start` (once a second, as long as is asked). Where two stretches meet, the later one's value holds.

use serde_json::Value;

use super::field::{Refused, refused};

/// One reading: when (s), and the text of its cell.
pub(super) type Reading = (f64, String);

/// The readings; `until_s` is how long a reading without an end goes on.
pub(super) fn of(readings: &Value, until_s: f64) -> Result<Vec<Reading>, Refused> {
    let found = match readings {
        Value::Array(pairs) => pairs.iter().map(pair).collect::<Option<Vec<_>>>(),
        Value::String(sentence) => sentence_of(sentence, until_s),
        _ => None,
    };
    found.filter(|readings| !readings.is_empty()).ok_or_else(|| refused("readings"))
}

fn pair(pair: &Value) -> Option<Reading> {
    let [time, value] = pair.as_array()?.as_slice() else { return None };
    Some((time.as_f64()?, cell(value)))
}

/// A value as a log's cell would have it.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn sentence_of(sentence: &str, until_s: f64) -> Option<Vec<Reading>> {
    if sentence.contains(" polls ") {
        return polls(sentence);
    }
    if sentence.contains(" constant from start") {
        let watts = number_before(sentence, " W")?;
        return Some(each(0.0, until_s, 1.0).map(|at_s| (at_s, watts.to_string())).collect());
    }
    let mut readings: Vec<Reading> = Vec::new();
    let (mut watts, mut rate_hz) = (None, 1.0);
    for part in sentence.split(',').flat_map(|part| part.split(" and ")) {
        watts = number_before(part, " W").or(watts);
        rate_hz = number_before(part, " Hz").unwrap_or(rate_hz);
        let (from, rest) = part.split_once("t=")?.1.split_once("..")?;
        let to = rest.split_whitespace().next()?;
        let (from_s, to_s): (f64, f64) = (from.trim().parse().ok()?, to.parse().ok()?);
        if readings.last().is_some_and(|(at_s, _)| *at_s >= from_s) {
            readings.pop();
        }
        let value = watts?.to_string();
        readings.extend(each(from_s, to_s, rate_hz.recip()).map(|at_s| (at_s, value.clone())));
    }
    Some(readings)
}

fn polls(sentence: &str) -> Option<Vec<Reading>> {
    let (head, values) = sentence.split_once(';')?;
    let count = number_before(head, " polls")?;
    let apart_s = number_before(head, " ms")? / 1000.0;
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for part in values.trim().trim_start_matches("value").split(',') {
        let value: f64 = part.split_whitespace().next()?.parse().ok()?;
        let from_s = match part.split_once("from t=") {
            Some((_, from)) => from.split_whitespace().next()?.parse().ok()?,
            None => 0.0,
        };
        steps.push((from_s, value));
    }
    let value_at = |at_s: f64| {
        steps.iter().rev().find(|(from_s, _)| at_s >= *from_s - 1e-9).map(|(_, value)| *value)
    };
    (0..count as u64)
        .map(|poll| {
            let at_s = poll as f64 * apart_s;
            Some((at_s, value_at(at_s)?.to_string()))
        })
        .collect()
}

/// The number right before a word.
fn number_before(text: &str, word: &str) -> Option<f64> {
    let before = text.get(..text.find(word)?)?;
    before.split_whitespace().next_back()?.parse().ok()
}

fn each(from_s: f64, to_s: f64, step_s: f64) -> impl Iterator<Item = f64> {
    let steps = ((to_s - from_s) / step_s + 1e-9).max(0.0) as u64;
    (0..=steps).map(move |step| from_s + step as f64 * step_s)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary(readings: Value) -> (usize, Reading, Reading) {
        let readings = of(&readings, 15.0).unwrap();
        (readings.len(), readings[0].clone(), readings[readings.len() - 1].clone())
    }

    fn at(at_s: f64, cell: &str) -> Reading {
        (at_s, cell.to_owned())
    }

    #[test]
    fn sentences_are_many_readings() {
        let polls = "1000 polls 1 ms apart; value 90.0 for t<0.5 s, 210.0 from t=0.5 s";
        assert_eq!(summary(json!(polls)), (1000, at(0.0, "90"), at(0.999, "210")));
        let gap = "60 W at 1 Hz for t=0..10 and t=3610..3620 (boot clock)";
        assert_eq!(summary(json!(gap)), (22, at(0.0, "60"), at(3620.0, "60")));
        let steps = of(&json!("60 W t=0..10, 250 W t=10..20"), 0.0).unwrap();
        assert_eq!((steps.len(), &steps[10]), (21, &at(10.0, "250")));
        let constant = "70 W constant from start, processes present";
        assert_eq!(summary(json!(constant)), (16, at(0.0, "70"), at(15.0, "70")));
        assert_eq!(summary(json!([[0, "ERR!"], [1.5, 3]])), (2, at(0.0, "ERR!"), at(1.5, "3")));
    }

    #[test]
    fn other_sentences_are_refused() {
        for bad in [json!("whatever"), json!([]), json!(3), json!([[1]]), json!("60 W t=x..3")] {
            assert!(of(&bad, 0.0).is_err(), "{bad}");
        }
    }
}
