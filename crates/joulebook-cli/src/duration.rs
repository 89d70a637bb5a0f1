//! Spans of time as people write them.

use std::time::Duration;

/// `10s`, `500ms`, `1m30s`, `2h`; a bare number is seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<f64>().ok();
    let span = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok())
        }
    };
    span.filter(|span| !span.is_zero() && *span < Duration::from_secs(366 * 86_400))
        .ok_or_else(|| "not a span of time; give seconds, or 500ms, 10s, 1m30s, 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        for (text, milliseconds) in
            [("10s", 10_000), ("10", 10_000), ("0.5", 500), ("500ms", 500), ("1m30s", 90_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "soon", "-1s", "0", "nan", "inf", "10 parsecs", "1e300"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
