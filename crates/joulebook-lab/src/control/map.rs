//! A file mapped into memory as 64-bit words that several processes share.
//!
//! Every access is one atomic word, so a reader beside a writer sees old words or new ones, never a
//! torn one; a write is seen after all writes before it. Refused: an access past the end.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    path::Path,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

/// A mapped file.
pub(super) struct Map {
    base: NonNull<AtomicU64>,
    words: usize,
    writable: bool,
}

// SAFETY: the map is only ever read and written as atomic words, and unmapped when it is dropped.
#[allow(unsafe_code)]
unsafe impl Send for Map {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Map {}

impl Map {
    /// A new file of that many words, all 0. A file that stood there is replaced, not emptied:
    /// whoever has it mapped keeps what it had.
    pub(super) fn create(path: &Path, words: usize) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.set_len(words as u64 * 8)?;
        Self::of(&file, words, true)
    }

    /// A file that is there; to be written too, where that is allowed.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (file, writable) = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                (File::open(path)?, false)
            }
            file => (file?, true),
        };
        let words = usize::try_from(file.metadata()?.len() / 8).unwrap_or(0);
        Self::of(&file, words, writable)
    }

    #[allow(unsafe_code)]
    fn of(file: &File, words: usize, writable: bool) -> io::Result<Self> {
        if words == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
        }
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a fresh shared mapping of an open file, at an address of the system's choosing;
        // it touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * 8,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is mapped nowhere"))?;
        Ok(Self { base, words, writable })
    }

    /// How many words it has.
    pub(super) const fn words(&self) -> usize {
        self.words
    }

    /// Whether it may be written.
    pub(super) const fn writable(&self) -> bool {
        self.writable
    }

    #[allow(unsafe_code)]
    fn word(&self, at: usize) -> Option<&AtomicU64> {
        // SAFETY: within the mapping, which lives as long as `self`, is page-aligned and is only
        // accessed by atomic words.
        (at < self.words).then(|| unsafe { self.base.add(at).as_ref() })
    }

    /// A word.
    pub(super) fn get(&self, at: usize) -> Option<u64> {
        self.word(at).map(|word| u64::from_le(word.load(Ordering::Acquire)))
    }

    /// Writes a word; nothing happens past the end or in a file that may not be written.
    pub(super) fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.word(at).filter(|_| self.writable) {
            word.store(value.to_le(), Ordering::Release);
        }
    }
}

impl Drop for Map {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.words * 8) };
    }
}
