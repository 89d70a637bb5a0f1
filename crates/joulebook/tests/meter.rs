//! The library's own face: meters and windows on simulated cards, on the real clock.
//!
//! Figures are held against the truth within the bound that they state themselves, so a machine
//! that is busy makes them vaguer and not wrong. Where time is limited, it is only so far that a
//! wait for ever is told from a long one.

#[cfg(test)]
mod meter {
    #[allow(dead_code)] // shared with the tests of the books
    mod bench;
    mod cards;
    mod faults;
    mod tenants;
    mod windows;
}
