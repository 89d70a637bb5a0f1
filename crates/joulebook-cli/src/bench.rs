//! What a token costs at each level of concurrency: the record of a benchmark and what is done
//! with it.
//!
//! [`record`] is the shape of a run: whoever drives the load fills it, everything else here reads
//! it. Sums are stored, ratios are derived: [`keys`] makes the flat keys from the sums, in one place.

pub mod ceiling;
pub mod compare;
pub mod files;
pub mod fit;
pub mod formats;
pub mod gauge;
pub mod interval;
pub mod keys;
pub mod load;
pub mod meter;
pub mod output;
pub mod picture;
pub mod record;
pub mod report;
pub mod ruler;
pub mod statistics;
pub mod sums;
pub mod tool;

#[cfg(test)]
mod sample;
