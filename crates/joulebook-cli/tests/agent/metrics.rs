//! The page of metrics without any client's help: names, and a counter over a restart.

use std::{thread, time::Duration};

use super::{bench::Bench, client::ask, server::Serving};

fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.starts_with(name) && !line.starts_with('#'))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn agent_exporter_04_a_restart_begins_at_nothing_and_adds_nothing() {
    // A register that has counted 81,234.7 J when the first agent begins.
    let epoch_ns = joulebook_lab::clock::system_ns(joulebook_lab::scenario::ClockKind::Monotonic);
    let scenario =
        format!("epoch_ns {epoch_ns}\ncard 0\nidle 100\ncounter period_ms=20 base_mj=81234700\n");
    let bench = Bench::with(&scenario);
    let (mut counted, mut last, mut registers) = (0.0, None::<f64>, Vec::new());
    for _ in 0..3 {
        let mut serving = Serving::on(&bench, &[]);
        for sample in 0..5 {
            let page = serving.get("/metrics").body;
            let energy = value(&page, "joulebook_card_energy_joules_total").unwrap();
            if sample == 0 {
                assert!(energy < 2000.0, "it begins with the process: {energy}");
            }
            // As Prometheus adds up: what falls has begun anew.
            counted += match last {
                Some(last) if energy >= last => energy - last,
                Some(_) => energy,
                None => 0.0,
            };
            last = Some(energy);
            registers.push(value(&page, "joulebook_card_register_joules").unwrap());
            assert!(value(&page, "process_start_time_seconds").unwrap() > 1e9);
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(serving.stop(), Some(0));
    }
    let drawn = registers.last().unwrap() - registers.first().unwrap();
    assert!(registers[0] > 81_234.0 && drawn > 0.0, "{registers:?}");
    // A publish before the first sample, of each life, may be in the one and not in the other.
    assert!(counted > 0.0 && counted <= drawn + 3.0 * 5.0, "{counted} J of {drawn} J");
}

#[test]
fn a_card_that_comes_back_goes_on_where_it_was() {
    let bench = Bench::with("card 0\nidle 100\ncounter period_ms=20\nfault 2 4 all unknown\n");
    let serving = Serving::on(&bench, &[]);
    let energy = |page: &str| value(page, "joulebook_card_energy_joules_total");
    let mut last = 0.0;
    let mut absent = false;
    loop {
        let page = serving.get("/metrics").body;
        match energy(&page) {
            Some(energy) => {
                assert!(energy >= last, "{energy} after {last}");
                last = energy;
                if absent {
                    assert_eq!(value(&page, "joulebook_card_resets_total"), Some(0.0));
                    assert_eq!(value(&page, "joulebook_card_power_reads_total"), Some(0.0));
                    assert!(value(&page, "joulebook_card_gaps_total").unwrap() >= 1.0, "{page}");
                    assert!(value(&page, "joulebook_card_read_errors_total").unwrap() > 1.0);
                    // What it drew meanwhile is the register's, and is not lost.
                    assert!(energy > 300.0, "{energy}");
                    return;
                }
            }
            None => absent = true,
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_form_is_the_one_that_is_asked_for() {
    let bench = Bench::with("card 0\ncounter period_ms=20\n");
    let serving = Serving::on(&bench, &[]);
    for (accept, kind, ends) in [
        ("", "text/plain; version=0.0.4", "\n"),
        ("Accept: */*\r\n", "text/plain; version=0.0.4", "\n"),
        (
            "Accept: application/openmetrics-text\r\n",
            "application/openmetrics-text; version=1.0.0",
            "# EOF\n",
        ),
    ] {
        let answer = ask(serving.address, "GET", "/metrics", accept);
        assert!(answer.header("content-type").unwrap().starts_with(kind), "{}", answer.head);
        assert!(answer.body.ends_with(ends));
    }
}
