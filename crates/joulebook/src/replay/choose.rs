//! Which column of a card a window is read from. Columns show the same power, so one is chosen.

use joulebook_core::Scope;

use super::{Shows, Track};

/// Windows shorter than this many averaging windows are read from the instant.
const AVERAGING_WINDOWS: f64 = 3.0;

/// The column for a window of this length: a counter that was seen to move; else the instant for
/// short windows, the average beyond. What covers more than the card is taken by name, or where
/// nothing else is there.
pub(super) fn choose(tracks: &[Track], seconds: f64) -> Option<&Track> {
    let is_card = |track: &&Track| track.channel.scope == Scope::Gpu;
    let counter = tracks.iter().filter(is_card).find(|it| it.is_counter() && it.has_energy());
    let of =
        |shows: Shows| tracks.iter().filter(is_card).find(|track| track.channel.shows == shows);
    let average = of(Shows::Draw).or_else(|| of(Shows::Average));
    let instant = of(Shows::Instant);
    let gauge = match (average, instant) {
        (Some(average), Some(instant)) => {
            let short = seconds < AVERAGING_WINDOWS * average.averaging_s();
            Some(if short { instant } else { average })
        }
        (average, instant) => average.or(instant),
    };
    counter.or(gauge).or_else(|| tracks.iter().find(|track| track.has_energy())).or(tracks.first())
}
