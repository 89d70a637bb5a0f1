//! The `nvidia-smi` of a simulated machine: put the folder it lies in first on PATH, and programs
//! read the scenario's cards (`FAKEGPU_SCENARIO`) as if a driver were there.

use std::{io, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(joulebook_lab::smi::run(&arguments, &mut io::stdout()))
}
