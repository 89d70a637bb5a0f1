//! A run that meters somebody else's load generator over its own time.
//!
//! The generator is started as by hand: its input, output, terminal and signals are its own, and its
//! exit code is returned. Which target it drives only its user knows: with `--url` the loopback rule
//! holds, without it this machine's cards are read and that is said.

use std::{ffi::OsString, process::ExitCode};

use anyhow::Context as _;
use joulebook::{books::Rhos, clock::now_ns};

use super::{
    Shared,
    outcome::{self, blank},
    plans::Wanted,
};
use crate::{
    bench::{
        load::Address,
        meter::Energy,
        record::{self, Kind, Record, Repeat, Rung, Tokens},
        report,
    },
    command::run::child::{self, Exit},
    context::{Context, Usage},
    signals::Signals,
    words::say_error,
};

/// Runs it.
pub fn run(
    command: &[OsString],
    arguments: &Wanted,
    shared: &Shared,
    context: &Context,
) -> anyhow::Result<ExitCode> {
    let Some((program, rest)) = command.split_first() else {
        return Err(Usage("name a command after --".to_owned()).into());
    };
    let address = shared.url.as_deref().map(Address::parse).transpose().map_err(Usage)?;
    let folder = outcome::folder(shared)?;
    // Before any thread is started, so that all of them have it.
    let signals = Signals::block().context("signals cannot be read")?;
    let is_local = address.as_ref().is_none_or(Address::is_local);
    let url = address.as_ref().map(Address::url);
    let asked = shared.asked(address.as_ref().map(Address::port));
    let mut energy = match asked.place(is_local, url.as_deref().unwrap_or_default()) {
        Ok(_) => Energy::open_cards(asked, context.profiles.as_ref())?,
        Err(why) => Energy::none(why),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no clock for the window")?;
    let start_ns = now_ns();
    let target = record::Target {
        url: url.clone(),
        is_local,
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..record::Target::default()
    };
    let settings = record::Settings {
        repeats: 1,
        baseline_s: shared.baseline.as_secs_f64(),
        ..record::Settings::default()
    };
    let mut record = blank(target, settings, energy.source().clone(), start_ns);
    if url.is_none() && shared.node.is_none() && energy.is_read() {
        record.warnings.push(
            "whom the command drives is not known: the cards are this machine's, whatever they did \
             meanwhile (--url names the server, and another host's is then left out)"
                .to_owned(),
        );
    }
    if energy.is_read() {
        let opened = energy.open();
        std::thread::sleep(shared.baseline);
        let figures = runtime.block_on(energy.settle(opened.close()));
        record.baseline = energy.keep_baseline(&figures, Rhos::default());
    }
    let opened = energy.open();
    let exit = match child::run(program, rest, &signals) {
        Ok(exit) => exit,
        Err(refused) => {
            say_error(&anyhow::anyhow!("{refused}"));
            return Ok(ExitCode::from(refused.code()));
        }
    };
    let closed = opened.close();
    let span = closed.span;
    let figures = runtime.block_on(energy.settle(closed));
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(number) => 128u8.saturating_add(number),
    };
    record.target.exit_code = Some(code.into());
    let completion = arguments.tokens();
    let repeat = Repeat {
        number: 1,
        opened_ns: span.open_ns - start_ns,
        window_ns: span.close_ns - span.open_ns,
        tokens: completion.map(|completion| Tokens { completion, ..Tokens::default() }),
        gauge: figures.gauge(),
        counter: figures.counter(),
        incomplete: (code != 0).then(|| format!("the command ended with {code}")),
        ..Repeat::default()
    };
    if !shared.json {
        anstream::eprintln!("{}", report::window_line(&record, Kind::Command, &repeat));
    }
    record.incomplete.clone_from(&repeat.incomplete);
    record.rungs = vec![Rung { kind: Kind::Command, repeats: vec![repeat] }];
    record.seconds = (now_ns() - start_ns) as f64 / 1e9;
    record.sampler = energy.sampler();
    record.warnings.append(&mut energy.warnings);
    let record: &mut Record = &mut record;
    shared.tell(record, folder.as_deref())?;
    Ok(ExitCode::from(code))
}
