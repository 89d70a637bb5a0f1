use super::*;

fn at(at_ns: u64, watts: f64) -> Reading {
    Reading { at_ns, power: Power::from_watts(watts).unwrap(), capped: None, braked: None }
}

const fn span(open_ns: u64, close_ns: u64) -> Span {
    Span { open_ns, close_ns }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn each_reading_is_held_and_the_first_back_filled() {
    let readings = [at(SECOND, 100.0), at(3 * SECOND, 200.0), at(4 * SECOND, 50.0)];
    // 100 W from 0 to 3 s, 200 W to 4 s, 50 W to 10 s.
    let window = hold_forward(&readings, span(0, 10 * SECOND)).unwrap();
    assert_eq!(window.energy_uj, 800_000_000);
    assert_eq!((window.samples, window.max_uw), (3, 200_000_000));
    assert_eq!(window.mean_watts(), Some(80.0));
    assert_eq!(window.above_idle_joules(90.0), -100.0);
}

#[test]
fn no_reading_inside_is_no_figure() {
    let readings = [at(SECOND, 100.0), at(3 * SECOND, 200.0)];
    assert_eq!(hold_forward(&readings, span(SECOND + 1, 3 * SECOND)), None);
    assert_eq!(hold_forward(&[], span(0, SECOND)), None);
    let silent: &[Reading] = &[];
    assert_eq!(hold_forward_cards(&[&readings, silent], span(0, 4 * SECOND)), None);
}
