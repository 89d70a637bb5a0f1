//! A journal in a file that is written on from one start of the program to the next.
//!
//! Decides what a crash has left: a last line without its end is cut off (what it told of was never
//! wholly written), and one that lost only its newline gets it back. All before it is read and
//! proved, so that the next book begins with the right number.
//!
//! Refused: a file that is no journal, one that does not balance (whatever is written behind that
//! could not be proved), one that somebody else is writing.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{super::Audit, Journal};

/// A journal in a file: buffered, and brought to the disk when it is closed.
#[derive(Debug)]
pub struct JournalFile {
    end: End,
    numbers: BTreeMap<String, u64>,
    mended: Option<Mended>,
}

/// What was cut off the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The number of the line, from 1.
    pub line: u64,
    /// How long it was.
    pub bytes: u64,
}

/// Where the next line is written; what fails there names the file.
#[derive(Debug)]
struct End {
    file: BufWriter<File>,
    path: PathBuf,
}

impl JournalFile {
    /// Opens a file at its end, and makes it where there is none; mends what a crash has left there.
    pub fn append(path: &Path) -> io::Result<Self> {
        let name = path.display();
        let refuse = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let what = format!("{name} is written by another program: use a file of your own");
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
            }
            // Some file systems know no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut audit = Audit::new();
        audit
            .read(&mut BufReader::with_capacity(1 << 20, &file))
            .map_err(|fault| refuse(format!("{name}:{fault}: begin another file")))?;
        if let Some(broken) = audit.broken() {
            return Err(refuse(format!(
                "{name}:{}: card {}: {}: keep it for joulebook audit, and begin another file",
                broken.line, broken.card, broken.what
            )));
        }
        let mended = audit.cut().map(|cut| Mended { line: cut.line, bytes: cut.bytes });
        if let Some(cut) = audit.cut() {
            file.set_len(cut.from_byte)?;
            file.sync_all()?;
            tracing::warn!(
                "{name}:{}: the last line was cut, as a crash leaves it; its {} bytes were removed",
                cut.line,
                cut.bytes
            );
        } else if audit.lacks_newline() {
            file.write_all(b"\n")?;
        }
        let numbers = audit.cards().map(|(card, it)| (card.to_owned(), it.next_number())).collect();
        Ok(Self { end: End { file: BufWriter::new(file), path: path.to_owned() }, numbers, mended })
    }

    /// What was cut off its end.
    pub const fn mended(&self) -> Option<Mended> {
        self.mended
    }
}

impl From<JournalFile> for Journal {
    fn from(file: JournalFile) -> Self {
        Self { numbers: file.numbers, ..Self::to(file.end) }
    }
}

impl End {
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(&error))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let ended = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        if let Err(error) = ended {
            let path = self.path.display();
            tracing::warn!(
                "the end of the journal may not have reached the disk: {path}: {error}; joulebook \
                 audit says how far it goes"
            );
        }
    }
}
