//! The journal: every transaction of the books, one JSON object a line, appended and never
//! rewritten. A sink that fails is counted and holds nobody up.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

use joulebook_core::ledger::Transaction;
use serde::{Deserialize, Serialize};

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The card whose book it is about.
    pub card: String,
    /// What was moved.
    pub transaction: Transaction,
}

#[derive(Serialize)]
struct LineOf<'a> {
    card: &'a str,
    transaction: &'a Transaction,
}

/// A journal in a file: buffered, and brought to the disk when it is closed.
#[derive(Debug)]
pub struct JournalFile(BufWriter<File>);

/// The owner's side: writes, and counts what could not be written.
pub(super) struct Sink {
    to: Option<Box<dyn Write + Send>>,
    cards: Vec<Arc<str>>,
    line: Vec<u8>,
    pub written: u64,
    pub failed: u64,
}

impl JournalFile {
    /// Opens a file at its end, and makes it where there is none.
    ///
    /// Refused: one that ends in a cut line, as a crash leaves it; a line written behind it would be
    /// glued to it and lost.
    pub fn append(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        if file.seek(SeekFrom::End(0))? > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "{} ends in a cut line, as a crash leaves it: keep it for joulebook audit, and \
                         begin another file",
                        path.display()
                    ),
                ));
            }
        }
        Ok(Self(BufWriter::new(file)))
    }
}

impl Write for JournalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        let ended = self.0.flush().and_then(|()| self.0.get_ref().sync_all());
        if let Err(error) = ended {
            tracing::warn!("the journal could not be brought to the disk: {error}");
        }
    }
}

impl Sink {
    pub fn new(to: Option<Box<dyn Write + Send>>, cards: Vec<Arc<str>>) -> Self {
        Self { to, cards, line: Vec::new(), written: 0, failed: 0 }
    }

    pub fn write(&mut self, lines: impl Iterator<Item = (usize, Transaction)>) {
        for (card, transaction) in lines {
            let (Some(to), Some(card)) = (&mut self.to, self.cards.get(card)) else { continue };
            self.line.clear();
            let line = LineOf { card, transaction: &transaction };
            let written = serde_json::to_writer(&mut self.line, &line)
                .map_err(io::Error::from)
                .and_then(|()| {
                    self.line.push(b'\n');
                    to.write_all(&self.line)
                });
            self.count(written);
        }
    }

    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.to.as_mut().map(Write::flush) {
            self.failed = self.failed.saturating_add(1);
            tracing::debug!("the journal could not be flushed: {error}");
        }
    }

    fn count(&mut self, written: io::Result<()>) {
        match written {
            Ok(()) => self.written = self.written.saturating_add(1),
            Err(error) => {
                if self.failed == 0 {
                    tracing::warn!("the journal cannot be written: {error}");
                }
                self.failed = self.failed.saturating_add(1);
            }
        }
    }
}
