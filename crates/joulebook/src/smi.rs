//! NVIDIA cards through the `nvidia-smi` program, where the driver's library cannot be used.
//!
//! One long-lived child (`nvidia-smi --query-gpu=… --format=csv,nounits -lms 100`) serves all cards
//! of the host and all readers of the process. Decides what the tool's text means, which of its
//! fields a card is read by, when a row was taken, and how the tool is asked again when it fails.
//!
//! Invariants: a cell that is no number is a fault and never 0; a row is stamped by the tool's own
//! clock, so that late reading moves no energy; the first rows come within three seconds or the
//! cards are unreadable; calls follow each other with a growing pause, never back to back; while one
//! hangs in the driver no other is started; the child ends with us however we end.
//!
//! Refused: rows that do not say whose they are, cells in another unit than the header's, and a last
//! line without its end.

mod card;
mod columns;
mod drain;
mod feed;
mod lister;
mod policy;
pub mod processes;
mod program;
pub mod sentence;
pub mod stamp;
mod state;
pub mod table;
mod tenants;
pub mod xml;

pub use card::SmiCard;
pub use columns::Columns;
pub(crate) use feed::FEEDS;
pub use feed::{FIRST_ROWS, Feed, PERIOD, SmiError};
pub(crate) use program::STUCK;
pub use program::{PROGRAM_VARIABLE, Program};
pub(crate) use state::averages_by_name;
pub use state::{Cost, SmiCardInfo};
pub use tenants::SmiTenants;
