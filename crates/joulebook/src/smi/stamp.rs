//! When a row was taken, by the tool's own stamp.
//!
//! The tool stamps a row with the host's local time when it asks the card; we read the row later,
//! by an unknown lag. Both clocks are the same host's wall clock, and zones differ by whole quarters
//! of an hour, so the lag is the difference of the two without its quarters. It needs no history:
//! a reader that stalled from its first row on stamps its rows right all the same, and a clock that
//! is set, or a change to summer time, moves none (both readings are of the clock as it then was).
//!
//! Refused: a lag of more than a minute (another host's clock, or one set in between). Such a row
//! counts when it arrives.

const MINUTE_NS: u64 = 60_000_000_000;
const QUARTER_HOUR_NS: u64 = 15 * MINUTE_NS;
/// A stamp may seem to be of the future by the rounding of clocks.
const AHEAD_NS: u64 = 1_000_000_000;

/// How long before it was read a row was taken, ns. `stamp_ns`: the stamp, counted as if it were
/// UTC; `read_unix_ns`: when it was read, by the wall clock.
pub fn lag_ns(stamp_ns: u64, read_unix_ns: u64) -> Option<u64> {
    let apart = i128::from(read_unix_ns) - i128::from(stamp_ns);
    let lag_ns = u64::try_from(apart.rem_euclid(i128::from(QUARTER_HOUR_NS))).ok()?;
    if QUARTER_HOUR_NS - lag_ns <= AHEAD_NS {
        return Some(0);
    }
    (lag_ns <= MINUTE_NS).then_some(lag_ns)
}

/// When a row was taken, ns of our clock; `read_ns`, `read_unix_ns`: when it was read. Never before
/// the card's row before it.
pub fn taken_ns(
    stamp_ns: Option<u64>,
    read_ns: u64,
    read_unix_ns: u64,
    before_ns: Option<u64>,
) -> u64 {
    let lag_ns = stamp_ns.and_then(|stamp_ns| lag_ns(stamp_ns, read_unix_ns)).unwrap_or(0);
    let at_ns = read_ns.saturating_sub(lag_ns);
    before_ns.map_or(at_ns, |before_ns| at_ns.max(before_ns + 1).min(read_ns.max(before_ns + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// Noon, by UTC and by the clock on the wall one hour ahead.
    const UNIX: u64 = 1_700_000_000 * SECOND;
    const LOCAL: u64 = UNIX + 3600 * SECOND;

    #[test]
    fn the_lag_needs_no_zone_and_no_history() {
        for zone_s in [0i64, 3600, 5 * 3600 + 45 * 60, -9 * 3600 - 30 * 60] {
            let stamp = UNIX.saturating_add_signed(zone_s * SECOND as i64);
            assert_eq!(lag_ns(stamp, UNIX + 4 * SECOND), Some(4 * SECOND), "{zone_s}");
        }
        assert_eq!(lag_ns(UNIX + 3, UNIX), Some(0), "ahead by a hair");
        assert_eq!(lag_ns(UNIX, UNIX + 70 * SECOND), None, "another clock");
        assert_eq!(lag_ns(UNIX + 5 * SECOND, UNIX), None, "another clock");
    }

    /// The trapezoid of readings, J.
    fn joules(readings: &[(u64, f64)]) -> f64 {
        let part = |pair: &[(u64, f64)]| match pair {
            [(from, a), (to, b)] => (to - from) as f64 / 1e9 * (a + b) / 2.0,
            _ => 0.0,
        };
        readings.windows(2).map(part).sum()
    }

    #[test]
    fn sampler_time_01_a_reader_that_stalls_moves_no_energy() {
        // Line 1 is read at once, the other 20 at t = 5 s.
        let mut before = None;
        let readings: Vec<(u64, f64)> = (0..=20)
            .map(|line| {
                let taken = line * SECOND / 4;
                let read = if line == 0 { 0 } else { 5 * SECOND };
                let at = taken_ns(Some(LOCAL + taken), 100 * SECOND + read, UNIX + read, before);
                before = Some(at);
                (at, if taken < 5 * SECOND / 2 { 50.0 } else { 350.0 })
            })
            .collect();
        assert_eq!(readings.first().unwrap().0, 100 * SECOND);
        assert_eq!(readings.last().unwrap().0, 105 * SECOND);
        assert!((joules(&readings) - 1037.5).abs() < 1e-6, "{}", joules(&readings));
    }

    #[test]
    fn a_clock_that_is_set_moves_one_row_at_most() {
        let at = |stamp, read, unix, before| taken_ns(Some(stamp), read, unix, before);
        // Set back by 7 minutes between two rows: each row's two readings are of one clock.
        let back = 420 * SECOND;
        assert_eq!(at(LOCAL, SECOND, UNIX + 1, None), SECOND - 1);
        assert_eq!(
            at(LOCAL - back + SECOND, 2 * SECOND, UNIX - back + SECOND, Some(SECOND)),
            2 * SECOND
        );
        // Set between the stamp and the reading: not before the row before it, nor in the future.
        assert_eq!(at(LOCAL, 3 * SECOND, UNIX + 5 * SECOND, Some(2 * SECOND)), 2 * SECOND + 1);
        assert_eq!(taken_ns(None, 3 * SECOND, UNIX, Some(2 * SECOND)), 3 * SECOND, "no stamp");
    }
}
