//! From text to a [`Scenario`]. What is allowed stands in the page of [`crate::scenario`].

use std::path::PathBuf;

use super::{
    Card, ClockKind, CounterMode, Effect, Fault, Gauge, Knot, Refusal, Resident, Scenario,
    SmiEffect, SmiFault, Spend, Target, Wave,
    words::{Pairs, ParseError, Words, finite, nanoseconds},
};

const MACHINE: &str = "clock, epoch_ns, control, driver, smi, cost or card";
const CARD: &str = "name, uuid, pci, arch, cc, mem, limit, mig, clocks, util, idle, step, point, \
                    square, sine, dynamic, counter, sensor, instant, proc or fault";

/// A card, and the lines of what can be judged only when all of it is known.
struct Draft {
    card: Card,
    waves: Vec<(usize, String)>,
}

/// Reads a whole scenario.
pub(super) fn scenario(text: &str) -> Result<Scenario, ParseError> {
    let mut scenario = Scenario::default();
    let mut cards: Vec<Draft> = Vec::new();
    let mut current: Option<usize> = None;
    for (number, raw) in (1..).zip(text.lines()) {
        let line = without_comment(raw);
        let mut words = Words::of(number, line);
        match words.statement() {
            "" => {}
            "card" => {
                let index: u32 = words.parsed("a card's number, from 0")?;
                words.end()?;
                if index > 255 {
                    return Err(words.error(&index.to_string(), "a machine has at most 256 cards"));
                }
                while cards.len() <= index as usize {
                    let card = Card::numbered(cards.len() as u32);
                    cards.push(Draft { card, waves: Vec::new() });
                }
                current = Some(index as usize);
            }
            _ if machine(&mut scenario, &mut words)? => {}
            statement => {
                let card = current.and_then(|index| cards.get_mut(index));
                let is_card = CARD.split([',', ' ']).any(|word| word == statement);
                let Some(draft) = card.filter(|_| is_card) else {
                    let wanted = if is_card {
                        "belongs to a card: `card N` must stand before it".to_owned()
                    } else {
                        format!("is no statement; there are {MACHINE}, and of a card {CARD}")
                    };
                    return Err(words.error(statement, wanted));
                };
                if matches!(statement, "square" | "sine") {
                    draft.waves.push((number, line.trim().to_owned()));
                }
                card_statement(&mut draft.card, &mut words)?;
            }
        }
    }
    for draft in cards {
        scenario.cards.push(draft.finish()?);
    }
    Ok(scenario)
}

/// Cuts a comment off, except where the line ends in free text.
fn without_comment(line: &str) -> &str {
    let statement = line.split_whitespace().next().unwrap_or_default();
    if statement.starts_with('#') {
        return "";
    }
    let free = matches!(statement, "driver" | "name" | "uuid" | "pci" | "proc" | "control")
        || (statement == "fault" && line.contains(" smi."));
    match line.find(" #") {
        Some(at) if !free => line.get(..at).unwrap_or(line),
        _ => line,
    }
}

/// Reads a statement about the machine; false when it is none.
fn machine(scenario: &mut Scenario, words: &mut Words<'_>) -> Result<bool, ParseError> {
    match words.statement() {
        "clock" => {
            let word = words.need("monotonic or realtime")?;
            scenario.clock = match word {
                "monotonic" => ClockKind::Monotonic,
                "realtime" => ClockKind::Realtime,
                _ => return Err(words.error(word, "should be monotonic or realtime")),
            };
        }
        "epoch_ns" => scenario.epoch_ns = Some(words.parsed("whole nanoseconds")?),
        "control" => scenario.control = Some(PathBuf::from(words.text("a file's path")?)),
        "driver" => scenario.driver = words.text("a version")?.to_owned(),
        "smi" => {
            let pairs = words.pairs(&["spawn_ms", "mode"])?;
            pairs.set_ms("spawn_ms", &mut scenario.smi.spawn_ns)?;
            set_spend(&pairs, &mut scenario.smi.spend)?;
        }
        "cost" => {
            let pairs = words.pairs(&["energy_us", "power_us", "mode"])?;
            let microseconds = |value: &str| nanoseconds(value, 1e3).filter(|ns| *ns >= 0);
            let wanted = "microseconds, not below 0";
            pairs.set("energy_us", &mut scenario.cost.energy_ns, wanted, microseconds)?;
            pairs.set("power_us", &mut scenario.cost.power_ns, wanted, microseconds)?;
            set_spend(&pairs, &mut scenario.cost.spend)?;
        }
        _ => return Ok(false),
    }
    words.end()?;
    Ok(true)
}

fn set_spend(pairs: &Pairs<'_>, field: &mut Spend) -> Result<(), ParseError> {
    pairs.set("mode", field, "spin or sleep", |value| match value {
        "spin" => Some(Spend::Spin),
        "sleep" => Some(Spend::Sleep),
        _ => None,
    })
}

/// Reads a statement about a card.
fn card_statement(card: &mut Card, words: &mut Words<'_>) -> Result<(), ParseError> {
    match words.statement() {
        "name" => card.name = words.text("a name")?.to_owned(),
        "uuid" => card.uuid = words.text("a UUID")?.to_owned(),
        "pci" => {
            let text = words.text("a PCI address")?;
            card.pci = text.parse().map_err(|()| {
                words.error(text, "should be [domain:]bus:device[.function], as 00000000:18:00.0")
            })?;
        }
        "arch" => card.architecture = words.parsed("the driver's architecture number")?,
        "cc" => {
            let word = words.need("a compute capability")?;
            let parts = word.split_once('.').unwrap_or((word, "0"));
            let parsed = parts.0.parse().ok().zip(parts.1.parse().ok());
            card.compute_capability =
                parsed.ok_or_else(|| words.error(word, "should be major.minor, as 9.0"))?;
        }
        "mem" => {
            let pairs = words.pairs(&["total_mib", "base_mib"])?;
            pairs.set_whole("total_mib", &mut card.memory.total_mib)?;
            pairs.set_whole("base_mib", &mut card.memory.base_mib)?;
        }
        "limit" => limit(card, &words.pairs(&["w", "min", "max"])?)?,
        "mig" => {
            let word = words.need("0, 1 or -1")?;
            card.mig = match word {
                "0" => Some(false),
                "1" => Some(true),
                "-1" => None,
                _ => return Err(words.error(word, "should be 0 (off), 1 (on) or -1 (none)")),
            };
        }
        "clocks" => {
            let pairs = words.pairs(&["sm", "mem", "temp", "reasons"])?;
            pairs.set_whole("sm", &mut card.clocks.sm_mhz)?;
            pairs.set_whole("mem", &mut card.clocks.mem_mhz)?;
            pairs.set_whole("temp", &mut card.clocks.temperature_c)?;
            let wanted = "a bit mask, decimal or 0x…";
            pairs.set("reasons", &mut card.clocks.reasons, wanted, |value| {
                match value.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok(),
                    None => value.parse().ok(),
                }
            })?;
        }
        "util" => {
            let pairs = words.pairs(&["gpu", "mem"])?;
            pairs.set_whole("gpu", &mut card.utilization.gpu)?;
            pairs.set_whole("mem", &mut card.utilization.mem)?;
        }
        "idle" => card.idle_w = words.positive("watts")?,
        "step" | "point" => {
            let linear = words.statement() == "point";
            let t_ns = words.instant()?;
            let w = words.positive("watts")?;
            card.knots.push(Knot { t_ns, w, linear });
        }
        "square" => card.waves.push(square(words)?),
        "sine" => card.waves.push(sine(words)?),
        "dynamic" => card.dynamic = true,
        "counter" => counter(card, words)?,
        "sensor" => gauge(&mut card.sensor, words)?,
        "instant" => gauge(&mut card.instant, words)?,
        "proc" => card.residents.push(resident(words)?),
        "fault" => fault(card, words)?,
        other => return Err(words.error(other, format!("a card has {CARD}"))),
    }
    words.end()
}

fn limit(card: &mut Card, pairs: &Pairs<'_>) -> Result<(), ParseError> {
    let limit = &mut card.limit;
    pairs.set_positive("w", &mut limit.w)?;
    if pairs.get("w").is_some() {
        limit.max_w = limit.w;
        limit.min_w = limit.min_w.min(limit.w);
    }
    pairs.set_positive("min", &mut limit.min_w)?;
    pairs.set_positive("max", &mut limit.max_w)
}

fn square(words: &mut Words<'_>) -> Result<Wave, ParseError> {
    let span = words.span()?;
    let pairs = words.pairs(&["period_ms", "duty", "w", "phase_ms"])?;
    let period_ns = period(&pairs)?;
    let (mut duty, mut w, mut phase_ns) = (0.5, 100.0, 0);
    pairs.set("duty", &mut duty, "a share of the period, 0 … 1", |value| {
        finite(value).filter(|share| (0.0..=1.0).contains(share))
    })?;
    pairs.set_number("w", &mut w)?;
    pairs.set("phase_ms", &mut phase_ns, "milliseconds", |value| {
        nanoseconds(value, 1e6).filter(|ns| *ns < i64::MAX)
    })?;
    let on_ns = (period_ns as f64 * duty).round() as i64;
    Ok(Wave::Square { span, period_ns, on_ns, phase_ns, w })
}

fn sine(words: &mut Words<'_>) -> Result<Wave, ParseError> {
    let span = words.span()?;
    let pairs = words.pairs(&["period_ms", "w"])?;
    let period_ns = period(&pairs)?;
    let mut w = 100.0;
    pairs.set_number("w", &mut w)?;
    Ok(Wave::Sine { span, period_ns, w })
}

fn period(pairs: &Pairs<'_>) -> Result<i64, ParseError> {
    let mut period_ns = 100_000_000;
    pairs.set("period_ms", &mut period_ns, "milliseconds, above 0", |value| {
        nanoseconds(value, 1e6).filter(|ns| (1..i64::MAX).contains(ns))
    })?;
    Ok(period_ns)
}

fn counter(card: &mut Card, words: &mut Words<'_>) -> Result<(), ParseError> {
    let counter = &mut card.counter;
    let pairs = words.pairs(&[
        "supported",
        "period_ms",
        "lag_ms",
        "jitter_ms",
        "phase_ms",
        "gain",
        "res_mj",
        "base_mj",
        "mode",
    ])?;
    pairs.set_flag("supported", &mut counter.supported)?;
    pairs.set_ms("period_ms", &mut counter.period_ns)?;
    pairs.set_ms("lag_ms", &mut counter.lag_ns)?;
    pairs.set_ms("jitter_ms", &mut counter.jitter_ns)?;
    pairs.set_ms("phase_ms", &mut counter.phase_ns)?;
    pairs.set_positive("gain", &mut counter.gain)?;
    pairs.set_positive("res_mj", &mut counter.res_mj)?;
    pairs.set_whole("base_mj", &mut counter.base_mj)?;
    pairs.set("mode", &mut counter.mode, "true or sensor", |value| match value {
        "true" => Some(CounterMode::True),
        "sensor" => Some(CounterMode::Sensor),
        _ => None,
    })
}

fn gauge(gauge: &mut Gauge, words: &mut Words<'_>) -> Result<(), ParseError> {
    let pairs =
        words.pairs(&["supported", "window_ms", "period_ms", "gain", "phase_ms", "lag_ms"])?;
    pairs.set_flag("supported", &mut gauge.supported)?;
    pairs.set_ms("window_ms", &mut gauge.window_ns)?;
    pairs.set_ms("period_ms", &mut gauge.period_ns)?;
    pairs.set_positive("gain", &mut gauge.gain)?;
    pairs.set_ms("phase_ms", &mut gauge.phase_ns)?;
    pairs.set_ms("lag_ms", &mut gauge.lag_ns)
}

fn resident(words: &mut Words<'_>) -> Result<Resident, ParseError> {
    let span = words.span()?;
    let pid = words.parsed("a process id")?;
    let word = words.need("MiB, or -1")?;
    let used_mib = match word {
        "-1" => None,
        _ => Some(word.parse().map_err(|_| {
            words.error(word, "should be whole MiB, or -1 where the driver cannot say")
        })?),
    };
    let text = words.text("the process's name")?;
    let (sm_percent, name) = match text.strip_prefix("sm=") {
        None => (None, text),
        Some(after) => {
            let (share, name) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
            let share = share
                .parse()
                .map_err(|_| words.error(&format!("sm={share}"), "should be sm=PER CENT"))?;
            (Some(share), name.trim())
        }
    };
    if name.is_empty() {
        return Err(words.error(text, "the process's name should follow"));
    }
    Ok(Resident { span, pid, used_mib, sm_percent, name: name.to_owned() })
}

fn fault(card: &mut Card, words: &mut Words<'_>) -> Result<(), ParseError> {
    let span = words.span()?;
    let target = words.need("what it meets")?;
    if let Some(what) = target.strip_prefix("smi.") {
        let effect = smi_effect(what, words)?;
        card.smi_faults.push(SmiFault { span, effect });
        return Ok(());
    }
    let target = named(Target::WORDS, target).ok_or_else(|| {
        words.error(target, format!("a fault meets {} or smi.…", listed(Target::WORDS)))
    })?;
    let kind = words.need("what goes wrong")?;
    let energy = target == Target::Energy;
    let effect = match kind {
        "reset" if energy => Effect::Set(0),
        "setto" if energy => Effect::Set(words.parsed("whole mJ")?),
        "jump" if energy => Effect::Jump(words.parsed("whole mJ, with its sign")?),
        "stuck" => Effect::Stuck,
        "value" => Effect::Value(words.positive("a value in the unit of the target")?),
        "hang" => Effect::Hang(words.milliseconds()?),
        _ => Effect::Refuse(named(Refusal::WORDS, kind).ok_or_else(|| {
            let more = if energy { "reset, setto MJ, jump ±MJ, " } else { "" };
            let errors = listed(Refusal::WORDS);
            words.error(kind, format!("should be {more}stuck, value N, hang MS or {errors}"))
        })?),
    };
    card.faults.push(Fault { span, target, effect });
    Ok(())
}

fn smi_effect(what: &str, words: &mut Words<'_>) -> Result<SmiEffect, ParseError> {
    if what == "exit" {
        let code = words.parsed("an exit code")?;
        return Ok(SmiEffect::Exit { code, text: words.remainder().to_owned() });
    }
    let simple = ["hang", "garbage", "empty", "die", "pause"].contains(&what);
    let marker = if simple { "x" } else { "text" };
    let word = words.need(marker)?;
    if word != marker {
        return Err(words.error(word, format!("should be `{marker}`, as in smi.{what} {marker}")));
    }
    Ok(match what {
        "hang" => SmiEffect::Hang(words.milliseconds()?),
        "garbage" => SmiEffect::Garbage(words.remainder().to_owned()),
        "empty" => SmiEffect::Empty,
        "die" => SmiEffect::Die,
        "pause" => SmiEffect::Pause,
        field => SmiEffect::Field { field: field.to_owned(), text: words.remainder().to_owned() },
    })
}

fn named<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn listed<T>(words: &[(&str, T)]) -> String {
    words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Draft {
    /// Sorts the knots, and refuses a card whose power would fall below 0 W.
    fn finish(self) -> Result<Card, ParseError> {
        let mut card = self.card;
        // Stable: of two knots at one instant the later line is the level from there on.
        card.knots.sort_by_key(|knot| knot.t_ns);
        for (wave, (line, text)) in card.waves.iter().zip(self.waves) {
            if !card.dynamic && wave.lowest_w() < 0.0 && lowest_w(&card, wave) < 0.0 {
                let wanted = "takes the card's power below 0 W: raise the level or lower w";
                return Err(ParseError { line, token: text, wanted: wanted.to_owned() });
            }
        }
        Ok(card)
    }
}

/// A lower bound of the power while a wave acts (not known of a card under live control).
fn lowest_w(card: &Card, wave: &Wave) -> f64 {
    let span = wave.span();
    let inside = |knot: &&Knot| span.contains(knot.t_ns);
    let before = card.knots.iter().rfind(|knot| knot.t_ns <= span.start_ns);
    let after = card.knots.iter().find(|knot| knot.t_ns >= span.end_ns).filter(|knot| knot.linear);
    let level = card
        .knots
        .iter()
        .filter(inside)
        .chain(after)
        .map(|knot| knot.w)
        .fold(before.map_or(card.idle_w, |knot| knot.w), f64::min);
    let overlapping =
        |other: &&Wave| other.span().start_ns < span.end_ns && span.start_ns < other.span().end_ns;
    level + card.waves.iter().filter(overlapping).map(Wave::lowest_w).sum::<f64>()
}
