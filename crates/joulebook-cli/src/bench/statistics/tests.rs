use super::*;

#[test]
fn percentiles_are_those_of_numpy() {
    // numpy.percentile([15, 20, 35, 40, 50], [0, 5, 30, 40, 95, 100]).
    let sorted = [15.0, 20.0, 35.0, 40.0, 50.0];
    let expected = [(0.0, 15.0), (5.0, 16.0), (30.0, 23.0), (40.0, 29.0), (95.0, 48.0)];
    for (percent, value) in expected {
        let found = percentile(&sorted, percent).unwrap();
        assert!((found - value).abs() < 1e-12, "{percent}: {found}");
    }
    assert_eq!(percentile(&sorted, 100.0), Some(50.0));
    assert_eq!(percentile(&[7.0], 99.0), Some(7.0));
    assert_eq!(percentile(&[], 50.0), None);
}

#[test]
fn a_summary_has_the_standard_deviation_of_the_population() {
    let of = Statistics::of(&[4.0, 2.0, 8.0, 6.0]).unwrap();
    assert_eq!((of.count, of.sum, of.mean, of.median()), (4, 20.0, 5.0, 5.0));
    assert!((of.std - 5f64.sqrt()).abs() < 1e-12, "{}", of.std);
    assert_eq!((of.min, of.max), (2.0, 8.0));
    assert_eq!(of.percentile(25), Some(3.5));
    assert_eq!(of.percentile(42), None);
    assert_eq!(Statistics::of(&[]), None);
    assert_eq!(Statistics::of(&[1.0, f64::NAN]), None);
}

#[test]
fn failed_requests_lie_beyond_all_others() {
    let sorted: Vec<f64> = (1..=96).map(f64::from).collect();
    assert_eq!(nearest_rank(&sorted, 4, 50.0), Some(51.0), "49.5 rounds to the even 50th step");
    assert_eq!(nearest_rank(&sorted, 4, 95.0), Some(95.0));
    assert_eq!(nearest_rank(&sorted, 4, 99.0), None);
    assert_eq!(nearest_rank(&[], 0, 50.0), None);
}
