//! Which card was meant.

use joulebook::{
    Fault,
    amd::packages,
    identity::{Card, CudaEnvironment, resolve, visible},
    replay::cell,
};
use serde_json::Value;

use super::passes;

fn cards(uuids: &[&str]) -> Vec<Card> {
    let card =
        |(index, uuid): (u32, &&str)| Card { index, uuid: (*uuid).to_owned(), ..Card::default() };
    (0..).zip(uuids).map(card).collect()
}

fn shown(devices: &str) -> CudaEnvironment {
    CudaEnvironment { visible_devices: Some(devices.to_owned()), device_order: None }
}

#[test]
fn device_identity_01() {
    passes("device-identity-01");
    // A bare integer is the driver's; where CUDA's would be another card, that is said.
    let cards = cards(&["GPU-a", "GPU-b", "GPU-c", "GPU-d"]);
    let bare = resolve("0", &cards, &shown("3")).expect("a card");
    assert_eq!(bare.uuid, "GPU-a");
    let warning = bare.warning.expect("a warning");
    assert!(warning.contains("driver's index") && warning.contains("GPU-d"), "{warning}");
}

#[test]
fn device_identity_02() {
    let answer = passes("device-identity-02");
    assert_eq!(answer["joules"], Value::Null);
    let mut cards = cards(&["GPU-p40", "GPU-3090"]);
    cards[0].name = "Tesla P40".to_owned();
    cards[1].name = "GeForce RTX 3090".to_owned();
    let error = resolve("cuda:0", &cards, &shown("0")).expect_err("not in silence");
    assert_eq!(error.fault(), Fault::IdentityAmbiguous);
    assert!(error.to_string().contains("PCI_BUS_ID"), "{error}");
}

#[test]
fn device_identity_04() {
    let answer = passes("device-identity-04");
    assert_eq!(answer["slice"]["joules"], Value::Null, "2120 J are not one slice's");
    assert_eq!(cell::figure("[N/A]"), None, "nor is utilisation 0");
}

#[test]
fn device_identity_06() {
    let answer = passes("device-identity-06");
    assert_eq!(answer["job"]["joules"], Value::Null, "not 0 J for the second die");
    assert!(packages(&[], 2).is_empty() && packages(&[None, None], 2)[0].power.is_none());
    assert_eq!(packages(&[None], 0).len(), 1, "no division by zero");
}

#[test]
fn device_identity_08() {
    let answer = passes("device-identity-08");
    assert_ne!(answer["gross_j"].as_f64(), Some(29_200.0), "seven cards are somebody else's");
    let uuids = ["GPU-a", "GPU-b", "GPU-h"];
    assert_eq!(visible(&cards(&uuids), &shown("GPU-h")).expect("a card").len(), 1);
}

#[test]
fn device_identity_10() {
    let answer = passes("device-identity-10");
    assert_eq!(answer["error"], serde_json::json!([null, null, "absent"]), "not 0 W");
}

#[test]
fn device_identity_11() {
    let answer = passes("device-identity-11");
    assert_eq!(answer["field"], serde_json::json!(["average", "instant", null]));
}
