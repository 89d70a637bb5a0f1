//! What a model's name tells of its power sensor.
//!
//! NVIDIA's plain power is a mean over one second on Ampere and later, save GA100; on GA100 and
//! everything before Ampere it is the sensor's own reading. A name that fits neither list says
//! nothing.

/// What the plain power of a card is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sensor {
    /// A mean over one second.
    Averaged,
    /// The sensor's own reading.
    Direct,
}

/// Brands that ended before Ampere.
const OLD_BRANDS: &[&str] = &["TESLA", "QUADRO", "GTX", "TITAN", "GT"];
/// GA100, and data-centre cards before Ampere.
const DIRECT: &[&str] = &[
    "A100", "A100X", "A30", "A30X", "A800", "170HX", "V100", "V100S", "P100", "P40", "P4", "P6",
    "M40", "M60", "M4", "M6", "M10", "K80", "K40", "K40M", "K40C", "K20", "K20X", "K10", "T4",
    "T4G", "T400", "T600", "T1000",
];
/// Kepler's Teslas, and how long their sensor is away from what it follows, s: it follows like a
/// first-order filter, which is no mean over a window. A K40m's time constant is 0.08 s beside a
/// meter; 0.8 s is published for the K20, so a second is allowed for it.
const SLOW: &[(&str, f64)] = &[
    ("K10", 1.0),
    ("K20", 1.0),
    ("K20X", 1.0),
    ("K20M", 1.0),
    ("K20C", 1.0),
    ("K40", 0.1),
    ("K40M", 0.1),
    ("K40C", 0.1),
    ("K80", 0.1),
];
/// Ampere without GA100, Ada, Hopper, Blackwell.
const AVERAGED: &[&str] = &[
    "A2",
    "A10",
    "A10G",
    "A10M",
    "A16",
    "A40",
    "L2",
    "L4",
    "L20",
    "L40",
    "L40S",
    "H20",
    "H100",
    "H200",
    "H800",
    "GH200",
    "B100",
    "B200",
    "B300",
    "GB200",
    "GB300",
    "GB10",
    "ADA",
    "BLACKWELL",
];

/// What is to be allowed, s, for a sensor that follows power like a first-order filter.
pub(super) fn slow_s(name: &str) -> Option<f64> {
    let upper = name.to_ascii_uppercase();
    let words = words(&upper);
    SLOW.iter().find(|(slow, _)| words.contains(slow)).map(|(_, seconds)| *seconds)
}

fn words(upper: &str) -> Vec<&str> {
    upper
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|it| !it.is_empty())
        .collect()
}

/// What a name tells; `None` when nothing.
pub(super) fn sensor(name: &str) -> Option<Sensor> {
    let upper = name.to_ascii_uppercase();
    let words = words(&upper);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(word));
    if any(OLD_BRANDS) || any(DIRECT) {
        return Some(Sensor::Direct);
    }
    if any(AVERAGED) {
        return Some(Sensor::Averaged);
    }
    let after = words.iter().skip_while(|word| **word != "RTX").nth(1)?;
    let digits = after.trim_start_matches('A');
    let number: u32 = digits.parse().ok()?;
    match (after.starts_with('A'), number) {
        // RTX A2000 and its like are Ampere.
        (true, _) => Some(Sensor::Averaged),
        (false, 2000..3000) if words.contains(&"GEFORCE") => Some(Sensor::Direct),
        (false, 3000..6000) if words.contains(&"GEFORCE") => Some(Sensor::Averaged),
        _ => None,
    }
}

#[test]
fn names_tell_the_sensor_or_nothing() {
    for name in [
        "NVIDIA A100-SXM4-80GB",
        "Tesla V100-SXM2-16GB",
        "Tesla K40m",
        "NVIDIA GeForce GTX 1080 Ti",
        "NVIDIA GeForce RTX 2080 Ti",
        "NVIDIA A30",
        "Quadro RTX 6000",
        "NVIDIA TITAN RTX",
    ] {
        assert_eq!(sensor(name), Some(Sensor::Direct), "{name}");
    }
    for name in [
        "NVIDIA GeForce RTX 3090",
        "NVIDIA H100 80GB HBM3",
        "NVIDIA RTX A6000",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA L4",
        "NVIDIA A10G",
        "NVIDIA GB10",
    ] {
        assert_eq!(sensor(name), Some(Sensor::Averaged), "{name}");
    }
    assert_eq!((slow_s("Tesla K40m"), slow_s("NVIDIA A40")), (Some(0.1), None));
    for name in ["", "AMD Instinct MI300X", "NVIDIA RTX 6000", "Orin (nvgpu)", "RTX"] {
        assert_eq!(sensor(name), None, "{name}");
    }
}
