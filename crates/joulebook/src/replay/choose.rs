//! Which column of a card a window is read from. Columns show the same power, so one is chosen.

use joulebook_core::Scope;

use super::{Shows, Track};

/// Windows shorter than this many averaging windows are read from the instant.
const AVERAGING_WINDOWS: f64 = 3.0;

/// The column for a window of this length: the instant for short ones, the average beyond. A
/// module's columns are another quantity and are taken only by name.
pub(super) fn choose(tracks: &[Track], seconds: f64) -> Option<&Track> {
    let of = |shows: Shows| {
        tracks
            .iter()
            .find(|track| track.channel.shows == shows && track.channel.scope == Scope::Gpu)
    };
    let average = of(Shows::Draw).or_else(|| of(Shows::Average));
    let instant = of(Shows::Instant);
    match (average, instant) {
        (Some(average), Some(instant)) => {
            let short = seconds < AVERAGING_WINDOWS * average.resolution_s();
            Some(if short { instant } else { average })
        }
        (average, instant) => average.or(instant),
    }
}
