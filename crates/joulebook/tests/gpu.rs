//! A suite for a real card: what its registers really do, in one table.
//!
//! ```sh
//! cargo test --release -p joulebook --test gpu -- --ignored
//! ```
//!
//! Ignored where nobody asks for it, since it needs a card. The same code runs in a short form
//! against a simulated card, so it is known to work before it meets hardware: there what it finds
//! must be what the scenario says.
//!
//! It takes under five minutes, prints its table to stderr and writes it to the file that
//! `JOULEBOOK_GPU_REPORT` names. The work it measures goes through the CUDA driver (`libcuda.so.1`);
//! no toolkit is needed. Where that cannot be loaded it says so, and measures what needs no work.

#[cfg(test)]
mod gpu {
    mod check;
    mod cost;
    mod cuda;
    mod edges;
    mod lab;
    mod load;
    mod publish;
    mod rates;
    mod report;
    mod suite;
    mod trace;
    mod windows;
    mod work;

    use std::{env, fs, io::Write};

    /// The environment variable that names a file for the table.
    const REPORT_VARIABLE: &str = "JOULEBOOK_GPU_REPORT";

    #[test]
    #[ignore = "needs a real card: cargo test --release -p joulebook --test gpu -- --ignored"]
    fn a_real_card_in_one_table() {
        let found = suite::all_cards(|card| load::Cuda::on(card).map(|load| Box::new(load) as _));
        let text = match &found {
            Ok(cards) => report::text(cards),
            Err(error) => format!("{error}\n"),
        };
        // Past libtest, which would keep it to itself.
        let _ = write!(std::io::stderr().lock(), "\n{text}");
        if let Some(file) = env::var_os(REPORT_VARIABLE).filter(|file| !file.is_empty()) {
            fs::write(&file, &text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        let cards = found.unwrap_or_else(|error| panic!("nothing to measure: {error}"));
        assert!(!cards.is_empty(), "nothing to measure: the driver lists no card");
        for card in &cards {
            assert!(card.is_read(), "card {} could be read by nothing", card.info.index);
        }
    }
}
