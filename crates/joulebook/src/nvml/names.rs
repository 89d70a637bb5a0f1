//! What a process on a card is called.
//!
//! The driver's name comes first: it is what `nvidia-smi` shows (the executable's full path, or the
//! title the process has given itself), and it is the driver's own answer for its own process ids.
//! Where it has none, `/proc` is asked. A bare Python interpreter says nothing about whose work it
//! is, so its script or module is added. Arguments beyond that are never shown: they hold keys.

use std::{fs, path::Path};

use nvml_wrapper::Nvml;

/// The name of a process, as far as it can be seen.
pub(super) fn name_of(nvml: &Nvml, pid: u32) -> String {
    process_name(nvml.sys_process_name(pid, 1024).ok(), pid)
}

/// The name of a process that the driver calls so.
pub(crate) fn process_name(driver: Option<String>, pid: u32) -> String {
    let driver = driver.filter(|name| is_name(name));
    let (arguments, executable) = of_system(pid);
    compose(driver, &arguments, executable.as_deref())
        .unwrap_or_else(|| format!("process {pid} of unknown name"))
}

/// The program of a command line, and the script or module where it is an interpreter's.
pub(crate) fn program_of(command: &str) -> String {
    let arguments: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    compose(None, &arguments, None).unwrap_or_default()
}

/// The driver writes a dash or a remark in brackets where it has no name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "-" && !name.starts_with('[')
}

fn of_system(pid: u32) -> (Vec<String>, Option<String>) {
    let folder = Path::new("/proc").join(pid.to_string());
    let arguments = fs::read(folder.join("cmdline")).unwrap_or_default();
    let executable = fs::read_link(folder.join("exe")).ok();
    (
        arguments
            .split(|byte| *byte == 0)
            .map(|argument| String::from_utf8_lossy(argument).trim().to_owned())
            .take_while(|argument| !argument.is_empty())
            .collect(),
        // The system marks a program whose file was replaced while it runs.
        executable.map(|path| path.to_string_lossy().trim_end_matches(" (deleted)").to_owned()),
    )
}

fn compose(
    driver: Option<String>,
    arguments: &[String],
    executable: Option<&str>,
) -> Option<String> {
    let own = match (arguments.first(), executable) {
        (Some(title), Some(path)) if !title.starts_with('/') && is_same(title, path) => {
            Some(path.to_owned())
        }
        (Some(title), _) => Some(title.clone()),
        (None, path) => path.map(str::to_owned),
    };
    let name = driver.or_else(|| own.clone())?;
    let is_python = base(&name).starts_with("python");
    // The driver's process id may not be this namespace's: only a /proc entry of the same program
    // may add to the driver's name.
    let is_own = own.is_some_and(|own| is_same(&name, &own));
    Some(match script(arguments) {
        Some(script) if is_python && is_own => format!("{name} {script}"),
        _ => name,
    })
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// True of `python3` and `/usr/bin/python3.12`.
fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (base(left), base(right));
    left.starts_with(right) || right.starts_with(left)
}

/// The script or module of a Python command line.
fn script(arguments: &[String]) -> Option<String> {
    let mut rest = arguments.iter().skip(1);
    loop {
        match rest.next()?.as_str() {
            "-m" => return rest.next().map(|module| format!("-m {module}")),
            "-c" => return None,
            "-W" | "-X" => {
                rest.next();
            }
            option if option.starts_with('-') => {}
            script => return Some(script.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(driver: Option<&str>, arguments: &[&str], executable: Option<&str>) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        compose(driver.map(str::to_owned), &arguments, executable)
    }

    #[test]
    fn a_title_is_kept_and_a_relative_name_becomes_a_path() {
        let python = Some("/usr/bin/python3.12");
        assert_eq!(name(None, &["VLLM::EngineCore"], python).unwrap(), "VLLM::EngineCore");
        let server = Some("/opt/llama/llama-server");
        assert_eq!(
            name(None, &["./llama-server", "-m", "x.gguf"], server).unwrap(),
            "/opt/llama/llama-server"
        );
        assert_eq!(name(None, &[], server).unwrap(), "/opt/llama/llama-server");
        assert_eq!(name(None, &[], None), None);
    }

    #[test]
    fn a_python_server_is_named_by_its_module_or_script_and_no_key_is_shown() {
        let python = Some("/usr/bin/python3.12");
        let module = ["python3", "-u", "-m", "vllm.entrypoints.openai", "--api-key", "secret"];
        assert_eq!(
            name(None, &module, python).unwrap(),
            "/usr/bin/python3.12 -m vllm.entrypoints.openai"
        );
        let script = ["/usr/bin/python3", "-X", "dev", "/usr/local/bin/vllm", "serve", "secret"];
        assert_eq!(
            name(Some("/usr/bin/python3"), &script, python).unwrap(),
            "/usr/bin/python3 /usr/local/bin/vllm"
        );
        assert_eq!(name(None, &["python3", "-c", "import x"], python).as_deref(), python);
    }

    #[test]
    fn what_other_hosts_are_told_holds_no_key() {
        let told = program_of("/usr/bin/python3 -m vllm.entrypoints --api-key secret");
        assert_eq!(told, "/usr/bin/python3 -m vllm.entrypoints");
        assert_eq!(program_of("bash -c curl secret"), "bash");
        assert_eq!(program_of(""), "");
    }

    #[test]
    fn the_driver_comes_first_and_another_process_of_that_number_adds_nothing() {
        assert_eq!(
            name(Some("/usr/bin/python3"), &["bash", "run.sh"], Some("/usr/bin/bash")).unwrap(),
            "/usr/bin/python3"
        );
        assert_eq!(name(Some("ollama"), &["bash"], None).unwrap(), "ollama");
        assert!(!is_name("-") && !is_name("[Not Found]") && !is_name(""));
    }
}
