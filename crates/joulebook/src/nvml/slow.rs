//! What is read beside the register, and seldom: what holds the clocks down and the power state, about
//! once a second, and the power limit, once a minute.
//!
//! A failure here costs no reading: what cannot be asked is absent until it can.

use std::time::{Duration, Instant};

use joulebook_core::{Fault, Power};
use nvml_wrapper::{Device, enum_wrappers::device::PerformanceState};

use super::{
    cards,
    fault::fault,
    raw,
    session::Session,
    support::{Call, Support},
};
use crate::reader::Throttle;

const SOFTWARE_POWER_CAP: u64 = 0x4;
const HARDWARE_POWER_BRAKE: u64 = 0x80;

const THROTTLE_EVERY: Duration = Duration::from_secs(1);
const LIMIT_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Slow {
    throttle: Option<Throttle>,
    throttle_at: Option<Instant>,
    limit: Option<Power>,
    limit_at: Instant,
}

impl Slow {
    /// With the limit that is known from the card's description, as of now.
    pub(super) fn new(limit: Option<Power>) -> Self {
        Self { throttle: None, throttle_at: None, limit, limit_at: Instant::now() }
    }

    pub(super) fn limit(&self) -> Option<Power> {
        self.limit
    }

    /// What holds the clocks down; at most one of the two is asked per call.
    pub(super) fn look(&mut self, device: &Device<'_>, support: &Support) -> Option<Throttle> {
        let now = Instant::now();
        if self.throttle_at.is_none_or(|at| now.saturating_duration_since(at) >= THROTTLE_EVERY) {
            self.throttle_at = Some(now);
            self.throttle = reasons(device, support).ok().map(throttle);
        } else if now.saturating_duration_since(self.limit_at) >= LIMIT_EVERY {
            self.limit_at = now;
            let asked = support.ask(Call::PowerLimit, || cards::limit_of(device));
            self.limit = asked.ok().or(self.limit);
        }
        self.throttle
    }
}

/// The power state, where the card has one.
pub(super) fn power_state(session: &mut Session) -> Option<u8> {
    let state = session.call(|card, support| {
        support.ask(Call::PowerState, || card.performance_state().map_err(|error| fault(&error)))
    });
    match state {
        Ok(PerformanceState::Unknown) | Err(_) => None,
        Ok(state) => u8::try_from(state.as_c()).ok(),
    }
}

fn reasons(device: &Device<'_>, support: &Support) -> Result<u64, Fault> {
    let new = support.ask(Call::EventReasons, || {
        raw::clocks_event_reasons(device).map_err(|error| fault(&error))
    });
    match new {
        Err(Fault::NotSupported | Fault::NvmlSymbolMissing) => support
            .ask(Call::ThrottleReasons, || {
                raw::clocks_throttle_reasons(device).map_err(|error| fault(&error))
            }),
        answer => answer,
    }
}

const fn throttle(reasons: u64) -> Throttle {
    Throttle {
        power_capped: Some(reasons & SOFTWARE_POWER_CAP != 0),
        power_braked: Some(reasons & HARDWARE_POWER_BRAKE != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_power_reasons_are_told() {
        let told =
            |capped, braked| Throttle { power_capped: Some(capped), power_braked: Some(braked) };
        assert_eq!(throttle(0x4), told(true, false));
        assert_eq!(throttle(0x80), told(false, true));
        // Idle, application clocks, thermal and plain hardware slowdown.
        assert_eq!(throttle(0x1 | 0x2 | 0x8 | 0x20 | 0x40), told(false, false));
    }
}
