//! A simulated card as the suite sees a real one: through a driver library, in a process of its
//! own, worked through its control memory.

use std::{env, fs, path::Path, process::Command, sync::Arc};

use joulebook::{clock::now_ns, nvml::LIBRARY_VARIABLE};
use joulebook_lab::{
    Live,
    clock::system_ns,
    control::{Control, ControlledCard, DEFAULT_CAPACITY},
    scenario::ClockKind,
};

use super::work::Work;

const CHILD: &str = "JOULEBOOK_GPU_TEST";
const CONTROL: &str = "FAKEGPU_CONTROL";

/// Work that is a change of the first card's watts.
pub struct LabWork {
    control: Arc<Control>,
    card: ControlledCard,
    idle_w: f64,
    loaded_w: f64,
    /// The lab's clock less the library's, ns.
    ahead_ns: i64,
}

impl LabWork {
    /// A card that draws so much at rest, and so much at work.
    pub fn new(idle_w: f64, loaded_w: f64) -> Self {
        let path = env::var_os(CONTROL).unwrap();
        let path = Path::new(&path);
        let control = Control::create(path, 1, DEFAULT_CAPACITY, ClockKind::Monotonic).unwrap();
        control.set_watts(0, idle_w).unwrap();
        let card = ControlledCard::new(path.to_owned(), ClockKind::Monotonic, 0, 0);
        let before_ns = now_ns();
        let ahead_ns = system_ns(ClockKind::Monotonic) - before_ns.midpoint(now_ns()) as i64;
        Self { control: Arc::new(control), card, idle_w, loaded_w, ahead_ns }
    }

    fn set(&self, watts: f64) -> Result<u64, String> {
        let set_ns = self.control.set_watts(0, watts).map_err(|error| error.to_string())?;
        Ok((set_ns - self.ahead_ns) as u64)
    }
}

impl Work for LabWork {
    fn begin(&mut self) -> Result<u64, String> {
        self.set(self.loaded_w)
    }

    fn end(&mut self) -> Result<u64, String> {
        self.set(self.idle_w)
    }

    fn edge_ns(&self) -> u64 {
        50_000
    }

    fn words(&self) -> String {
        format!("a simulated card told to draw {} W", self.loaded_w)
    }

    fn truth_j(&self, open_ns: u64, close_ns: u64) -> Option<f64> {
        let joules = |at_ns: u64| {
            let at_ns = at_ns as i64 + self.ahead_ns;
            self.card.last_at(at_ns).map(|change| change.joules_at(at_ns))
        };
        Some(joules(close_ns)? - joules(open_ns)?)
    }
}

/// Runs the body in a process of its own, whose driver shows the scenario; `name` is the test's.
/// What the body prints to stderr is shown when it fails.
pub fn run(name: &str, scenario: &str, body: impl FnOnce()) {
    if env::var_os(CHILD).is_some() {
        return body();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario");
    fs::write(&file, scenario).unwrap();
    let (_, test) = name.split_once("::").unwrap();
    let child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("FAKEGPU_SCENARIO", &file)
        .env(CONTROL, folder.path().join("control"))
        .env(LIBRARY_VARIABLE, joulebook_lab::driver::library().unwrap())
        .env_remove("FAKEGPU_EPOCH_NS")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "the test of that name ran: {said}\n{errors}");
}
