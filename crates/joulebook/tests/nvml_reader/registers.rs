use joulebook::{
    Backend, Reader, Scope, Throttle,
    core::{
        Energy, Fault, Power,
        register::{Kind, Modulus, Scale},
    },
    nvml::{NvmlCounter, NvmlGauge, PowerField},
};

use super::child::{millijoules, until, watts};

with_scenario!(
    a_counter_is_read_in_millijoules,
    "card 0\n idle 100\n counter base_mj=5000 period_ms=10",
    |bench| {
        let mut reader = NvmlCounter::open(&bench.driver, &bench.card());
        let first = millijoules(&mut reader).unwrap();
        assert!(first >= 5000, "{first}");
        until(|| (millijoules(&mut reader).unwrap() > first).then_some(()));
        let device = reader.device();
        assert_eq!(device.backend, Backend::NvmlCounter);
        assert_eq!(device.scope, Scope::Gpu);
        assert_eq!(
            device.register,
            Kind::Counter {
                scale: Scale::MILLIJOULES,
                modulus: Modulus::None,
                quantum: Energy::from_microjoules(1000),
            }
        );
        assert_eq!(device.limit, Power::from_watts(700.0));
    }
);

with_scenario!(
    a_card_without_a_counter_says_so_and_has_its_gauge,
    "card 0\n name Tesla P100-PCIE-16GB\n arch 4\n cc 6.0\n idle 30\n counter supported=0\n \
     instant supported=0",
    |bench| {
        let card = bench.card();
        let mut counter = NvmlCounter::open(&bench.driver, &card);
        assert_eq!(counter.read(), Err(Fault::NotSupported));
        assert_eq!(counter.read(), Err(Fault::NotSupported));
        let mut gauge = NvmlGauge::open(&bench.driver, &card, PowerField::Instant);
        assert_eq!(gauge.field(), "instant", "what is asked for");
        assert_eq!(watts(&mut gauge), Ok(30.0));
        assert_eq!(gauge.field(), "usage", "what was had");
        assert_eq!(gauge.device().register, Kind::Gauge { averaging_ns: None });
    }
);

with_scenario!(
    each_gauge_is_its_own_and_says_which,
    "card 0\n fault 0 inf power value 111000\n fault 0 inf instant value 222500",
    |bench| {
        let card = bench.card();
        let mut instant = NvmlGauge::open(&bench.driver, &card, PowerField::Instant);
        assert_eq!((watts(&mut instant), instant.field()), (Ok(222.5), "instant"));
        assert_eq!(instant.device().register, Kind::Gauge { averaging_ns: None });
        let mut average = NvmlGauge::open(&bench.driver, &card, PowerField::Average);
        assert_eq!((watts(&mut average), average.field()), (Ok(111.0), "average"));
        let second = Kind::Gauge { averaging_ns: Some(1_000_000_000) };
        assert_eq!(average.device().register, second);
        assert_eq!(average.device().backend, Backend::NvmlPower);
        // The plain card has no module whose power could be told.
        let mut module = NvmlGauge::open_module(&bench.driver, &card, PowerField::Instant);
        assert_eq!(module.read(), Err(Fault::NotSupported));
        assert_eq!(module.device().scope, Scope::Module);
    }
);

with_scenario!(
    the_plain_call_stands_in_for_a_field_the_driver_does_not_know,
    "card 0\n fault 0 inf power value 111000\n fault 0 inf fields invalid",
    |bench| {
        let mut gauge = NvmlGauge::open(&bench.driver, &bench.card(), PowerField::Instant);
        assert_eq!((watts(&mut gauge), gauge.field()), (Ok(111.0), "usage"));
        assert_eq!((watts(&mut gauge), gauge.field()), (Ok(111.0), "usage"));
    }
);

with_scenario!(
    a_gauge_that_has_answered_is_kept_to,
    "card 0\n fault 0 inf power value 111000\n fault 0 inf instant value 222000\n \
     fault 1 3 instant unknown",
    |bench| {
        let mut gauge = NvmlGauge::open(&bench.driver, &bench.card(), PowerField::Instant);
        assert_eq!(watts(&mut gauge), Ok(222.0));
        let fault = until(|| gauge.read().err());
        assert_eq!(fault, Fault::AccessLost, "it could be read before");
        let again = until(|| watts(&mut gauge).ok());
        assert_eq!((again, gauge.field()), (222.0, "instant"));
    }
);

with_scenario!(
    every_failure_has_its_word,
    "card 0\n fault 0 inf energy lost\ncard 1\n fault 0 inf energy unknown\n\
     card 2\n fault 0 inf energy timeout\ncard 3\n fault 0 inf energy nodata\n\
     card 4\n fault 0 inf energy noperm\ncard 5\n fault 0 inf energy notfound\n\
     card 6\n fault 0 inf energy invalid\ncard 7\n fault 0 inf energy nodriver\n\
     card 8\n fault 0 inf energy mismatch\ncard 9\n fault 0 inf energy resetreq\n\
     card 10\n fault 0 inf energy notsupported",
    |bench| {
        let words: Vec<Fault> = bench
            .cards()
            .iter()
            .map(|card| NvmlCounter::open(&bench.driver, card).read().unwrap_err())
            .collect();
        assert_eq!(
            words,
            [
                Fault::Lost,
                Fault::Unknown,
                Fault::Timeout,
                Fault::NotReady,
                Fault::Permission,
                Fault::Absent,
                Fault::Unknown,
                Fault::DriverAbsent,
                Fault::DriverAbsent,
                Fault::Lost,
                Fault::NotSupported,
            ]
        );
    }
);

with_scenario!(
    a_card_that_comes_back_is_read_again,
    "card 0\n fault 1 3 all lost\ncard 1\n fault 1 3 all noperm\n\
     card 2\n fault 1 3 all uninit\ncard 3\n fault 1 3 handle notfound\n \
     fault 1 3 energy unknown\ncard 4\n fault 1 3 energy notsupported",
    |bench| {
        let mut words = Vec::new();
        let mut readers: Vec<NvmlCounter> =
            bench.cards().iter().map(|card| NvmlCounter::open(&bench.driver, card)).collect();
        for reader in &mut readers {
            millijoules(reader).unwrap();
        }
        for reader in &mut readers {
            words.push(until(|| reader.read().err()));
        }
        // What could be read before and is refused now is no plain lack of permission.
        assert_eq!(
            words,
            [
                Fault::Lost,
                Fault::AccessLost,
                Fault::DriverAbsent,
                Fault::AccessLost,
                Fault::AccessLost
            ]
        );
        for reader in &mut readers {
            until(|| millijoules(reader).ok());
        }
    }
);

with_scenario!(
    a_card_that_keeps_failing_is_looked_for_anew,
    "card 0\n fault 1 inf handle notfound\n fault 1 inf energy unknown",
    |bench| {
        let mut reader = NvmlCounter::open(&bench.driver, &bench.card());
        millijoules(&mut reader).unwrap();
        assert_eq!(until(|| reader.read().err()), Fault::AccessLost);
        // Looked for by its UUID it is not there any more.
        until(|| (reader.read() == Err(Fault::Lost)).then_some(()));
    }
);

with_scenario!(
    not_supported_is_remembered_until_forgotten,
    "card 0\n fault 0 1 energy notsupported\n fault 0 1 power timeout",
    |bench| {
        let card = bench.card();
        let mut counter = NvmlCounter::open(&bench.driver, &card);
        let mut gauge = NvmlGauge::open(&bench.driver, &card, PowerField::Average);
        assert_eq!(counter.read(), Err(Fault::NotSupported));
        assert_eq!(gauge.read(), Err(Fault::Timeout));
        // Every other failure is tried again.
        until(|| gauge.read().ok());
        // By now the card would answer, but is not asked: not by a new reader either.
        assert_eq!(counter.read(), Err(Fault::NotSupported));
        assert_eq!(NvmlCounter::open(&bench.driver, &card).read(), Err(Fault::NotSupported));
        bench.driver.forget();
        assert!(counter.read().is_ok());
    }
);

with_scenario!(
    what_holds_the_clocks_down_is_told,
    "card 0\n clocks reasons=0x84\ncard 1\n clocks reasons=0x23\ncard 2\n clocks reasons=4",
    |bench| {
        let told: Vec<Option<Throttle>> = bench
            .cards()
            .iter()
            .map(|card| NvmlCounter::open(&bench.driver, card).read().unwrap().throttle)
            .collect();
        let throttle = |capped, braked| {
            Some(Throttle { power_capped: Some(capped), power_braked: Some(braked) })
        };
        assert_eq!(told, [throttle(true, true), throttle(false, false), throttle(true, false)]);
    }
);

with_scenario!(
    the_gauge_beside_a_counter_is_no_mean_over_a_second,
    "card 0\n idle 123\n step 0 123\n sensor gain=2\ncard 1\n idle 90\n instant supported=0\n\
     card 2\n arch 5\n cc 7.0\n idle 80\n instant supported=0\ncard 3\n fault 0 inf instant timeout",
    |bench| {
        let mut counters: Vec<_> =
            bench.cards().iter().map(|card| NvmlCounter::open(&bench.driver, card)).collect();
        let mut power = |card: usize| counters[card].power().map(|power| power.watts());
        assert_eq!(power(0), Ok(123.0));
        // The plain call is a mean over a second on a Hopper card, and none on Volta.
        assert_eq!(power(1), Err(Fault::NotSupported));
        assert_eq!(power(2), Ok(80.0));
        assert_eq!(power(3), Err(Fault::Timeout));
        assert_eq!(counters[0].power_state(), Some(0));
    }
);
