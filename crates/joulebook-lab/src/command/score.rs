//! `score`.
use joulebook_lab::{engine::Settings, score::{Name, calibrate, judge, loads}};
use super::say;
/// x
#[derive(clap::Args)]
pub struct Arguments {}
pub fn run(_: &Arguments) -> anyhow::Result<()> {
    let rho = calibrate(&Settings::default());
    say(&format!("{rho:?}"));
    for load in loads() {
        let j = judge(&load, &[1, 2, 3], &Name::ALL, rho);
        say(&format!("{} {} requests {} in flight {:.1} range {:?}", load.name, load.rate, j.requests, j.in_flight, j.in_range));
        for v in j.verdicts {
            say(&format!("  {:?} {:24} bias {:+.2} % median {:.2} % p95 {:.2} % worst {:.2} {:.2} residual {:?}", v.knowledge, v.rule.words(), v.figures.bias*100., v.figures.median*100., v.figures.p95*100., v.worst.median*100., v.worst.p95*100., v.residual_uj));
        }
    }
    Ok(())
}
