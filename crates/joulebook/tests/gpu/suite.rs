//! All that is measured of a card, in order; and how long each part takes.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use joulebook::{
    Meter, Node, Reader, Settings,
    clock::{now_ns, unix_ns},
    nvml::{CardInfo, Driver, NvmlCounter, NvmlGauge, NvmlTenants, PowerField, cards},
    profile::{Lag, Probed, Profile, Trust},
    record,
};

use super::{
    cost::{self, Cost},
    edges::{self, About, Pulses, Response},
    publish::{self, Grid},
    rates::{self, Rate},
    trace::{Trace, Until, poll},
    windows::{self, Window},
    work::Work,
};

/// How long each part takes.
pub struct Plan {
    pub grid_s: f64,
    pub cost_reads: usize,
    pub pulses: usize,
    pub stretch_s: f64,
    /// Reads a second (none: as fast as possible), and for how long, s.
    pub rates: &'static [(Option<f64>, f64)],
    pub lengths_ms: &'static [u64],
    pub repeats: usize,
    pub rest_s: f64,
}

impl Plan {
    /// About two minutes a card.
    pub const FULL: Self = Self {
        grid_s: 5.0,
        cost_reads: 500,
        pulses: 5,
        stretch_s: 1.7,
        rates: &[(Some(1.0), 8.0), (Some(10.0), 4.0), (Some(100.0), 4.0), (None, 4.0)],
        lengths_ms: &[5, 20, 50, 100, 250, 1000, 5000],
        repeats: 3,
        rest_s: 1.2,
    };
}

/// What a register's polls showed.
pub struct Register {
    pub name: &'static str,
    pub trace: Trace,
    pub grid: Option<Grid>,
    pub cost: Option<Cost>,
    /// Of a gauge.
    pub response: Option<Response>,
    /// Of a counter.
    pub lag: Option<About>,
}

/// All that was found of a card.
pub struct Found {
    pub info: CardInfo,
    /// What the work is, or why there is none.
    pub work: Result<String, String>,
    pub work_error: Option<String>,
    pub registers: Vec<Register>,
    pub idle_w: Option<f64>,
    pub rates: Vec<Rate>,
    pub windows: Vec<Window>,
    pub seconds: f64,
    /// Other cards were measured at the same time.
    pub is_beside_others: bool,
}

/// Measures every card of the driver: two after each other, more of them at once, so that it ends
/// in time. `work` makes the work for a card.
pub fn all_cards(
    work: impl Fn(&CardInfo) -> Result<Box<dyn Work>, String> + Sync,
) -> Result<Vec<Found>, String> {
    let driver = Driver::shared();
    let infos = cards(&driver).map_err(|error| error.to_string())?.cards;
    let one = |info: &CardInfo| card(&driver, info, work(info), &Plan::FULL);
    if infos.len() <= 2 {
        return Ok(infos.iter().map(one).collect());
    }
    let found = thread::scope(|scope| {
        let threads: Vec<_> = infos.iter().map(|info| scope.spawn(|| one(info))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    Ok(found.into_iter().map(|card| Found { is_beside_others: true, ..card }).collect())
}

/// Measures one card.
pub fn card(
    driver: &std::sync::Arc<Driver>,
    info: &CardInfo,
    work: Result<Box<dyn Work>, String>,
    plan: &Plan,
) -> Found {
    let began_ns = now_ns();
    let mut readers: Vec<(&'static str, Box<dyn Reader>)> = vec![
        ("energy counter", Box::new(NvmlCounter::open(driver, info))),
        ("power, instant", Box::new(NvmlGauge::open(driver, info, PowerField::Instant))),
        ("power, average", Box::new(NvmlGauge::open(driver, info, PowerField::Average))),
    ];
    let mut found = Found {
        info: info.clone(),
        work: work.as_ref().map(|work| work.words()).map_err(String::clone),
        work_error: None,
        registers: Vec::new(),
        idle_w: None,
        rates: Vec::new(),
        windows: Vec::new(),
        seconds: 0.0,
        is_beside_others: false,
    };
    let mut work = work.ok();
    // Made ready, a card draws more for a while.
    thread::sleep(Duration::from_secs_f64(plan.rest_s));
    for (name, reader) in &mut readers {
        let cost = cost::of(reader.as_mut(), plan.cost_reads);
        let until = Until::Instant(now_ns() + (plan.grid_s * 1e9) as u64);
        // A gauge says more under work; without any, what it shows at rest has to do.
        let trace = if *name == "energy counter" || work.is_none() {
            poll(reader.as_mut(), Some(Duration::from_millis(1)), until)
        } else {
            Trace::default()
        };
        let grid = publish::grid(&trace.publishes);
        let (response, lag) = (None, None);
        found.registers.push(Register { name, trace, grid, cost, response, lag });
    }
    if let Some(work) = &mut work
        && let Err(error) = pulses(&mut found, &mut readers, work.as_mut(), plan)
    {
        found.work_error = Some(error);
    }
    if let Err(error) = all_rates(&mut found, &mut readers, work.as_mut(), plan) {
        found.work_error = Some(error);
    }
    found.idle_w = found.drawn(false);
    if let Some(work) = &mut work
        && let Err(error) = all_windows(&mut found, driver, work.as_mut(), plan)
    {
        found.work_error = Some(error);
    }
    found.seconds = now_ns().saturating_sub(began_ns) as f64 / 1e9;
    found
}

type Readers = [(&'static str, Box<dyn Reader>)];

/// All registers polled at once while the card is worked in pulses.
fn pulses(
    found: &mut Found,
    readers: &mut Readers,
    work: &mut dyn Work,
    plan: &Plan,
) -> Result<(), String> {
    const GAP: Duration = Duration::from_millis(2);
    let stretch = Duration::from_secs_f64(plan.stretch_s);
    let over = AtomicBool::new(false);
    let mut pulses =
        Pulses { edge_ns: work.edge_ns(), stretch_s: plan.stretch_s, ..Pulses::default() };
    let (worked, traces) = thread::scope(|scope| {
        let polls: Vec<_> = readers
            .iter_mut()
            .map(|(_, reader)| {
                let over = &over;
                scope.spawn(move || poll(reader.as_mut(), Some(GAP), Until::Told(over)))
            })
            .collect();
        thread::sleep(stretch);
        let worked = (0..plan.pulses).try_for_each(|_| {
            let begin_ns = work.begin()?;
            thread::sleep(stretch);
            let end_ns = work.end()?;
            thread::sleep(stretch);
            pulses.edges.push((begin_ns, end_ns));
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        let traces: Vec<Trace> =
            polls.into_iter().map(|poll| poll.join().unwrap_or_default()).collect();
        (worked, traces)
    });
    for (register, trace) in found.registers.iter_mut().zip(traces) {
        if register.name == "energy counter" {
            register.lag = edges::counter_lag(&trace, &pulses);
            continue;
        }
        register.response = edges::gauge_response(&trace, &pulses);
        register.grid = publish::grid(&trace.publishes);
        register.trace = trace;
    }
    worked
}

/// Counter and instant gauge at each rate, idle and under the work.
fn all_rates(
    found: &mut Found,
    readers: &mut Readers,
    work: Option<&mut Box<dyn Work>>,
    plan: &Plan,
) -> Result<(), String> {
    let [counter, gauge, ..] = readers else { return Ok(()) };
    let period_s = found.registers.first().and_then(|counter| counter.grid).map(|it| it.period_s);
    let mut measure = |is_loaded| {
        for (hertz, seconds) in plan.rates {
            let (counter, gauge) = (counter.1.as_mut(), gauge.1.as_mut());
            found.rates.push(rates::at(counter, gauge, *hertz, *seconds, period_s, is_loaded));
        }
    };
    thread::sleep(Duration::from_secs_f64(plan.rest_s));
    measure(false);
    let Some(work) = work else { return Ok(()) };
    work.begin()?;
    // Until clocks and averages have settled.
    thread::sleep(Duration::from_secs_f64(plan.rest_s));
    measure(true);
    work.end().map(|_| ())
}

/// Windows of each length, by a meter that knows what was just found.
fn all_windows(
    found: &mut Found,
    driver: &std::sync::Arc<Driver>,
    work: &mut dyn Work,
    plan: &Plan,
) -> Result<(), String> {
    let Some(idle_w) = found.idle_w else { return Ok(()) };
    let info = &found.info;
    let counter = found.registers.first();
    let grid = counter.and_then(|counter| counter.grid);
    let reader: Box<dyn Reader> = match grid {
        Some(_) => Box::new(NvmlCounter::open(driver, info)),
        None => Box::new(NvmlGauge::open(driver, info, PowerField::Instant)),
    };
    let lag = counter.and_then(|counter| counter.lag);
    let probe = grid.map(|grid| Probed {
        unix_s: (unix_ns(now_ns()) / 1_000_000_000) as u64,
        period_s: grid.period_s,
        jitter_s: grid.jitter_s,
        lag_s: lag.map(|lag| Lag { value: lag.value.max(0.0), uncertainty: lag.uncertainty }),
        trust: Trust::Counter,
        ratio: None,
        mismatch: false,
        poll_sensitive: false,
    });
    let profile = Profile { uuid: info.uuid.clone(), probe, ..Profile::default() };
    let tenants = Box::new(NvmlTenants::open(driver, info));
    let card = record(reader, Some(tenants), Settings { profile, gap_ns: None });
    let meter = Meter::of_cards(&Node::of(info.index.to_string()).idle_watts(idle_w), vec![card]);
    let rest = Duration::from_secs_f64(plan.rest_s);
    // The grid of publishes is found by then.
    thread::sleep(rest * 2);
    for _ in 0..plan.repeats {
        for length_ms in plan.lengths_ms {
            let length = Duration::from_millis(*length_ms);
            found.windows.push(windows::around(&meter, work, length, idle_w)?);
            thread::sleep(rest);
        }
    }
    Ok(())
}

impl Found {
    /// Whether anything of it could be read.
    pub fn is_read(&self) -> bool {
        self.registers.iter().any(|register| register.cost.is_some())
    }

    /// What it draws under the work, W.
    pub fn loaded_w(&self) -> Option<f64> {
        self.drawn(true)
    }

    /// What it draws, W: the counter's slope, else the gauge's mean, at the slow rate that says it
    /// best. Read fast, some counters go wrong.
    fn drawn(&self, is_loaded: bool) -> Option<f64> {
        let slow = |rate: &&Rate| rate.hertz.is_some_and(|hertz| hertz <= 10.0);
        let rates = self.rates.iter().filter(slow).filter(|rate| rate.is_loaded == is_loaded);
        let open_w = |rate: &&Rate| rate.slope_uncertainty_w.unwrap_or(f64::INFINITY);
        let best = rates.min_by(|one, other| open_w(one).total_cmp(&open_w(other)))?;
        best.slope_w.or(best.mean_w)
    }
}
