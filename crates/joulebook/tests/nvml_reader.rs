//! The readers of NVIDIA cards, through the ABI of a driver library whose cards are simulated.
//!
//! Each test runs in a process of its own: a driver library reads its scenario once per process.

#[cfg(test)]
mod nvml_reader {
    /// A test in a process of its own, whose driver library shows the scenario.
    macro_rules! with_scenario {
        ($name:ident, $scenario:expr, $body:expr) => {
            #[test]
            fn $name() {
                let name = concat!(module_path!(), "::", stringify!($name));
                super::child::run(name, $scenario, $body);
            }
        };
    }

    mod cards;
    mod child;
    mod driver;
    mod registers;
    mod tenants;
}
