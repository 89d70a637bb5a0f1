use std::{
    fs,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

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

with_scenario!(
    a_driver_that_hangs_at_its_start_is_told_of,
    "card 0\n fault 0 inf init hang 600000",
    |bench| {
        let (told, answers) = mpsc::channel();
        for _ in 0..2 {
            let (told, driver) = (told.clone(), Arc::clone(&bench.driver));
            // One of the two is caught in the driver until the process ends.
            thread::spawn(move || told.send(driver.check()));
        }
        let answer = answers.recv_timeout(Duration::from_secs(120)).unwrap();
        assert_eq!(answer, Err(LoadError::Busy));
        assert_eq!(LoadError::Busy.fault(), Fault::Timeout);
    }
);

with_scenario!(a_library_that_was_shut_down_is_started_again, "card 0\ncard 1", |bench| {
    let cards = bench.cards();
    let mut readers =
        [NvmlCounter::open(&bench.driver, &cards[0]), NvmlCounter::open(&bench.driver, &cards[1])];
    for reader in &mut readers {
        millijoules(reader).unwrap();
    }
    // Somebody else in the process shuts the library down once too often.
    let other = nvml_wrapper::Nvml::builder().lib_path(bench.library.as_os_str()).init().unwrap();
    #[allow(unsafe_code)]
    // SAFETY: the library is loaded, and the call takes nothing.
    unsafe {
        other.lib().nvmlShutdown();
    }
    drop(other);
    for reader in &mut readers {
        assert_eq!(reader.read(), Err(Fault::DriverAbsent));
    }
    for reader in &mut readers {
        until(|| millijoules(reader).ok());
    }
});
