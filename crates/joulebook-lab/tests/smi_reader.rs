//! The reader of `nvidia-smi` against a tool whose cards are simulated, and against tools that
//! behave as badly as real ones have.

#[cfg(test)]
mod smi_reader {
    mod bench;
    mod faults;
    mod life;
    mod meter;
    mod parsers;
    mod rows;
    mod tenants;
}
