//! The program's subcommands, one module each: its arguments and what it does.

pub mod accuracy;
pub mod case;
pub mod driver;
pub mod score;
pub mod serve;
pub mod truth;

/// Writes a line to standard output; a reader that went away is no error of ours.
#[allow(clippy::print_stdout)]
fn say(line: &str) {
    println!("{line}");
}
