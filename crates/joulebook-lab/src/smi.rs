//! The program `nvidia-smi` of a scenario's machine, as far as meters use it.
//!
//! Its text is the real tool's: columns, units, spacing, the order of rows (all cards of a tick,
//! then the pause), its sentences and exit codes, and its words for what a card cannot say. Fields
//! that a driver of the scenario's version does not know are refused as that version refuses them.
//! A row's cells are taken one after the other, each by a call that costs what the scenario says.
//!
//! `smi.exit`, `smi.hang`, `smi.die`, `smi.empty` and `smi.pause` of any card meet every tick of the
//! program (a single call is one tick): in this order it hangs, waits until a pause is over, dies,
//! exits, or leaves the tick out. `smi.garbage` stands in place of its own card's row, and
//! `smi.FIELD` in that cell.

use std::io::{self, Write};

mod ask;
mod cells;
mod fields;
mod forms;
mod processes;
mod tick;

use ask::{Ask, What};
use tick::Tick;

use crate::{
    machine::{Machine, spend},
    scenario::{Refusal, Scenario},
};

/// How a call ends: its exit code, and what it says first.
#[derive(Debug, PartialEq, Eq)]
struct Ends {
    code: u8,
    says: String,
}

/// Runs the program; its exit code.
pub fn run(arguments: &[String], out: &mut dyn Write) -> u8 {
    let ends = match ask::parse(arguments) {
        Err(ends) => ends,
        Ok(ask) => match asked(&ask, out) {
            Ok(ends) => ends,
            // Nobody reads any more.
            Err(_) => return 0,
        },
    };
    let _ = out.write_all(ends.says.as_bytes()).and_then(|()| out.flush());
    ends.code
}

fn asked(ask: &Ask, out: &mut dyn Write) -> io::Result<Ends> {
    let Some(file) = Machine::scenario_file() else { return Ok(no_driver()) };
    let scenario = match Scenario::read(&file) {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("nvidia-smi of joulebook-lab: {error}");
            return Ok(no_driver());
        }
    };
    let machine = Machine::new(scenario);
    let smi = machine.scenario().smi;
    spend(smi.spend, smi.spawn_ns);
    let mut first = true;
    loop {
        match tick::begin(&machine) {
            Tick::Ends(ends) => return Ok(ends),
            Tick::Nothing => {}
            Tick::Goes => match answer(&machine, ask, first) {
                Ok(text) => {
                    first = false;
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                Err(ends) => return Ok(ends),
            },
        }
        match ask.every {
            Some(every) => std::thread::sleep(every),
            None => return Ok(Ends { code: 0, says: String::new() }),
        }
    }
}

/// What one tick prints.
fn answer(machine: &Machine, ask: &Ask, first: bool) -> Result<String, Ends> {
    starts(machine)?;
    let chosen = ask::chosen(machine, &ask.ids)?;
    for model in &chosen {
        let handle = machine.ask(crate::machine::Spent::Nothing, |t_ns| model.handle(t_ns));
        handle.map_err(|refusal| lost(refusal, model.card().pci))?;
    }
    match &ask.what {
        What::Cards(query) => fields::rows(machine, &chosen, query, first),
        What::Applications(query) => processes::rows(machine, &chosen, query, first),
        What::Monitor { memory } => Ok(processes::monitor(machine, &chosen, *memory)),
        What::List => Ok(forms::list(&chosen)),
        What::Xml => Ok(forms::xml(machine, &chosen)),
        What::Table => Ok(forms::table(machine, &chosen)),
        What::Help => Ok(fields::help()),
    }
}

/// The driver's start, as far as the cards have a say.
fn starts(machine: &Machine) -> Result<(), Ends> {
    for model in machine.models() {
        let start = machine.ask(crate::machine::Spent::Nothing, |t_ns| model.start(t_ns));
        start.map_err(|refusal| match refusal {
            Refusal::NoDriver | Refusal::NotFound => no_driver(),
            Refusal::Mismatch => Ends {
                code: 18,
                says: "Failed to initialize NVML: Driver/library version mismatch\n".to_owned(),
            },
            Refusal::NoPermission => Ends {
                code: 4,
                says: "Failed to initialize NVML: Insufficient Permissions\n".to_owned(),
            },
            _ => Ends { code: 255, says: "Failed to initialize NVML: Unknown Error\n".to_owned() },
        })?;
    }
    Ok(())
}

fn no_driver() -> Ends {
    Ends {
        code: 9,
        says: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make \
               sure that the latest NVIDIA driver is installed and running.\n\n"
            .to_owned(),
    }
}

fn lost(refusal: Refusal, pci: crate::scenario::PciAddress) -> Ends {
    let (code, why) = match refusal {
        Refusal::Lost => (15, "GPU is lost.  Reboot the system to recover this GPU"),
        Refusal::ResetRequired => (255, "GPU requires reset"),
        Refusal::NoPermission => (4, "Insufficient Permissions"),
        Refusal::NotFound => (6, "Not Found"),
        _ => (255, "Unknown Error"),
    };
    Ends { code, says: format!("Unable to determine the device handle for GPU {pci}: {why}\n\n") }
}

#[cfg(test)]
mod tests;
