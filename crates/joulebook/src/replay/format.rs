//! Which format a text is in: told by what stands in it, never by a file's name.

use std::{fmt, str::FromStr};

use super::{
    Log, ReplayError, amdsmi, exposition, logger, marks, mllog, pmt, prometheus, rocmsmi, smi,
    smixml, spl, table,
    text::{cells, shortened},
};

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// nvidia-smi's CSV, also from a shell loop.
    NvidiaSmi,
    /// `nvidia-smi -q -x`.
    NvidiaSmiXml,
    /// `amd-smi metric --csv`.
    AmdSmi,
    /// `amd-smi metric --json`.
    AmdSmiJson,
    /// `rocm-smi --json`.
    RocmSmi,
    /// A dump of the Power Measurement Toolkit.
    PowerToolkit,
    /// A Prometheus range query as a CSV.
    PrometheusDump,
    /// A scrape in Prometheus' text format.
    PrometheusScrape,
    /// SPEC's power daemon.
    SpecDaemon,
    /// MLPerf's log lines.
    MlperfLog,
    /// A person's own CSV with columns of time and power.
    Logger,
}

impl Format {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::NvidiaSmi,
        Self::NvidiaSmiXml,
        Self::AmdSmi,
        Self::AmdSmiJson,
        Self::RocmSmi,
        Self::PowerToolkit,
        Self::PrometheusDump,
        Self::PrometheusScrape,
        Self::SpecDaemon,
        Self::MlperfLog,
        Self::Logger,
    ];

    /// The word that a person gives.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NvidiaSmi => "nvidia-smi",
            Self::NvidiaSmiXml => "nvidia-smi-xml",
            Self::AmdSmi => "amd-smi",
            Self::AmdSmiJson => "amd-smi-json",
            Self::RocmSmi => "rocm-smi",
            Self::PowerToolkit => "pmt",
            Self::PrometheusDump => "prometheus",
            Self::PrometheusScrape => "scrape",
            Self::SpecDaemon => "spl",
            Self::MlperfLog => "mllog",
            Self::Logger => "logger",
        }
    }

    /// The format of a text.
    pub(super) fn of(text: &str) -> Result<Self, ReplayError> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
        let trimmed = first.trim_start();
        let names: Vec<String> = cells(first).into_iter().map(str::to_owned).collect();
        let is_json = text.lines().take(8).any(|line| line.trim_start().starts_with(['{', '[']));
        let sure = [
            (Self::NvidiaSmiXml, trimmed.starts_with('<') && smixml::is(text)),
            (Self::MlperfLog, trimmed.starts_with(":::") && mllog::is(text)),
            (Self::AmdSmiJson, is_json && amdsmi::is_json(text)),
            (Self::RocmSmi, is_json && rocmsmi::is(text)),
            (Self::PrometheusScrape, exposition::is(text)),
            (Self::SpecDaemon, spl::is_row(first)),
            (Self::PowerToolkit, pmt::is_header(first)),
            (Self::PrometheusDump, prometheus::is_header(&names)),
            (Self::NvidiaSmi, smi::is_header(&names)),
            (Self::AmdSmi, amdsmi::is_header(&names)),
        ];
        if let Some((format, _)) = sure.iter().find(|(_, is)| *is) {
            return Ok(*format);
        }
        if marks::are_windows(&names) {
            return Err(ReplayError::Windows { line, columns: shortened(first) });
        }
        if logger::is_header(&names) {
            return Ok(Self::Logger);
        }
        // Rows without a header, and a header that lacks something: nvidia-smi's reader says what.
        let timed = table::is_data(&names) || names.iter().any(|name| name == "timestamp");
        if names.len() > 1 && timed {
            return Ok(Self::NvidiaSmi);
        }
        if mllog::is(text) {
            return Ok(Self::MlperfLog);
        }
        let known = Self::ALL.iter().map(|format| format.word()).collect::<Vec<_>>().join(", ");
        Err(ReplayError::UnknownFormat { line, begins: shortened(first), known })
    }

    /// Reads a text in this format.
    pub(super) fn read(self, text: &str) -> Result<Log, ReplayError> {
        match self {
            Self::NvidiaSmi => smi::read(text),
            Self::NvidiaSmiXml => smixml::read(text),
            Self::AmdSmi => amdsmi::read(text),
            Self::AmdSmiJson => amdsmi::read_json(text),
            Self::RocmSmi => rocmsmi::read(text),
            Self::PowerToolkit => pmt::read(text),
            Self::PrometheusDump => prometheus::read(text),
            Self::PrometheusScrape => exposition::read(text),
            Self::SpecDaemon => spl::read(text),
            Self::MlperfLog => mllog::read(text),
            Self::Logger => logger::read(text),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.word())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|format| format.word() == text);
        let words = || Self::ALL.iter().map(|format| format.word()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("`{text}` is no format that is read: {}", words()))
    }
}

/// Reads a table whose columns a person has named, with or without a header of its own.
pub(super) fn read_named(text: &str, names: &[String]) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
    let own: Vec<String> = cells(first).into_iter().map(str::to_owned).collect();
    let line = if table::is_data(&own) { 0 } else { line };
    let names = names.to_vec();
    let columns = match smi::is_header(&names) {
        true => smi::columns(line, names)?,
        false => logger::columns(line, names)?,
    };
    table::read(text, columns)
}
