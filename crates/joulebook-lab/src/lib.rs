//! Cards whose true energy is known.
//!
//! A [`scenario`] says what each card of a machine draws and what its registers make of it;
//! [`load`] integrates that exactly, and [`card`] says what a read at any instant shows. The same
//! card is read in three ways: in the process ([`SimulatedCard`], on a simulated clock or a real
//! one), through the driver's ABI (this crate's cdylib is a `libnvidia-ml.so.1`, found by
//! [`driver`]), and with a load that is set live, in the process ([`LiveLoad`]) or from another one
//! ([`control`]). [`serve`] answers requests over HTTP on such a card.
//!
//! Nothing here measures. Whatever reads such a card says `simulated`, or was pointed at the
//! library by hand.

mod abi;
pub mod accuracy;
pub mod card;
pub mod case;
pub mod clock;
pub mod control;
pub mod draw;
pub mod driver;
pub mod engine;
pub mod load;
pub mod machine;
pub mod scenario;
pub mod score;
pub mod serve;
pub mod simulated;
pub mod smi;

pub use clock::Clock;
pub use load::{Live, LiveLoad, Load};
pub use scenario::{Card, Scenario};
pub use simulated::{Shows, SimulatedCard};
