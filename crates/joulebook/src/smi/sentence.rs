//! What the tool means when it prints a sentence instead of a table, or ends without one.

use joulebook_core::Fault;

/// What a failed call meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The driver does not know this field.
    UnknownField(String),
    /// It does not know the question at all.
    UnknownOption,
    /// It failed, and this is our word for it.
    Failed(Fault),
}

/// Reads the tool's sentence and exit code (`None`: it was ended by a signal).
pub fn meaning(text: &str, code: Option<i32>) -> Meaning {
    if let Some(field) = unknown_field(text) {
        return Meaning::UnknownField(field);
    }
    let text = text.to_lowercase();
    let says = |part: &str| text.contains(part);
    let fault = if says("gpu is lost") || says("requires reset") || says("fallen off the bus") {
        Fault::Lost
    } else if says("insufficient permissions") {
        Fault::Permission
    } else if says("couldn't communicate with the nvidia driver")
        || says("version mismatch")
        || says("driver not loaded")
        || says("couldn't find") && says("library")
    {
        Fault::DriverAbsent
    } else if says("failed to initialize nvml") {
        // The container was cut off from its cards: a restart of it helps.
        Fault::AccessLost
    } else if says("no devices were found") || says("not found") {
        Fault::Absent
    } else if says("invalid combination of input arguments") || says("is not recognized") {
        return Meaning::UnknownOption;
    } else {
        of_code(code)
    };
    Meaning::Failed(fault)
}

/// The tool's documented exit codes.
const fn of_code(code: Option<i32>) -> Fault {
    match code {
        Some(3) => Fault::NotSupported,
        Some(4) => Fault::Permission,
        Some(6) => Fault::Absent,
        Some(9 | 12 | 13) => Fault::DriverAbsent,
        Some(15) => Fault::Lost,
        _ => Fault::Unknown,
    }
}

/// `Field "x" is not a valid field to query.`
fn unknown_field(text: &str) -> Option<String> {
    let end = text.find("is not a valid field to query")?;
    let sentence = text.get(..end)?.lines().last()?;
    let name = sentence.trim_start().strip_prefix("Field")?.trim();
    Some(name.trim_matches(['"', '\'', '“', '”']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_has_its_word() {
        for (text, code, fault) in [
            (
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
                Some(9),
                Fault::DriverAbsent,
            ),
            (
                "Failed to initialize NVML: Driver/library version mismatch\nNVML library: 570\n",
                Some(18),
                Fault::DriverAbsent,
            ),
            ("Failed to initialize NVML: Unknown Error\n", Some(255), Fault::AccessLost),
            ("Failed to initialize NVML: Insufficient Permissions\n", Some(4), Fault::Permission),
            (
                "Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.  Reboot \
                 the system to recover this GPU\n",
                Some(15),
                Fault::Lost,
            ),
            ("No devices were found\n", Some(6), Fault::Absent),
            ("", Some(9), Fault::DriverAbsent),
            ("", Some(1), Fault::Unknown),
            ("", None, Fault::Unknown),
        ] {
            assert_eq!(meaning(text, code), Meaning::Failed(fault), "{text:?} {code:?}");
        }
    }

    #[test]
    fn smi_line_shape_11_an_unknown_field_is_named() {
        let field = |text| meaning(text, Some(2));
        let unknown = |name: &str| Meaning::UnknownField(name.to_owned());
        let text = "Field \"clocks_event_reasons.sw_power_cap\" is not a valid field to query.\n\n";
        assert_eq!(field(text), unknown("clocks_event_reasons.sw_power_cap"));
        assert_eq!(field("Field “x.y” is not a valid field to query.\n"), unknown("x.y"));
        assert_eq!(
            field("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"),
            Meaning::UnknownOption
        );
    }
}
