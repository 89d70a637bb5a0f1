//! What a wave adds, and its integral from its span's start: whole periods by multiplication, the
//! last one in closed form.

use std::f64::consts::TAU;

use super::SECOND_NS;
use crate::scenario::Wave;

/// What it adds at an instant, W.
pub(super) fn watts(wave: &Wave, t_ns: i64) -> f64 {
    if !wave.span().contains(t_ns) {
        return 0.0;
    }
    match *wave {
        Wave::Square { span, period_ns, on_ns, phase_ns, w } => {
            let into = since(t_ns, span.start_ns).saturating_sub(phase_ns).rem_euclid(period_ns);
            if into < on_ns { w } else { 0.0 }
        }
        Wave::Sine { span, period_ns, w } => {
            let into = since(t_ns, span.start_ns).rem_euclid(period_ns);
            w * (TAU * into as f64 / period_ns as f64).sin()
        }
    }
}

/// What it has added from its span's start to an instant, J.
pub(super) fn joules(wave: &Wave, t_ns: i64) -> f64 {
    let span = wave.span();
    let t_ns = t_ns.clamp(span.start_ns, span.end_ns);
    let elapsed = since(t_ns, span.start_ns);
    match *wave {
        Wave::Square { period_ns, on_ns, phase_ns, w, .. } => {
            // On time since some period's start, at an instant relative to a period's start.
            let on = |x: i64| {
                let whole = i128::from(x.div_euclid(period_ns)) * i128::from(on_ns);
                whole + i128::from(x.rem_euclid(period_ns).min(on_ns))
            };
            let lit = on(elapsed.saturating_sub(phase_ns)) - on(0_i64.saturating_sub(phase_ns));
            w * lit as f64 / SECOND_NS
        }
        Wave::Sine { period_ns, w, .. } => {
            let angle = TAU * elapsed.rem_euclid(period_ns) as f64 / period_ns as f64;
            // 1 − cos, without its cancellation at small angles.
            let rise = 2.0 * (angle / 2.0).sin().powi(2);
            w * period_ns as f64 / TAU * rise / SECOND_NS
        }
    }
}

fn since(t_ns: i64, start_ns: i64) -> i64 {
    t_ns.saturating_sub(start_ns)
}
