//! The program `joulebook`; what it does is in the library, which other front doors call too.

use std::process::ExitCode;

fn main() -> ExitCode {
    joulebook_cli::main(std::env::args_os())
}
