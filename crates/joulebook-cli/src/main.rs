//! The program `joulebook`.
mod command {
    pub mod demo;
}
#[derive(clap::Parser)]
struct P {
    #[command(flatten)]
    a: command::demo::Arguments,
}
fn main() -> anyhow::Result<std::process::ExitCode> {
    command::demo::run(&<P as clap::Parser>::parse().a)
}
