use joulebook::{
    Scope,
    core::{Fault, Power},
    identity,
    nvml::cards,
};

with_scenario!(
    a_card_is_described,
    "driver 570.1\ncard 0\n uuid GPU-11111111-2222-3333-4444-555555555555\n pci 0001:4B:00.0\n \
     limit w=400 min=100 max=500\n mig 1\n\
     card 1\n name NVIDIA A100-SXM4-80GB\n arch 7\n cc 8.0\n mig -1\n\
     card 2\n name NVIDIA GeForce RTX 4090\n arch 8\n cc 8.9",
    |bench| {
        let cards = bench.cards();
        let [hopper, ampere, consumer] = cards.as_slice() else { panic!("{cards:?}") };
        assert_eq!(hopper.index, 0);
        assert_eq!(hopper.uuid, "GPU-11111111-2222-3333-4444-555555555555");
        assert_eq!(hopper.pci.as_deref(), Some("0001:4b:00.0"));
        assert_eq!(hopper.driver.as_deref(), Some("570.1"));
        assert_eq!(hopper.architecture.as_deref(), Some("Hopper"));
        assert_eq!(hopper.limit, Power::from_watts(400.0));
        assert_eq!(hopper.limit_range, Power::from_watts(100.0).zip(Power::from_watts(500.0)));
        assert_eq!((hopper.mig, ampere.mig, consumer.mig), (Some(true), None, Some(false)));
        assert_eq!(hopper.averaging_ns, Some(1_000_000_000));
        assert_eq!(ampere.averaging_ns, None, "GA100");
        assert_eq!(consumer.averaging_ns, Some(1_000_000_000));
        assert_eq!((hopper.consumer, ampere.consumer, consumer.consumer), (false, false, true));
        assert!(!hopper.module_power);
        assert_eq!(hopper.counter_scope, Scope::Gpu);
        let named = identity::resolve(
            "4b:00.0",
            &cards.iter().map(Into::into).collect::<Vec<_>>(),
            &identity::CudaEnvironment::default(),
        );
        assert_eq!(named.unwrap_err().fault(), Fault::Absent, "another domain");
    }
);

with_scenario!(
    a_card_that_cannot_be_named_takes_no_other_with_it,
    "card 0\n fault 0 inf handle noperm\ncard 1\n fault 0 inf name unknown\ncard 2",
    |bench| {
        let inventory = cards(&bench.driver).unwrap();
        assert_eq!(inventory.unreadable, [(0, Fault::Permission)]);
        let indexes: Vec<u32> = inventory.cards.iter().map(|card| card.index).collect();
        assert_eq!(indexes, [1, 2]);
        assert!(inventory.cards[0].name.contains("unknown"), "{}", inventory.cards[0].name);
    }
);

with_scenario!(no_cards_is_no_error, "driver 570.1", |bench| {
    assert!(bench.cards().is_empty());
});
