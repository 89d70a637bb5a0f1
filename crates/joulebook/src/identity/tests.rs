use joulebook_core::Fault;

use super::*;

fn cards(list: &[(&str, &str)]) -> Vec<Card> {
    list.iter()
        .zip(0..)
        .map(|((uuid, name), index)| Card {
            index,
            uuid: (*uuid).to_owned(),
            pci: Some(format!("00000000:{:02X}:00.0", index + 1)),
            name: (*name).to_owned(),
            ..Card::default()
        })
        .collect()
}

fn alike(uuids: &[&str]) -> Vec<Card> {
    cards(&uuids.iter().map(|uuid| (*uuid, "NVIDIA H100 80GB HBM3")).collect::<Vec<_>>())
}

fn environment(visible: Option<&str>, order: Option<&str>) -> CudaEnvironment {
    CudaEnvironment {
        visible_devices: visible.map(str::to_owned),
        device_order: order.map(str::to_owned),
    }
}

fn uuid(ask: &str, cards: &[Card], environment: &CudaEnvironment) -> Result<String, Fault> {
    resolve(ask, cards, environment).map(|identity| identity.uuid).map_err(|error| error.fault())
}

// Case device-identity-01.
#[test]
fn a_cuda_number_goes_through_the_visible_devices() {
    let cards = alike(&["GPU-a", "GPU-b", "GPU-c", "GPU-d"]);
    let environment = environment(Some("3"), None);
    assert_eq!(uuid("cuda:0", &cards, &environment).unwrap(), "GPU-d");
    assert_eq!(uuid("CUDA:0", &cards, &environment).unwrap(), "GPU-d");
    assert_eq!(uuid("cuda:1", &cards, &environment), Err(Fault::Absent));
    // The bare number is the driver's, and a warning says so.
    let zero = resolve("0", &cards, &environment).unwrap();
    assert_eq!(zero.uuid, "GPU-a");
    let warning = zero.warning.unwrap();
    assert!(warning.contains("GPU-a") && warning.contains("GPU-d"), "{warning}");
    assert!(warning.contains("cuda:0"), "{warning}");
}

// Case device-identity-02.
#[test]
fn unlike_cards_without_bus_order_are_not_told_apart_by_number() {
    let cards = cards(&[("GPU-p40", "Tesla P40"), ("GPU-3090", "GeForce RTX 3090")]);
    let by_speed = environment(Some("0"), None);
    let error = resolve("cuda:0", &cards, &by_speed).unwrap_err();
    assert_eq!(error.fault(), Fault::IdentityAmbiguous);
    let text = error.to_string();
    assert!(text.contains("PCI_BUS_ID") && text.contains("GPU-3090"), "{text}");
    assert_eq!(visible(&cards, &by_speed).unwrap_err().fault(), Fault::IdentityAmbiguous);
    assert_eq!(
        uuid("cuda:0", &cards, &environment(Some("0"), Some("FASTEST_FIRST"))),
        Err(Fault::IdentityAmbiguous)
    );
    assert_eq!(uuid("cuda:1", &cards, &environment(None, None)), Err(Fault::IdentityAmbiguous));
    // Given by UUID or in bus order it is resolved.
    assert_eq!(
        uuid("cuda:0", &cards, &environment(Some("0"), Some("PCI_BUS_ID"))).unwrap(),
        "GPU-p40"
    );
    assert_eq!(uuid("cuda:0", &cards, &environment(Some("GPU-3090"), None)).unwrap(), "GPU-3090");
    assert_eq!(uuid("GPU-3090", &cards, &by_speed).unwrap(), "GPU-3090");
    // An earlier numeric entry that is some card does not matter for a later UUID.
    assert_eq!(uuid("cuda:1", &cards, &environment(Some("0,GPU-p40"), None)).unwrap(), "GPU-p40");
    // The index is taken, with a warning that CUDA's may differ.
    let zero = resolve("0", &cards, &environment(None, None)).unwrap();
    assert_eq!(zero.uuid, "GPU-p40");
    assert!(zero.warning.unwrap().contains("may be another"));
}

// Case device-identity-04.
#[test]
fn a_slice_leads_to_its_card_and_says_that_it_is_shared() {
    let mig = "MIG-8c4c5a27-0000-5556-b2ea-7e5494657410";
    let mut cards = alike(&["GPU-x", "GPU-y"]);
    cards[0].mig = true;
    let environment = environment(Some(mig), None);
    let got = resolve("cuda:0", &cards, &environment).unwrap();
    assert_eq!((got.uuid.as_str(), got.shared_device), ("GPU-x", true));
    assert_eq!(visible(&cards, &environment).unwrap(), vec![got]);

    // Of two split cards the one that lists it.
    cards[1].mig = true;
    let error = resolve(mig, &cards, &environment).unwrap_err();
    assert_eq!(error.fault(), Fault::IdentityAmbiguous);
    cards[1].slices = vec![mig.to_owned()];
    assert_eq!(uuid(mig, &cards, &environment).unwrap(), "GPU-y");

    // The old form names the card.
    assert_eq!(uuid("MIG-GPU-x/3/0", &cards, &environment).unwrap(), "GPU-x");
    // CUDA shows a split card as a slice; the driver's index is the whole card.
    let unset = CudaEnvironment::default();
    assert!(resolve("cuda:0", &cards, &unset).unwrap().shared_device);
    assert!(!resolve("0", &cards, &unset).unwrap().shared_device);
    // No split card at all: none has it.
    assert_eq!(uuid(mig, &alike(&["GPU-x"]), &environment), Err(Fault::Absent));
}

// Case device-identity-08.
#[test]
fn a_job_has_the_cards_it_was_given_and_no_others() {
    let cards = alike(&["GPU-a", "GPU-b", "GPU-c", "GPU-h"]);
    let names = |environment: &CudaEnvironment| {
        let list = visible(&cards, environment).unwrap();
        list.into_iter().map(|identity| identity.uuid).collect::<Vec<_>>()
    };
    assert_eq!(names(&environment(Some("GPU-h"), None)), ["GPU-h"]);
    assert_eq!(names(&environment(Some("2, 0"), None)), ["GPU-c", "GPU-a"]);
    assert_eq!(names(&environment(None, None)).len(), 4);
    assert!(names(&environment(Some(""), None)).is_empty());
    // CUDA stops at the first entry that is none.
    assert_eq!(names(&environment(Some("1,-1,2"), None)), ["GPU-b"]);
    assert_eq!(names(&environment(Some("1,9,2"), None)), ["GPU-b"]);
    assert_eq!(uuid("cuda:2", &cards, &environment(Some("1,9,2"), None)), Err(Fault::Absent));
}

#[test]
fn uuids_by_their_beginning_addresses_in_any_form() {
    let cards = alike(&["GPU-8c4c5a27-1", "GPU-8c4c5a99-2", "GPU-11111111-3"]);
    let unset = CudaEnvironment::default();
    for ask in ["GPU-8c4c5a27-1", "gpu-8C4C5A27", "8c4c5a27-1", "00000000:01:00.0", "01:00.0"] {
        assert_eq!(uuid(ask, &cards, &unset).unwrap(), "GPU-8c4c5a27-1", "{ask}");
    }
    assert_eq!(uuid("GPU-8c4c5a", &cards, &unset), Err(Fault::IdentityAmbiguous));
    for ask in ["GPU-f", "09:00.0", "7", "", "GPU-", "cuda:x", "cuda:-1", "RTX"] {
        let error = resolve(ask, &cards, &unset).unwrap_err();
        assert_ne!(error.to_string(), "", "{ask}");
    }
}

#[test]
fn an_error_names_what_was_asked_and_what_there_is() {
    let cards = alike(&["GPU-a"]);
    let text = resolve("5", &cards, &CudaEnvironment::default()).unwrap_err().to_string();
    assert!(text.contains("\"5\"") && text.contains("H100") && text.contains("GPU-a"), "{text}");
    assert!(text.lines().count() <= 2, "{text}");
    let text = resolve("5", &[], &CudaEnvironment::default()).unwrap_err().to_string();
    assert!(text.contains("no cards here"), "{text}");
}

#[test]
fn no_warning_where_the_numbers_agree() {
    let cards = alike(&["GPU-a", "GPU-b"]);
    for environment in [
        environment(None, None),
        environment(Some("0,1"), None),
        environment(None, Some("PCI_BUS_ID")),
    ] {
        assert_eq!(resolve("1", &cards, &environment).unwrap().warning, None);
    }
    let hidden = resolve("1", &cards, &environment(Some("0"), None)).unwrap();
    assert!(hidden.warning.unwrap().contains("does not exist here"));
    // One card alone is never in doubt.
    let one = super::tests::cards(&[("GPU-a", "Tesla P40")]);
    assert_eq!(uuid("cuda:0", &one, &environment(None, None)).unwrap(), "GPU-a");
}

#[test]
fn bus_order_is_by_address_even_where_the_index_is_not() {
    let mut cards = cards(&[("GPU-a", "A"), ("GPU-b", "B")]);
    cards[0].pci = Some("0000:81:00.0".to_owned());
    cards[1].pci = Some("0000:41:00.0".to_owned());
    let by_bus = environment(None, Some("PCI_BUS_ID"));
    assert_eq!(uuid("cuda:0", &cards, &by_bus).unwrap(), "GPU-b");
}
