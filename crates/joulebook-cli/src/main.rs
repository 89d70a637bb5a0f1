//! The program `joulebook`.
fn main() {}
