//! The program's subcommands, one module each: its arguments and what it does.

pub mod demo;
pub mod read;
