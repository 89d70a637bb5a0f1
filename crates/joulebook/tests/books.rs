//! The books on simulated cards, on the real clock: many tickets at once, and what goes wrong.

#[cfg(test)]
#[path = "meter/bench.rs"]
#[allow(dead_code)] // shared with the meter's tests
mod bench;

#[cfg(test)]
mod books {
    mod faults;
    mod flight;
    mod floors;
    mod journal;
    mod live;
    mod slow;
    mod tenants;
}
