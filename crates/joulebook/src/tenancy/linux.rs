//! The tree of processes, and who listens on a port, as Linux shows them under `/proc`.
//!
//! What cannot be read is absent. The process ids are those of this process's namespace: inside a
//! container they may differ from the driver's.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, ErrorKind},
    path::{Path, PathBuf},
};

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

    /// The TCP ports that a process listens on. `None` where that cannot be seen: another user's
    /// process, or one in a network namespace (a container) whose ports are not this host's.
    pub fn listens_on(&self, pid: u32) -> Option<Vec<u16>> {
        let namespace = |of: PathBuf| fs::read_link(of.join("ns/net")).ok();
        if namespace(self.of(pid)) != namespace(self.root.join("self")) {
            return None;
        }
        let files = fs::read_dir(self.of(pid).join("fd")).ok()?;
        let sockets: BTreeSet<PathBuf> =
            files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).collect();
        if !sockets.iter().any(|link| link.to_string_lossy().starts_with("socket:")) {
            return Some(Vec::new());
        }
        let mut ports = BTreeSet::new();
        for name in ["tcp", "tcp6"] {
            for (port, inode) in self.listeners(name)? {
                if sockets.contains(Path::new(&format!("socket:[{inode}]"))) {
                    ports.insert(port);
                }
            }
        }
        Some(ports.into_iter().collect())
    }

    /// The listening sockets of a table; `None` where it cannot be read. The kernel lists those
    /// first, and the rest may be tens of thousands of connections, which take it longer to write
    /// than a recorder has to spare.
    fn listeners(&self, table: &str) -> Option<Vec<(u16, String)>> {
        let file = match fs::File::open(self.root.join("net").join(table)) {
            Ok(file) => file,
            // A kernel without IPv6.
            Err(error) if table == "tcp6" && error.kind() == ErrorKind::NotFound => {
                return Some(Vec::new());
            }
            Err(_) => return None,
        };
        let mut lines = BufReader::new(file).lines();
        let _title = lines.next().transpose().ok()?;
        let mut listening = Vec::new();
        for line in lines {
            match listener(&line.ok()?) {
                Some(found) => listening.push(found),
                None => break,
            }
        }
        Some(listening)
    }

    fn of(&self, pid: u32) -> PathBuf {
        self.root.join(pid.to_string())
    }
}

/// The port of a line of the table of sockets, where it listens, and the socket's inode.
fn listener(line: &str) -> Option<(u16, String)> {
    const LISTEN: &str = "0A";
    let mut columns = line.split_whitespace();
    let local = columns.nth(1)?;
    let state = columns.nth(1)?;
    let inode = columns.nth(5)?;
    let (_, number) = local.rsplit_once(':')?;
    let port = u16::from_str_radix(number, 16).ok()?;
    (state == LISTEN).then(|| (port, inode.to_owned()))
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

    fn ports(&self, pid: u32) -> Option<Vec<u16>> {
        self.listens_on(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1
   1: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4244 1
   2: 0100007F:1F40 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1
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
        assert_eq!(processes.listens_on(31), Some(vec![8000]));
        assert_eq!(processes.listens_on(32), Some(Vec::new()), "it is connected, and no listener");
        assert_eq!(processes.listens_on(33), None, "not seen is not none");
        // Neither is a table that cannot be read; the newer one may be missing, the older may not.
        let newer = folder.path().join("net/tcp6");
        fs::create_dir(&newer).unwrap();
        assert_eq!(processes.listens_on(32), None);
        fs::remove_dir(&newer).unwrap();
        let (older, aside) = (folder.path().join("net/tcp"), folder.path().join("aside"));
        fs::rename(&older, &aside).unwrap();
        assert_eq!(processes.listens_on(32), None);
        fs::rename(&aside, &older).unwrap();
        // A container's ports are not this host's.
        for (process, namespace) in [("self", "net:[1]"), ("31", "net:[2]"), ("32", "net:[1]")] {
            fs::create_dir_all(folder.path().join(process).join("ns")).unwrap();
            let link = folder.path().join(process).join("ns/net");
            std::os::unix::fs::symlink(namespace, link).unwrap();
        }
        assert_eq!(processes.listens_on(31), None);
        assert_eq!(processes.listens_on(32), Some(Vec::new()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sees_this_process_and_its_port() {
        let processes = Processes::default();
        let own = std::process::id();
        assert_eq!(processes.parent(own), Some(std::os::unix::process::parent_id()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(processes.listens_on(own).is_some_and(|ports| ports.contains(&port)));
    }
}
