//! What a probe of the lab's card would have found.

use joulebook::profile::{Lag, Probed, Profile, Trust};

/// A profile of a card whose counter publishes each `period_ms` ± 1 ms without a lag, known to 1 ms.
pub fn profile(period_ms: f64) -> Profile {
    let probe = Probed {
        unix_s: 0,
        period_s: period_ms / 1e3,
        jitter_s: 0.001,
        lag_s: Some(Lag { value: 0.0, uncertainty: 0.001 }),
        trust: Trust::Counter,
        ratio: None,
        mismatch: false,
        poll_sensitive: false,
    };
    Profile { probe: Some(probe), ..Profile::default() }
}
