//! `joulebook bench fit RECORD…`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use joulebook::core::units::significant;
use serde_json::json;

use super::{print, usage};
use crate::{
    bench::{
        files::write_whole,
        fit::{self, Fit},
        output,
        record::Record,
    },
    context::Usage,
};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Records with isolated points, of one model on one kind of card (made by bench --isolated)
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Put the result into this file of ρ; entries of other models and cards stay
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object in place of a page
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let read = arguments.records.iter().map(|path| output::read(path));
    let records = read.collect::<anyhow::Result<Vec<Record>>>().map_err(|error| usage(&error))?;
    let records: Vec<&Record> = records.iter().collect();
    let fit = fit::of(&records).map_err(|error| Usage(error.to_string()))?;
    conclude(&fit, arguments.output.as_deref(), arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Stores a fit where that is asked for, and says what it is.
pub fn conclude(fit: &Fit, file: Option<&Path>, is_json: bool) -> anyhow::Result<()> {
    if let Some(path) = file {
        let present = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        write_whole(path, &fit::merged(&present, fit, &path.display().to_string())?)?;
    }
    if is_json {
        print(&format!("{}\n", form(fit)));
    } else {
        print(&page(fit, file));
    }
    Ok(())
}

fn form(fit: &Fit) -> serde_json::Value {
    let point = |point: &fit::Point| {
        json!({
            "sequences": point.sequences,
            "joules_per_token": point.joules,
            "tokens": point.tokens,
            "rho": point.rho,
            "fitted_rho": point.fitted,
            "off": point.off(),
        })
    };
    json!({
        "model": fit.model,
        "card": fit.card,
        "simulated": fit.is_simulated,
        "energy_by": fit.ruler.prefix(),
        "prefill_joules_per_token": fit.prefill_joules,
        "prefill_tokens": fit.prefill_tokens,
        "cache_told": fit.cache_told,
        "decode": fit.points.iter().map(point).collect::<Vec<_>>(),
        "rho_a": fit.rho_a,
        "rho_b": fit.rho_b,
        "deviation": fit.deviation,
    })
}

fn page(fit: &Fit, file: Option<&Path>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["", "J/token above idle", "tokens", "ρ measured", "ρ fitted", "off by"]);
    table.add_row([
        "prompt".to_owned(),
        significant(fit.prefill_joules),
        fit.prefill_tokens.to_string(),
        "1".to_owned(),
        "1".to_owned(),
        String::new(),
    ]);
    for point in &fit.points {
        table.add_row([
            format!("answer, B = {}", point.sequences),
            significant(point.joules),
            point.tokens.to_string(),
            significant(point.rho),
            significant(point.fitted),
            format!("{:+.1} %", point.off() * 100.0),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let simulated =
        if fit.is_simulated { "SIMULATED card: these say nothing of a real one.\n" } else { "" };
    let mut page = format!("{simulated}{}\n\n", table.trim_fmt());
    page += &format!(
        "ρ(B) = {:.3} + {:.3} / B, off by {:.1} % (root mean square; least squares of relative \
         errors). Energy by the {}.\n",
        fit.rho_a,
        fit.rho_b,
        fit.deviation * 100.0,
        fit.ruler.name()
    );
    if !fit.cache_told {
        page += "Answers did not tell tokens from a cache: all of their prompts are taken to have been read.\n";
    }
    match file {
        Some(path) => page + &format!("Stored in {}.\n", path.display()),
        None => page + "For the books (-o FILE puts it into a file):\n\n" + &fit::toml(fit),
    }
}
