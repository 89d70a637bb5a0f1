//! The tree of processes, and who listens on a port, as Linux shows them under `/proc`.
//!
//! What cannot be read is absent. The process ids are those of this process's namespace: inside a
//! container they may differ from the driver's.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use joulebook_core::Fault;

use super::Ancestry;

/// The processes under `/proc`.
#[derive(Clone, Debug)]
pub struct Processes {
    root: PathBuf,
}

impl Default for Processes {
    fn default() -> Self {
        Self::under("/proc")
    }
}

impl Processes {
    /// Under another folder of that form.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The processes that listen on a TCP port of this network namespace. `Absent`: nobody does;
    /// `Permission`: somebody does, and it cannot be seen who.
    pub fn listening_on(&self, port: u16) -> Result<Vec<u32>, Fault> {
        let mut sockets: BTreeSet<String> = BTreeSet::new();
        for name in ["tcp", "tcp6"] {
            let table = fs::read_to_string(self.root.join("net").join(name)).unwrap_or_default();
            let inodes = table.lines().filter_map(|line| listener(line, port));
            sockets.extend(inodes.map(|inode| format!("socket:[{inode}]")));
        }
        if sockets.is_empty() {
            return Err(Fault::Absent);
        }
        let holders: Vec<u32> = self.pids().filter(|pid| self.holds_any(*pid, &sockets)).collect();
        if holders.is_empty() { Err(Fault::Permission) } else { Ok(holders) }
    }

    fn of(&self, pid: u32) -> PathBuf {
        self.root.join(pid.to_string())
    }

    fn pids(&self) -> impl Iterator<Item = u32> {
        fs::read_dir(&self.root)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }

    fn holds_any(&self, pid: u32, sockets: &BTreeSet<String>) -> bool {
        let Ok(files) = fs::read_dir(self.of(pid).join("fd")) else { return false };
        files
            .flatten()
            .any(|file| fs::read_link(file.path()).is_ok_and(|target| is_one_of(&target, sockets)))
    }
}

fn is_one_of(target: &Path, sockets: &BTreeSet<String>) -> bool {
    target.to_str().is_some_and(|target| sockets.contains(target))
}

/// The inode of a line of the table of sockets, where it listens on the port.
fn listener(line: &str, port: u16) -> Option<&str> {
    const LISTEN: &str = "0A";
    let mut columns = line.split_whitespace();
    let local = columns.nth(1)?;
    let state = columns.nth(1)?;
    let inode = columns.nth(5)?;
    let (_, number) = local.rsplit_once(':')?;
    (state == LISTEN && u16::from_str_radix(number, 16) == Ok(port)).then_some(inode)
}

impl Ancestry for Processes {
    fn parent(&self, pid: u32) -> Option<u32> {
        let stat = fs::read_to_string(self.of(pid).join("stat")).ok()?;
        // The name in brackets may hold anything, brackets too: what follows the last one counts.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    }

    fn name(&self, pid: u32) -> Option<String> {
        let command = fs::read(self.of(pid).join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(words.trim().to_owned()).filter(|words| !words.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1
   1: 0100007F:1F40 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1
   2: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4244 1
";

    #[test]
    fn reads_parents_whatever_the_name_holds() {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("12");
        fs::create_dir(&process).unwrap();
        fs::write(process.join("stat"), "12 (odd ) name) S 7 12 12 0 -1").unwrap();
        fs::write(process.join("cmdline"), "vllm\0serve\0").unwrap();
        let processes = Processes::under(folder.path());
        assert_eq!(processes.parent(12), Some(7));
        assert_eq!(processes.name(12).as_deref(), Some("vllm serve"));
        assert_eq!(processes.parent(13), None);
    }

    #[cfg(unix)]
    #[test]
    fn finds_who_listens_and_tells_nobody_from_unseen() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("net")).unwrap();
        fs::write(folder.path().join("net/tcp"), TABLE).unwrap();
        let files = folder.path().join("31/fd");
        fs::create_dir_all(&files).unwrap();
        std::os::unix::fs::symlink("socket:[4242]", files.join("3")).unwrap();
        let other = folder.path().join("32/fd");
        fs::create_dir_all(&other).unwrap();
        std::os::unix::fs::symlink("socket:[4243]", other.join("3")).unwrap();
        let processes = Processes::under(folder.path());
        assert_eq!(processes.listening_on(8000), Ok(vec![31]));
        assert_eq!(processes.listening_on(8001), Err(Fault::Permission));
        assert_eq!(processes.listening_on(8002), Err(Fault::Absent));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sees_this_process_and_its_port() {
        let processes = Processes::default();
        let own = std::process::id();
        assert_eq!(processes.parent(own), Some(std::os::unix::process::parent_id()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(processes.listening_on(port), Ok(vec![own]));
    }
}
