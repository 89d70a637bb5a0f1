//! Records for tests: a server whose costs are known, and one small run that has everything.

use super::{
    gauge::{Share, Window},
    record::{
        Baseline, Books, Counter, FORM, Kind, Lengths, Outcome, Phase, Place, Rail, RailName,
        ReceiptFigures, Record, Repeat, Request, Rung, Sampler, Settings, Source, Target, Tokens,
    },
};

/// What the simulated card draws at rest, W.
pub const IDLE_W: f64 = 70.0;
/// What it costs above that to read a token of a prompt, J.
pub const PREFILL_J: f64 = 0.020;
/// What a token of an answer costs above idle with B sequences, in tokens of a prompt.
pub fn rho(sequences: f64) -> f64 {
    2.9 + 124.0 / sequences
}

/// A run without rungs.
pub fn empty() -> Record {
    Record {
        form: FORM.to_owned(),
        version: "0.1.0".to_owned(),
        started_unix_s: 1_800_000_000.25,
        seconds: 64.0,
        target: Target {
            url: Some("http://127.0.0.1:8000/v1".to_owned()),
            model: Some("m".to_owned()),
            server: Some("uvicorn".to_owned()),
            is_local: true,
            ..Target::default()
        },
        settings: Settings {
            endpoint: Some("chat".to_owned()),
            streaming: Some(true),
            ignore_eos: Some(true),
            prompt: Some(Lengths::Fixed { tokens: 128 }),
            answer: Some(Lengths::Fixed { tokens: 256 }),
            seconds: Some(10.0),
            repeats: 3,
            seed: Some(1),
            warm_up_s: Some(2.0),
            cool_down_s: Some(1.0),
            baseline_s: 2.0,
            ..Settings::default()
        },
        source: Source {
            place: Place::Local,
            gauge: Some("nvidia-smi power.draw.average".to_owned()),
            counter: Some("nvml".to_owned()),
            cards: vec!["GPU-1".to_owned()],
            card_names: vec!["H100".to_owned()],
            rail: Some("the board's power, as its own sensor averages it".to_owned()),
            simulated: true,
            ..Source::default()
        },
        baseline: Some(Baseline {
            gauge: Some(window(IDLE_W, 2.0, IDLE_W)),
            counter: Some(counter(IDLE_W, 2.0)),
        }),
        sampler: Some(Sampler {
            period_ms: 250,
            cpu_ns: Some(31_000_000),
            wall_ns: 64_000_000_000,
            rejected_lines: 0,
        }),
        incomplete: None,
        warnings: Vec::new(),
        rungs: Vec::new(),
    }
}

/// What a gauge shows that is read four times a second.
pub fn window(watts: f64, seconds: f64, max_watts: f64) -> Window {
    let samples = (seconds * 4.0) as u64;
    Window {
        energy_uj: (watts * seconds * 1e6).round() as u64,
        window_ns: (seconds * 1e9).round() as u64,
        samples,
        max_uw: (max_watts * 1e6).round() as u64,
        capped: Share { active: samples / 4, reported: samples },
        braked: Share::default(),
    }
}

/// What a counter counts.
pub fn counter(watts: f64, seconds: f64) -> Counter {
    Counter {
        energy_uj: (watts * seconds * 1e6).round() as u64,
        window_ns: (seconds * 1e9).round() as u64,
        samples: (seconds * 10.0) as u64,
        bound_uj: Some((watts * 0.01 * 1e6) as u64),
    }
}

/// Small and different in each place, ±1.
pub fn noise(place: u32) -> f64 {
    (f64::from(place) * 12.9898).sin()
}

/// A normal number that belongs to this place.
pub fn normal(place: u64) -> f64 {
    let share = |turn: u64| {
        let mut word = (place * 12 + turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..12).map(share).sum::<f64>() - 6.0
}

/// A repeat of 10 s with so many sequences, tokens of prompts and of answers; its energy is the
/// server's, off by `noise`.
pub fn repeat(number: u32, sequences: f64, tokens: Tokens, noise: f64) -> Repeat {
    let seconds = 10.0;
    let first = tokens.first.unwrap_or_default();
    let read = tokens.prompt.unwrap_or_default() - tokens.cached.unwrap_or_default();
    let decode = (tokens.completion - first) as f64 * rho(sequences);
    let active = PREFILL_J * (read as f64 + decode);
    let watts = (IDLE_W + active / seconds) * (1.0 + noise);
    Repeat {
        number,
        seed: Some(u64::from(number)),
        opened_ns: u64::from(number) * 13_000_000_000,
        window_ns: (seconds * 1e9) as u64,
        completed: tokens.first,
        failed: Some(0),
        tokens: Some(tokens),
        gauge: Some(window(watts, seconds, watts * 1.05)),
        counter: Some(counter(watts, seconds)),
        ..Repeat::default()
    }
}

/// The tokens of a window of 10 s with so many answers of 256 tokens in flight.
pub fn chat(sequences: f64) -> Tokens {
    let completion = (10.0 * sequences / (0.0064 + 0.00008 * sequences)) as u64;
    let first = completion / 256;
    Tokens {
        prompt: Some(first * 128),
        cached: Some(0),
        completion,
        first: Some(first),
        ..Tokens::default()
    }
}

/// A sweep of closed loops; all energies times `factor`.
pub fn sweep(concurrencies: &[u32], repeats: u32, spread: f64, factor: f64) -> Record {
    let mut record = empty();
    for &concurrency in concurrencies {
        let mut rung = Rung::new(Kind::ClosedLoop { concurrency });
        for number in 1..=repeats {
            let noise = factor * spread.mul_add(noise(number * 7 + concurrency), 1.0) - 1.0;
            let sequences = f64::from(concurrency);
            let mut repeat = repeat(number, sequences, chat(sequences), noise);
            repeat.requests = answered(concurrency, number);
            rung.repeats.push(repeat);
        }
        record.rungs.push(rung);
    }
    record.close();
    record
}

/// A few requests of a rung, as its latencies need them.
fn answered(concurrency: u32, repeat: u32) -> Vec<Request> {
    let request = |number: u64| {
        let step = 6_400_000 + 80_000 * u64::from(concurrency);
        let ttft = 20_000_000 + step * number % 7 + u64::from(repeat) * 1_000_000;
        Request {
            rung: format!("c{concurrency}"),
            repeat,
            number,
            outcome: Outcome::Done,
            sent_ns: number * 1_000_000,
            content_ns: (0..256).map(|token| ttft + token * step).collect(),
            ended_ns: ttft + 256 * step,
            prompt_tokens: Some(128),
            completion_tokens: Some(256),
            token_source: "usage".to_owned(),
            ..Request::default()
        }
    };
    (1..=4).map(request).collect()
}

/// Points from which ρ is fitted, at these numbers of sequences.
pub fn isolated(sequences: &[u32], repeats: u32, spread: f64) -> Record {
    let mut record = empty();
    let mut prefill = Rung::new(Kind::PrefillPoint { concurrency: 1 });
    for number in 1..=repeats {
        let tokens = Tokens {
            prompt: Some(200_000),
            cached: Some(1_000),
            completion: 50,
            first: Some(50),
            ..Tokens::default()
        };
        prefill.repeats.push(repeat(number, 1.0, tokens, spread * noise(number)));
    }
    record.rungs.push(prefill);
    for &concurrency in sequences {
        let mut rung = Rung::new(Kind::DecodePoint { concurrency });
        for number in 1..=repeats {
            let sequences = f64::from(concurrency);
            let tokens = chat(sequences);
            let noise = spread * noise(number * 3 + concurrency);
            rung.repeats.push(repeat(number, sequences, tokens, noise));
        }
        record.rungs.push(rung);
    }
    record
}

/// A small run that has everything: a whole rung, one whose second repeat broke, a rate, a failed
/// request, books and rails.
pub fn everything() -> Record {
    let mut record = empty();
    let mut first = repeat(1, 1.0, chat(1.0), 0.0);
    first.requests = vec![
        request("c1", 1, 1, Phase::WarmUp, Outcome::Done),
        request("c1", 1, 2, Phase::Measured, Outcome::Done),
        request("c1", 1, 3, Phase::Measured, Outcome::Failed),
        request("c1", 1, 4, Phase::Measured, Outcome::Done),
        request("c1", 1, 5, Phase::CoolDown, Outcome::Done),
    ];
    first.failed = Some(1);
    first.books = Some(books(first.counter.unwrap().energy_uj as i64));
    first.rails = vec![Rail { name: RailName::Cpu, counter: counter(45.0, 10.0) }];
    let whole = Rung { kind: Kind::ClosedLoop { concurrency: 1 }, repeats: vec![first] };
    let mut broken = repeat(2, 8.0, chat(4.0), 0.0);
    broken.incomplete = Some("the server closed the connection of request 17".to_owned());
    broken.requests = vec![request("c8", 2, 1, Phase::Measured, Outcome::Cancelled)];
    let mut eight = repeat(1, 8.0, chat(8.0), 0.0);
    eight.requests = vec![request("c8", 1, 1, Phase::Measured, Outcome::Done)];
    let half = Rung { kind: Kind::ClosedLoop { concurrency: 8 }, repeats: vec![eight, broken] };
    let mut open = repeat(1, 3.0, chat(3.0), 0.0);
    open.counter = None;
    let rate = Rung { kind: Kind::Rate { requests_per_s: 2.5 }, repeats: vec![open] };
    record.rungs = vec![whole, half, rate];
    record.sampler = Some(Sampler { rejected_lines: 2, ..record.sampler.unwrap() });
    record.incomplete = Some("the server closed the connection of request 17".to_owned());
    record.warnings = vec!["the baseline stands on 8 readings".to_owned()];
    record.close();
    record
}

fn books(counted_uj: i64) -> Books {
    let prefill_uj = counted_uj / 10;
    let failed_uj = counted_uj / 50;
    let idle_uj = 700_000_000;
    Books {
        counted_uj,
        prefill_uj,
        decode_uj: counted_uj - prefill_uj - failed_uj - idle_uj - 25_000,
        failed_uj,
        idle_uj,
        unattributed_uj: 20_000,
        gap_uj: 5_000,
        bound_uj: Some(1_250_000),
        receipts: 3,
        ..Books::default()
    }
}

fn request(rung: &str, repeat: u32, number: u64, phase: Phase, outcome: Outcome) -> Request {
    let is_done = outcome == Outcome::Done;
    let sent_ns = 1_000_000_000 * number;
    let first = 20_000_000 + 1_000_000 * number;
    let content = [0, 7_000_000, 13_000_000, 21_000_000].map(|after| first + after);
    let receipt = ReceiptFigures {
        joules: Some(1.25),
        joules_with_idle_share: Some(2.5),
        prefill_joules: Some(0.25),
        decode_joules: Some(1.0),
        bound_joules: Some(0.0625),
        model_low: Some(1.0),
        model_high: Some(1.5),
        method: "sampled".to_owned(),
        settled: true,
        ..ReceiptFigures::default()
    };
    Request {
        rung: rung.to_owned(),
        repeat,
        number,
        phase,
        outcome,
        error: (!is_done).then(|| "connection closed before the answer was whole".to_owned()),
        http_status: is_done.then_some(200),
        due_ns: sent_ns - 500_000,
        sent_ns,
        first_piece_ns: is_done.then_some(first - 3_000_000),
        content_ns: if is_done { content.to_vec() } else { Vec::new() },
        last_piece_ns: is_done.then_some(first + 21_500_000),
        ended_ns: first + 22_000_000,
        prompt_tokens: is_done.then_some(128),
        cached_tokens: is_done.then_some(16),
        completion_tokens: is_done.then_some(5),
        reasoning_tokens: None,
        token_source: if is_done { "usage" } else { "unknown" }.to_owned(),
        window_tokens: is_done.then_some(5),
        receipt: is_done.then_some(receipt),
    }
}
