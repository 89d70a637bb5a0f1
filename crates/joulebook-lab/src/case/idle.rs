//! The idle floor of a case: declared, or learnt from what came before the request.

use joulebook_core::{
    Power,
    estimate::Span,
    idle::{Quiet, Tick},
    ring::Point,
};
use serde_json::Value;

use super::field::maybe;

/// The floor, W; none where it is neither declared nor seen. It is learnt where the case asks for
/// that, or leaves the declared one out by name.
pub(super) fn floor(input: &Value, points: &[Point], request: Span) -> Option<f64> {
    let declared = ["idle_w", "configured_idle_w"].iter().find_map(|name| maybe(input, name));
    let learns = input.get("learn").and_then(Value::as_bool) == Some(true)
        || input.get("configured_idle_w").is_some();
    declared.or_else(|| learns.then(|| learnt(input, points, request)).flatten())
}

fn learnt(input: &Value, points: &[Point], request: Span) -> Option<f64> {
    // Whose they are is not said, so they may be at work at any time.
    let sentence = input.get("readings").and_then(Value::as_str).unwrap_or_default();
    let somebody = sentence.contains("processes present");
    let mut quiet = Quiet::default();
    for pair in points.windows(2) {
        let [from, to] = pair else { continue };
        let length_ns = to.at_ns.saturating_sub(from.at_ns);
        let drawn_uj = u128::from(to.energy_uj.saturating_sub(from.energy_uj));
        let Some(power_uw) = (drawn_uj * 1_000_000_000).checked_div(u128::from(length_ns)) else {
            continue;
        };
        let ours = to.at_ns > request.open_ns && from.at_ns < request.close_ns;
        quiet.tick(Tick {
            to_ns: to.at_ns,
            power: Power::from_microwatts(u64::try_from(power_uw).unwrap_or(u64::MAX)),
            occupied: ours || somebody,
            model_loaded: true,
        });
    }
    quiet.floor(true, request.open_ns).ok().map(|floor| floor.power.watts())
}
