use joulebook_core::{
    Flags, Power,
    series::{GaugeTrack, series_of},
};
use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const LIMITS: Limits = Limits { least_w: 0.0, most_w: 770.0 };

fn rest(watts: u64) -> Option<Rest> {
    Some(Rest { power_uw: watts * 1_000_000, off_uw: None, model_loaded: true })
}

/// A second, read ten times, at these powers, W.
fn knots(watts: [u64; 10]) -> Vec<(u64, u64)> {
    let mut sum_uj = 0;
    let mut knots = vec![(0, 0)];
    for (number, watts) in (1..).zip(watts) {
        sum_uj += watts * 100_000;
        knots.push((number * 100 * MS, sum_uj));
    }
    knots
}

fn joules(pieces: &[Piece]) -> Vec<f64> {
    pieces.iter().map(|piece| piece.counted_uj as f64 / 1e6).collect()
}

#[test]
fn two_requests_in_one_tick_get_what_was_drawn_in_their_time() {
    let knots = knots([600, 600, 600, 70, 70, 70, 170, 170, 170, 70]);
    let present = [(0, Some(300 * MS)), (600 * MS, Some(900 * MS))];
    // The counter says more than the gauge, by a tenth of what is above the floor.
    let above_uj = (3 * 53 + 3 * 10) * 1_000_000 * 11 / 10;
    let pieces = cut(70_000_000 + above_uj, &knots, rest(70), &present, LIMITS).unwrap();
    let expected = [65.3, 65.3, 65.3, 7.0, 7.0, 7.0, 18.0, 18.0, 18.0, 7.0];
    for (piece, joules) in joules(&pieces).into_iter().zip(expected) {
        assert!((piece - joules).abs() < 0.01, "{pieces:?}");
    }
    // Nothing can be misplaced where all requests lie on one side.
    let errors: Vec<bool> = pieces.iter().map(|piece| piece.error_uj > 0).collect();
    assert_eq!(errors, [true, true, true, true, true, true, true, true, false, false]);
}

#[test]
fn whoever_is_alone_in_a_tick_gets_all_of_it_however_late_the_gauge_is() {
    // It worked from 200 to 500 ms, and the gauge shows it a reading later.
    let knots = knots([70, 70, 70, 400, 400, 400, 70, 70, 70, 70]);
    let present = [(200 * MS, Some(500 * MS))];
    let pieces = cut(70_000_000 + 99_000_000, &knots, rest(70), &present, LIMITS).unwrap();
    let own: f64 = joules(&pieces[2..5]).iter().sum();
    assert!((own - 21.0 - 99.0).abs() < 0.001, "{pieces:?}");
    assert!(
        pieces
            .iter()
            .enumerate()
            .all(|(number, piece)| { piece.error_uj == 0 || (2..4).contains(&number) })
    );
}

#[test]
fn nothing_is_cut_where_a_cut_tells_nothing() {
    let flat = knots([70; 10]);
    assert_eq!(cut(70_000_000, &flat, rest(70), &[(0, None)], LIMITS), None);
    assert_eq!(cut(90_000_000, &flat, rest(70), &[], LIMITS), None);
    let before = [(0, Some(0)), (1000 * MS, None)];
    assert_eq!(cut(90_000_000, &flat, rest(70), &before, LIMITS), None);
}

#[test]
fn a_gauge_that_shows_only_rest_leaves_time() {
    let pieces = cut(100_000_000, &knots([70; 10]), rest(70), &[(0, Some(500 * MS))], LIMITS);
    let pieces = joules(&pieces.unwrap());
    assert!((pieces[0] - 13.0).abs() < 0.001 && (pieces[9] - 7.0).abs() < 0.001, "{pieces:?}");
}

#[test]
fn without_a_floor_all_is_divided_as_it_was_shown() {
    let knots = knots([300, 300, 300, 300, 300, 100, 100, 100, 100, 100]);
    let pieces = cut(200_000_000, &knots, None, &[(0, Some(500 * MS))], LIMITS).unwrap();
    assert_eq!(joules(&pieces)[4..6], [30.0, 10.0]);
}

#[test]
fn a_shape_is_known_between_readings_on_both_sides() {
    let (mut writer, series) = series_of(64, 2);
    let mut track = GaugeTrack::new(50 * MS);
    assert_eq!(Shaped::of(&series, 0, 100), Shaped::Pending);
    for number in 0..30u64 {
        let power = Power::from_microwatts(if number < 10 { 100 } else { 300 } * 1_000_000);
        track.reading(1000 * MS + number * 50 * MS, power, Flags::NONE, &mut writer).unwrap();
    }
    let Shaped::Knots(knots) = Shaped::of(&series, 1020 * MS, 2020 * MS) else { panic!() };
    assert_eq!(knots.len(), 22);
    assert_eq!((knots[0], knots[1]), ((1020 * MS, 0), (1050 * MS, 3_000_000)));
    // 430 ms at 100 W, 50 ms of slope, 520 ms at 300 W.
    let last = knots.last().copied().unwrap();
    assert_eq!(last.0, 2020 * MS);
    assert!(last.1.abs_diff(43_000_000 + 10_000_000 + 156_000_000) <= 1, "{last:?}");
    assert_eq!(Shaped::of(&series, 900 * MS, 1400 * MS), Shaped::Unknown);
    assert_eq!(Shaped::of(&series, 1400 * MS, 2460 * MS), Shaped::Pending);
    let long = 2450 * MS + 31_000 * MS;
    track.reading(long, Power::from_microwatts(5), Flags::NONE, &mut writer).unwrap();
    assert_eq!(Shaped::of(&series, 2000 * MS, 3000 * MS), Shaped::Unknown, "a gap");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever was drawn: pieces add up exactly, and the energy up to each cut that has requests on
    /// both sides is within its error of the truth.
    #[test]
    fn pieces_add_up_and_cuts_lie_within_their_error(
        drawn_w in proptest::array::uniform10(70u64..700),
        late in 0usize..3,
        gain in 800u64..1200,
        spans in proptest::collection::vec((0u64..1000, 0u64..600), 1..6),
    ) {
        let shown: [u64; 10] =
            std::array::from_fn(|at| drawn_w[at.saturating_sub(late)] * gain / 1000);
        let truth_uj: Vec<u64> = knots(drawn_w).into_iter().map(|(_, uj)| uj).collect();
        let whole_uj = truth_uj[10];
        let present: Vec<_> = spans
            .iter()
            .map(|(from, length)| (from * MS, Some((from + length) * MS)))
            .collect();
        let limits = Limits { least_w: 20.0, most_w: 770.0 };
        let Some(pieces) = cut(whole_uj, &knots(shown), rest(70), &present, limits) else {
            return Ok(());
        };
        prop_assert_eq!(pieces.iter().map(|piece| piece.counted_uj).sum::<u64>(), whole_uj);
        prop_assert_eq!(pieces.last().map(|piece| piece.end_ns), Some(1000 * MS));
        let mut so_far_uj = 0u64;
        for (piece, truth_uj) in pieces.iter().zip(&truth_uj[1..]) {
            so_far_uj += piece.counted_uj;
            if piece.error_uj > 0 {
                prop_assert!(so_far_uj.abs_diff(*truth_uj) <= piece.error_uj + 1, "{:?}", pieces);
            }
        }
    }
}
