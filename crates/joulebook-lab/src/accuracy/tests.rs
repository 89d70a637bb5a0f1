use super::*;

fn cells(wanted: impl Fn(&Cell) -> bool) -> Vec<Cell> {
    let cells: Vec<Cell> = matrix().into_iter().filter(wanted).collect();
    assert!(!cells.is_empty());
    cells
}

/// The cells that the aims are about, settled: probed, 100 ms counter, no lag.
fn aimed(drive: Drive, windows: impl Fn(&Cell) -> u32) -> Vec<Accuracy> {
    let register = Register::Counter { period_ns: 100 * MS, lag_ns: 0 };
    cells(|cell| (cell.drive, cell.register, cell.polls) == (drive, register, Polls::Probed))
        .into_iter()
        .map(|cell| measure(cell, windows(&cell), 1))
        .collect()
}

#[test]
fn a_window_alone_on_its_card_meets_the_aim() {
    for accuracy in aimed(Drive::Step, |_| 500) {
        let (cell, settled) = (accuracy.cell, &accuracy.settled);
        let aim = match cell.length_ns / MS {
            5 => 0.05,
            20 => 0.02,
            _ => 0.01,
        };
        let error = settled.error().unwrap();
        assert!(error <= aim, "{cell:?}: {error}");
        assert_eq!(settled.kept, 500, "{cell:?}");
        // A window in a few thousand meets polls that have just lost the grid.
        assert!(settled.alone >= 498, "{cell:?}: {}", settled.alone);
        assert_eq!((settled.violations, accuracy.at_once.violations), (0, 0), "{cell:?}");
    }
}

#[test]
fn a_card_that_was_never_probed_shows_a_window_alone_too() {
    let register = Register::Counter { period_ns: 100 * MS, lag_ns: 50 * MS };
    for cell in cells(|cell| {
        (cell.drive, cell.register, cell.polls) == (Drive::Step, register, Polls::Unprobed)
    }) {
        let settled = measure(cell, 200, 1).settled;
        let aim = if cell.length_ns < 20 * MS { 0.10 } else { 0.04 };
        assert!(settled.error().unwrap() <= aim, "{cell:?}: {:?}", settled.error());
        assert!(settled.alone >= 190, "{cell:?}: {}", settled.alone);
        assert_eq!(settled.violations, 0, "{cell:?}");
    }
}

#[test]
fn a_window_on_a_busy_card_meets_the_aim() {
    // Here the error is the load's own shape inside a tick, close to the aim and far from even: a
    // few hundred windows would say nothing.
    let windows = |cell: &Cell| if (20..=50).contains(&(cell.length_ns / MS)) { 4000 } else { 500 };
    for accuracy in aimed(Drive::Burst, windows) {
        let (cell, settled) = (accuracy.cell, &accuracy.settled);
        let aim = match cell.length_ns / MS {
            5 => f64::INFINITY,
            20 => 0.40,
            50..1000 => 0.06,
            _ => 0.02,
        };
        let error = settled.error().unwrap();
        assert!(error <= aim, "{cell:?}: {error}");
        assert_eq!((settled.kept, settled.alone), (settled.windows, 0), "{cell:?}");
        assert_eq!((settled.violations, accuracy.at_once.violations), (0, 0), "{cell:?}");
    }
}

#[test]
fn no_bound_is_violated_in_any_cell() {
    for cell in matrix() {
        let accuracy = measure(cell, 15, 2);
        assert_eq!(accuracy.at_once.violations, 0, "at once: {cell:?}");
        assert_eq!(accuracy.settled.violations, 0, "settled: {cell:?}");
        if cell.drive == Drive::Burst {
            assert_eq!(accuracy.settled.alone, 0, "{cell:?}");
        }
    }
}

#[test]
fn a_gauge_keeps_no_window_below_its_averaging() {
    for cell in cells(|cell| cell.register == Register::Gauge && cell.drive == Drive::Step) {
        let accuracy = measure(cell, 20, 3);
        let kept = if cell.length_ns < 1000 * MS { 0 } else { 20 };
        assert_eq!((accuracy.at_once.kept, accuracy.settled.kept), (kept, kept), "{cell:?}");
    }
}

#[test]
fn a_settled_gauge_is_read_where_its_averages_stand() {
    for cell in cells(|cell| cell.register == Register::Gauge && cell.length_ns >= 1000 * MS) {
        let accuracy = measure(cell, 200, 4);
        let (at_once, settled) = (&accuracy.at_once, &accuracy.settled);
        let (before, after) = (at_once.error().unwrap(), settled.error().unwrap());
        assert!(after < 0.7 * before, "{cell:?}: {after} after {before}");
        let (before, after) = (at_once.median_bound().unwrap(), settled.median_bound().unwrap());
        assert!(after < 0.75 * before, "{cell:?}: {after} after {before}");
        assert_eq!((at_once.violations, settled.violations), (0, 0), "{cell:?}");
    }
}

#[test]
fn the_shared_bound_is_sharp() {
    let sharpness = sharpness();
    assert!(sharpness.error_j <= sharpness.bound_j, "{sharpness:?}");
    assert!(sharpness.ratio() <= 1.15, "{sharpness:?}");
}

#[test]
fn the_seed_decides_everything() {
    let cell = *cells(|cell| cell.drive == Drive::Burst).first().unwrap();
    let figures = |seed| measure(cell, 20, seed).settled.error().unwrap().to_bits();
    assert_eq!(figures(5), figures(5));
    assert_ne!(figures(5), figures(6));
}
