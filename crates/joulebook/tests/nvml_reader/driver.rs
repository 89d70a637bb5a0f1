use std::{fs, sync::Arc, thread};

use joulebook::{
    Reader,
    core::Fault,
    nvml::{Driver, LoadError, NvmlCounter, cards},
};

use super::child::{millijoules, until};

with_scenario!(a_driver_may_come_late, "card 0", |bench| {
    let path = bench.folder.join("libnvidia-ml.so.1");
    let driver = Driver::at(&path);
    assert!(matches!(cards(&driver), Err(LoadError::Missing { .. })));
    // A reader that is there already is as good as one that comes later.
    let mut reader = NvmlCounter::open(&driver, &bench.card());
    assert_eq!(reader.read(), Err(Fault::DriverAbsent));
    bench.copy_library(&path);
    until(|| millijoules(&mut reader).ok());
    assert_eq!(cards(&driver).unwrap().cards.len(), 1);
    assert!(driver.version().is_some());
});

with_scenario!(a_driver_that_does_not_start_is_tried_again, "card 0", |bench| {
    // Without its scenario the library finds no driver.
    let scenario = bench.folder.join("scenario");
    let text = fs::read(&scenario).unwrap();
    fs::remove_file(&scenario).unwrap();
    let error = bench.driver.check().unwrap_err();
    assert!(matches!(error, LoadError::Refused { .. }), "{error:?}");
    assert_eq!(error.fault(), Fault::DriverAbsent);
    assert!(error.to_string().contains("modprobe"), "{error}");
    fs::write(&scenario, text).unwrap();
    until(|| bench.driver.check().ok());
    assert_eq!(bench.cards().len(), 1);
});

with_scenario!(a_file_that_is_no_library_says_so, "card 0", |bench| {
    let path = bench.folder.join("libnvidia-ml.so.1");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    let driver = Driver::at(&path);
    let error = driver.check().unwrap_err();
    assert!(matches!(error, LoadError::Broken { .. }), "{error:?}");
    // Mended, it is taken.
    bench.copy_library(&path);
    until(|| driver.check().ok());
});

with_scenario!(
    a_card_that_hangs_holds_up_no_other,
    "card 0\n fault 0 inf energy hang 600000\ncard 1",
    |bench| {
        let cards = bench.cards();
        let mut hung = NvmlCounter::open(&bench.driver, &cards[0]);
        let mut other = NvmlCounter::open(&bench.driver, &cards[1]);
        // This thread ends with the process only.
        let blocked = thread::spawn(move || hung.read());
        for _ in 0..100 {
            millijoules(&mut other).unwrap();
        }
        assert!(joulebook::nvml::cards(&bench.driver).is_ok());
        assert!(!blocked.is_finished(), "the card did hang");
    }
);

with_scenario!(one_load_serves_all_threads, "card 0\ncard 1", |bench| {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let driver = Driver::shared();
            assert!(Arc::ptr_eq(&driver, &bench.driver));
            thread::spawn(move || cards(&driver).map(|inventory| inventory.cards.len()))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(2));
    }
});
