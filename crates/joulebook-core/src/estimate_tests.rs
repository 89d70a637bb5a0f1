use super::*;
use crate::{
    series::{GaugeTrack, series_of},
    units::Power,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn facts() -> Facts {
    Facts {
        ceiling_w: 770.0,
        deepest_w: 70.0,
        poll_gap_s: 0.1,
        period_s: 0.1,
        lag_s: 0.0,
        lag_uncertainty_s: 0.0,
        quantum_j: 0.001,
        averaging_s: None,
        skew: Skew::default(),
    }
}

/// A true power curve: watts from each instant (ms) on. Its integral is a plain sum.
struct Truth(Vec<(u64, f64)>);

impl Truth {
    /// 70 W, and `extra_w` more between two instants (ms).
    fn step(open_ms: u64, close_ms: u64, extra_w: f64) -> Self {
        Self(vec![(0, 70.0), (open_ms, 70.0 + extra_w), (close_ms, 70.0)])
    }

    fn joules(&self, until_ns: u64) -> f64 {
        let ends = self.0.iter().skip(1).map(|(ms, _)| ms * MS).chain([u64::MAX]);
        let part = |((from_ms, watts), end_ns): (&(u64, f64), u64)| {
            watts * seconds((from_ms * MS).min(until_ns), end_ns.min(until_ns))
        };
        self.0.iter().zip(ends).map(part).sum()
    }

    fn over(&self, span: Span) -> f64 {
        self.joules(span.close_ns) - self.joules(span.open_ns)
    }

    /// What a register shows that publishes each 100 ms, `lag_ms` late, its stamps exact.
    fn published(&self, until_ms: u64, lag_ms: u64) -> Vec<Point> {
        let publishes = (lag_ms.div_ceil(100)..).map(|number| number * 100 * MS);
        publishes
            .take_while(|at_ns| *at_ns <= until_ms * MS)
            .map(|at_ns| Point {
                at_ns,
                energy_uj: (self.joules(at_ns - lag_ms * MS) * 1e6).round() as u64,
                ..Point::default()
            })
            .collect()
    }
}

fn span(open_ms: u64, close_ms: u64) -> Span {
    Span { open_ns: open_ms * MS, close_ns: close_ms * MS }
}

fn assert_within(estimate: &Estimate, truth_j: f64) {
    let error = (estimate.gross_j - truth_j).abs();
    assert!(error <= estimate.bound_j + 1e-6, "{estimate:?}: off by {error} J from {truth_j} J");
    let (low, high) = estimate.range_j;
    assert!(low - 1e-6 <= truth_j && truth_j <= high + 1e-6, "{estimate:?}: {truth_j} J");
}

fn nobody(_: u64, _: u64) -> bool {
    false
}

const QUIET: Neighbours<'static> = Neighbours { rest_w: Some(70.0), occupied: &nobody };

#[test]
fn raw_is_the_difference_of_the_newest_publishes() {
    let truth = Truth::step(1040, 1340, 330.0);
    let points = truth.published(2000, 0);
    let estimate =
        raw(Some(points[10]), Some(points[13]), &points, span(1040, 1340), &facts()).unwrap();
    assert!((estimate.gross_j - (truth.joules(1300 * MS) - truth.joules(1000 * MS))).abs() < 1e-5);
    assert_eq!((estimate.rule, estimate.samples), (Rule::Raw, 3));
    assert_within(&estimate, truth.over(span(1040, 1340)));
}

#[test]
fn a_part_shorter_than_the_period_holds_no_figure_of_its_own() {
    let points = Truth::step(1040, 1340, 330.0).published(2000, 0);
    let part = |opening: usize, closing: usize, span| {
        raw_part(Some(points[opening]), Some(points[closing]), &points, span, &facts())
    };
    // 5 ms around one publish: the energy of 100 ms.
    let missing = part(10, 11, span(1098, 1103)).unwrap_err();
    assert_eq!(missing.fault, Fault::WindowBelowResolution);
    assert!(missing.seen.unwrap().gross_j > 10.0, "it is kept");
    assert!(part(10, 11, span(1050, 1150)).is_ok());
}

#[test]
fn raw_says_nothing_where_nothing_was_published() {
    let points = Truth::step(0, 1, 0.0).published(2000, 0);
    let asked = |opening, closing| raw(opening, closing, &points, span(1040, 1060), &facts());
    let fault = |estimated: Estimated| estimated.unwrap_err().fault;
    assert_eq!(fault(asked(Some(points[10]), Some(points[10]))), Fault::WindowBelowResolution);
    assert_eq!(fault(asked(None, Some(points[10]))), Fault::NotReady);
    assert_eq!(fault(asked(Some(points[10]), None)), Fault::NotReady);
}

#[test]
fn raw_counts_a_known_lag_as_error() {
    let truth = Truth::step(1000, 1300, 700.0);
    let points = truth.published(2000, 50);
    let facts = Facts { lag_s: 0.05, ..facts() };
    // Points from 100 ms on: 9 is the publish at 1 s, 12 that at 1.3 s.
    let estimate =
        raw(Some(points[9]), Some(points[12]), &points, span(1000, 1300), &facts).unwrap();
    assert!((estimate.gross_j - truth.over(span(1000, 1300)) + 35.0).abs() < 1e-3);
    assert_within(&estimate, truth.over(span(1000, 1300)));
}

#[test]
fn shared_is_exact_on_a_steady_load_and_reads_a_lag_later() {
    for lag_ms in [0, 50] {
        let truth = Truth::step(500, 1500, 330.0);
        let points = truth.published(3000, lag_ms);
        let facts = Facts { lag_s: lag_ms as f64 / 1e3, ..facts() };
        let curve = Curve::new(&points, &facts);
        let estimate = shared(&curve, span(730, 1310)).unwrap();
        assert!((estimate.gross_j - 400.0 * 0.58).abs() < 1e-3, "{lag_ms}: {estimate:?}");
        assert_within(&estimate, truth.over(span(730, 1310)));
        assert_eq!(estimate.samples, 7, "{lag_ms}");
    }
}

#[test]
fn the_bound_of_an_edge_is_the_formula_of_the_specification() {
    // One tick of 300 W mean around each edge, a quarter and three quarters in.
    let truth = Truth(vec![(0, 300.0)]);
    let points = truth.published(2000, 0);
    let facts = facts();
    let estimate = shared(&Curve::new(&points, &facts), span(1025, 1275)).unwrap();
    let edge = |x: f64| {
        let (up, down, rest) = (470.0f64, 230.0f64, 0.1 - x);
        (up * x).min(down * rest).max((down * x).min(up * rest))
    };
    let expected = edge(0.025) + edge(0.075) + 2.0 * facts.quantum_j;
    // The range is cut to what each edge leaves on its own side, so it may only be sharper.
    assert!(estimate.bound_j <= expected + 1e-9, "{} > {expected}", estimate.bound_j);
    assert!(estimate.bound_j >= expected * 0.9, "{} < {expected}", estimate.bound_j);
}

#[test]
fn a_tick_that_seems_above_the_ceiling_is_clipped() {
    // 490 W for 200 ms between two publishes that polls could only place 100 ms apart.
    let points = [
        Point { at_ns: SECOND, uncertainty_ns: 50_000_000, ..Point::default() },
        Point {
            at_ns: SECOND + 100 * MS,
            energy_uj: 98_000_000,
            uncertainty_ns: 50_000_000,
            ..Point::default()
        },
    ];
    let facts = facts();
    let estimate = shared(&Curve::new(&points, &facts), span(1040, 1060)).unwrap();
    assert!((estimate.gross_j - 770.0 * 0.02).abs() < 1e-9, "{estimate:?}");
    assert_within(&estimate, 490.0 * 0.02);
}

#[test]
fn a_gap_is_missing_with_what_is_certainly_known() {
    let truth = Truth::step(0, 1, 0.0);
    let gaps = [
        (Flags::AMBIGUOUS_WRAP | Flags::COUNTER_RESET | Flags::GAP, Fault::AmbiguousWrap),
        (Flags::COUNTER_RESET | Flags::GAP, Fault::CounterReset),
        (Flags::COUNTER_SET | Flags::GAP, Fault::Implausible),
        (Flags::GAP, Fault::Gap),
    ];
    for (flags, fault) in gaps {
        let mut points = truth.published(3000, 0);
        points[15].flags = flags;
        let facts = facts();
        let curve = Curve::new(&points, &facts);
        let missing = settled(&curve, span(1050, 1950), &QUIET).unwrap_err();
        assert_eq!(missing.fault, fault);
        // Whole ticks from 1.1 to 1.9 s.
        assert!((missing.lower_bound_j.unwrap() - 56.0).abs() < 1e-3, "{missing:?}");
        let at_once = raw(Some(points[10]), Some(points[19]), &points, span(1050, 1950), &facts);
        assert_eq!(at_once.unwrap_err().fault, fault);
        // It concerns nobody else.
        assert!(settled(&curve, span(1650, 1950), &QUIET).is_ok());
        assert!(settled(&curve, span(1050, 1350), &QUIET).is_ok());
    }
}

#[test]
fn what_the_series_does_not_cover_is_partial() {
    let truth = Truth::step(0, 1, 0.0);
    let points: Vec<Point> = truth.published(3000, 0).split_off(10);
    let facts = facts();
    let curve = Curve::new(&points, &facts);
    for (open_ms, close_ms, known_j) in [(950, 1250, 14.0), (2750, 3050, 14.0)] {
        let missing = shared(&curve, span(open_ms, close_ms)).unwrap_err();
        assert_eq!((missing.fault, missing.flags), (Fault::NotReady, Flags::PARTIAL));
        assert!((missing.lower_bound_j.unwrap() - known_j).abs() < 1e-3, "{missing:?}");
    }
    assert!(shared(&curve, span(1000, 3000)).is_ok());
    assert_eq!(shared(&Curve::new(&[], &facts), span(1, 2)).unwrap_err().lower_bound_j, None);
}

#[test]
fn alone_finds_a_window_shorter_than_a_tick() {
    for (lag_ms, known) in [(0, true), (50, true), (50, false)] {
        let truth = Truth::step(1030, 1035, 330.0);
        let points = truth.published(3000, lag_ms);
        let (lag_s, lag_uncertainty_s) =
            if known { (lag_ms as f64 / 1e3, 0.001) } else { (0.0, 0.1) };
        let facts = Facts { lag_s, lag_uncertainty_s, ..facts() };
        let estimate = settled(&Curve::new(&points, &facts), span(1030, 1035), &QUIET).unwrap();
        assert_eq!(estimate.rule, Rule::Alone);
        assert!((estimate.gross_j - 2.0).abs() < 1e-3, "{estimate:?}");
        assert!(estimate.bound_j < 0.01, "{estimate:?}");
    }
}

/// A window that is alone, and one thing about it changed.
fn changed(change: impl Fn(&mut Vec<Point>, &mut Facts)) -> Option<Estimate> {
    let mut points = Truth::step(1030, 1035, 330.0).published(1400, 0);
    let mut facts = facts();
    change(&mut points, &mut facts);
    alone(&Curve::new(&points, &facts), span(1030, 1035), &QUIET)
}

#[test]
fn alone_says_nothing_in_doubt() {
    assert!(changed(|_, _| ()).is_some());
    for flag in [Flags::FOREIGN, Flags::TENANCY_UNKNOWN, Flags::GAP] {
        for point in [9, 10, 11, 12] {
            assert_eq!(changed(|points, _| points[point].flags = flag), None, "{flag:?} {point}");
        }
    }
    // A hole beside it is no quiet tick; one around it widens nothing.
    assert_eq!(changed(|points, _| points[9].flags = Flags::HOLE), None);
    assert!(changed(|points, _| points[11].flags = Flags::HOLE).is_some());
    // Somebody draws 4 W before; or after.
    assert_eq!(changed(|points, _| points[9].energy_uj -= 400_000), None);
    assert_eq!(changed(|points, _| points[12].energy_uj += 400_000), None);
    // A single quiet tick before may be a pause.
    assert_eq!(changed(|points, _| points[8].energy_uj -= 4_000_000), None);
    assert!(changed(|points, _| points[7].energy_uj -= 4_000_000).is_some());
    // The quiet stretch before is more than two seconds old.
    assert_eq!(
        changed(|points, _| {
            points.iter_mut().skip(11).for_each(|point| point.at_ns += 2500 * MS);
            points.drain(11..).for_each(drop);
        }),
        None
    );
    // No quiet tick after; or it comes too late.
    assert_eq!(changed(|points, _| points.truncate(12)), None);
    assert_eq!(changed(|_, facts| facts.period_s = 0.05), None);
}

#[test]
fn stamps_that_show_nothing_need_all_five_ticks() {
    let anyhow = |points: &mut Vec<Point>| {
        points.iter_mut().for_each(|point| point.uncertainty_ns = 50_000_000);
    };
    let estimate = changed(|points, facts| {
        anyhow(points);
        facts.lag_uncertainty_s = 0.0;
    })
    .unwrap();
    assert!((estimate.gross_j - 2.0).abs() < 1e-3, "{estimate:?}");
    assert!(estimate.bound_j > 1.0, "what the stamps leave open is in the bound: {estimate:?}");
    for tick in 5..=9 {
        let louder = |points: &mut Vec<Point>| {
            anyhow(points);
            points[tick..].iter_mut().for_each(|point| point.energy_uj += 300_000);
        };
        // A tick of 73 W: fewer quiet ones are enough only where stamps show them to be quiet.
        assert_eq!(changed(|points, _| louder(points)), None, "{tick}");
    }
}

#[test]
fn short_ticks_are_pinned_together_and_not_one_by_one() {
    let run = |ticks: u64, tick_ms: u64| {
        let point = |number| Point {
            at_ns: number * tick_ms * MS,
            uncertainty_ns: 1_100_000,
            ..Point::default()
        };
        is_pinned(&(0..=ticks).map(point).collect::<Vec<_>>())
    };
    assert!(run(1, 100) && !run(1, 20) && run(2, 20));
    assert!(!run(0, 100) && !is_pinned(&[]));
}

#[test]
fn alone_needs_a_floor_that_fits_and_no_sibling() {
    let points = Truth::step(1030, 1035, 330.0).published(1400, 0);
    let facts = facts();
    let curve = Curve::new(&points, &facts);
    let with = |rest_w, occupied: &dyn Fn(u64, u64) -> bool| {
        alone(&curve, span(1030, 1035), &Neighbours { rest_w, occupied }).is_some()
    };
    assert!(with(Some(70.0), &nobody) && with(Some(71.9), &nobody));
    assert!(!with(None, &nobody));
    assert!(!with(Some(73.0), &nobody) && !with(Some(66.0), &nobody));
    // A sibling in a tick beside, in the window's own, and in ticks that are not needed.
    let sibling = |from_ms: u64, to_ms: u64| {
        with(Some(70.0), &move |from, to| from < to_ms * MS && to > from_ms * MS)
    };
    assert!(!sibling(950, 960) && !sibling(1080, 1090) && !sibling(1150, 1160));
    assert!(sibling(300, 350) && sibling(1250, 1260));
}

#[test]
fn a_loaded_card_is_read_by_the_shared_rule() {
    let truth = Truth(vec![(0, 220.0)]);
    let points = truth.published(3000, 0);
    let facts = facts();
    let estimate = settled(&Curve::new(&points, &facts), span(1030, 1090), &QUIET).unwrap();
    assert_eq!(estimate.rule, Rule::Shared);
    assert_within(&estimate, truth.over(span(1030, 1090)));
}

/// The point of this publish as polls see it that missed it: anywhere in the next 98 ms.
fn misplaced(point: Point) -> Point {
    Point { at_ns: point.at_ns + 50 * MS, uncertainty_ns: 50_000_000, ..point }
}

#[test]
fn a_publish_that_polls_could_hardly_place_is_passed_over() {
    let truth = Truth::step(1030, 1035, 330.0);
    let facts = facts();
    for missed in [9, 10, 11, 12] {
        let mut points = truth.published(1400, 0);
        points[missed] = misplaced(points[missed]);
        let estimate = settled(&Curve::new(&points, &facts), span(1030, 1035), &QUIET).unwrap();
        assert_eq!((estimate.rule, missed), (Rule::Alone, missed));
        assert!((estimate.gross_j - 2.0).abs() < 1e-3, "{missed}: {estimate:?}");
    }
    // On a busy card the line goes on to the publish beyond, and so does the bound.
    let truth = Truth(vec![(0, 400.0)]);
    let exact = truth.published(2000, 0);
    let mut points = exact.clone();
    points[10] = misplaced(points[10]);
    let asked = span(1040, 1290);
    let of = |points: &[Point]| shared(&Curve::new(points, &facts), asked).unwrap();
    assert!((of(&points).gross_j - 100.0).abs() < 1e-3, "{:?}", of(&points));
    assert!(of(&points).bound_j <= of(&exact).bound_j + 400.0 * 0.05, "{:?}", of(&points));
    // But never over a gap.
    points[10].flags = Flags::GAP;
    assert!(shared(&Curve::new(&points, &facts), span(1160, 1290)).is_ok());
    assert_eq!(
        shared(&Curve::new(&points, &facts), span(1040, 1290)).unwrap_err().fault,
        Fault::Gap
    );
}

/// Points of a gauge that was read at these instants (ms).
fn readings(gap_ms: u64, readings: impl IntoIterator<Item = (u64, f64)>) -> Vec<Point> {
    let (mut writer, series) = series_of(4096, 64);
    let mut track = GaugeTrack::new(gap_ms * MS);
    for (at_ms, watts) in readings {
        let power = Power::from_watts(watts).unwrap();
        track.reading(at_ms * MS, power, Flags::NONE, &mut writer).unwrap();
    }
    series.span(0, u64::MAX, 1, 1)
}

#[test]
fn a_failed_poll_is_bridged_and_no_sample() {
    let points = readings(1000, [(0, 100.0), (1000, 100.0), (3000, 100.0), (4000, 100.0)]);
    let facts = facts();
    let estimate = gauge(&Curve::new(&points, &facts), span(0, 4000), 1.0, Edges::Plain).unwrap();
    assert_eq!((estimate.gross_j, estimate.samples), (400.0, 4));
    assert_eq!(estimate.bridged_j, 0.0, "a hole of one poll is no news");
}

#[test]
fn polls_that_repeat_a_value_are_no_updates() {
    let watts = |at_ms: u64| (at_ms, if at_ms < 500 { 90.0 } else { 210.0 });
    let points = readings(1, (0..1000).map(watts));
    let facts = facts();
    let curve = Curve::new(&points, &facts);
    let estimate = gauge(&curve, span(0, 1000), 0.5, Edges::Held).unwrap();
    assert!((estimate.gross_j - 150.0).abs() < 1.0, "{estimate:?}");
    assert_eq!(estimate.samples, 2);
    assert_eq!(gauge(&curve, span(0, 1000), 0.1, Edges::Held).unwrap().samples, 2, "seen to stand");
    assert!(estimate.flags.contains(Flags::WINDOW_ASSUMED));
}

#[test]
fn a_longer_hole_is_bridged_and_said() {
    let points = readings(1000, [(0, 100.0), (1000, 100.0), (11_000, 300.0), (12_000, 300.0)]);
    let facts = Facts { averaging_s: Some(1.0), ..facts() };
    let estimate = gauge(&Curve::new(&points, &facts), span(0, 12_000), 1.0, Edges::Plain).unwrap();
    assert_eq!((estimate.gross_j, estimate.bridged_j), (2400.0, 2000.0));
    assert!(estimate.flags.contains(Flags::BRIDGED));
    // Nine of the ten seconds were seen by no reading.
    let unseen_j = 9.0 * (770.0 - 200.0);
    assert!((estimate.bound_j - unseen_j - 1.5 * 700.0).abs() < 1e-6, "{estimate:?}");
    let gap = readings(1000, [(0, 100.0), (1000, 100.0), (61_000, 300.0), (62_000, 300.0)]);
    let missing = gauge(&Curve::new(&gap, &facts), span(0, 62_000), 1.0, Edges::Plain).unwrap_err();
    assert_eq!((missing.fault, missing.lower_bound_j), (Fault::Gap, Some(400.0)));
}

#[test]
fn a_gauge_does_not_measure_below_its_averaging() {
    let points = readings(100, (0..50).map(|poll| (poll * 100, 120.0)));
    let facts = Facts { averaging_s: Some(1.0), ..facts() };
    let curve = Curve::new(&points, &facts);
    let missing = gauge(&curve, span(1000, 1999), 0.1, Edges::Plain).unwrap_err();
    assert_eq!(missing.fault, Fault::WindowBelowResolution);
    assert!((missing.seen.unwrap().gross_j - 120.0 * 0.999).abs() < 1e-6);
    assert!(gauge(&curve, span(1000, 2000), 0.1, Edges::Plain).is_ok());
    // The same word where no reading reaches back to the opening.
    let missing = gauge(&Curve::new(&points[12..], &facts), span(1000, 1999), 0.1, Edges::Plain);
    assert_eq!(missing.unwrap_err().fault, Fault::WindowBelowResolution);
}

/// Readings each 10 ms, each the mean over the second before it, of a card that draws `inside_w`
/// from 3 s to 5 s and `outside_w` else.
fn averaged(inside_w: f64, outside_w: f64, until_ms: u64) -> Vec<Point> {
    let truth = Truth(vec![(0, outside_w), (3000, inside_w), (5000, outside_w)]);
    let mean = |at_ms: u64| {
        let joules = truth.joules(at_ms * MS) - truth.joules((at_ms - 1000) * MS);
        (at_ms, joules)
    };
    readings(10, (100..=until_ms / 10).map(|poll| mean(poll * 10)))
}

#[test]
fn a_known_average_stands_for_its_middle() {
    let facts = Facts { averaging_s: Some(1.0), ..facts() };
    assert!((settles_after_s(&facts, 0.01) - 0.505).abs() < 1e-12);
    let asked = span(3000, 5000);
    let laid =
        |points: &[Point], edges| gauge(&Curve::new(points, &facts), asked, 0.01, edges).unwrap();
    let read = |points: &[Point]| laid(points, Edges::Centred);
    // As long as its readings do not go on for half a second the edges are read where they stand.
    let early = read(&averaged(400.0, 100.0, 5500));
    let settled = read(&averaged(400.0, 100.0, 5510));
    assert!((early.gross_j - (800.0 - 150.0)).abs() < 3.1, "{early:?}");
    assert!((early.bound_j - 0.51 * facts.swing_w()).abs() < 1e-9, "{early:?}");
    assert!((settled.gross_j - (800.0 - 75.0)).abs() < 3.1, "{settled:?}");
    assert!((settled.bound_j - 0.26 * facts.swing_w()).abs() < 1e-9, "{settled:?}");
    assert_eq!(laid(&averaged(400.0, 100.0, 5510), Edges::Plain), early);
    // The worst that a load can do comes close to the bound.
    let worst = read(&averaged(facts.deepest_w, facts.ceiling_w, 7000));
    let share = (worst.gross_j - 2.0 * facts.deepest_w) / worst.bound_j;
    assert!((0.95..=1.0).contains(&share), "{share}: {worst:?}");
    // What is only assumed moves nothing.
    let assumed = Facts { averaging_s: None, ..facts };
    assert_eq!(settles_after_s(&assumed, 0.01), 0.0);
    let points = averaged(400.0, 100.0, 5510);
    let estimate = gauge(&Curve::new(&points, &assumed), asked, 0.01, Edges::Centred).unwrap();
    assert_eq!(estimate.gross_j, early.gross_j);
}

#[test]
fn a_gauge_is_held_to_the_end_only_when_asked_to() {
    let points = readings(100, (0..20).map(|poll| (poll * 100, 120.0)));
    let facts = facts();
    let curve = Curve::new(&points, &facts);
    let missing = gauge(&curve, span(1000, 2000), 0.1, Edges::Plain).unwrap_err();
    assert_eq!((missing.fault, missing.flags), (Fault::NotReady, Flags::PARTIAL));
    let held = gauge(&curve, span(1000, 2000), 0.1, Edges::Held).unwrap();
    assert!((held.gross_j - 120.0).abs() < 1e-9);
    assert!(gauge(&Curve::new(&[], &facts), span(0, 1), 0.1, Edges::Held).is_err());
}

#[test]
fn edges_between_readings_are_read_on_the_line() {
    let points = readings(100, [(0, 100.0), (100, 200.0), (200, 200.0)]);
    let facts = Facts { averaging_s: Some(0.025), ..facts() };
    let estimate = gauge(&Curve::new(&points, &facts), span(50, 150), 0.1, Edges::Plain).unwrap();
    assert!((estimate.gross_j - (175.0 * 0.05 + 200.0 * 0.05)).abs() < 1e-9, "{estimate:?}");
}
