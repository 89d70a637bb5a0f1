//! The tool's XML form (`-q -x`), as far as it is needed: each card's names, powers, limit,
//! processes.
//!
//! A driver update replaced one element of power by two, so each is looked for by each of its names
//! and the reading says which it was. The text is the tool's own, flat and regular: elements are
//! found by name inside their card, and anything else in it is passed over. A MIG card's instances
//! are inside its element and have no power of their own.

use joulebook_core::{Fault, Power};

use super::processes::memory_mib;
use crate::{identity, reader::Process, replay::cell};

/// A card of the XML form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XmlCard {
    /// PCI address, `0000:65:00.0`.
    pub pci: Option<String>,
    /// The card's UUID.
    pub uuid: Option<String>,
    /// The card's name.
    pub name: Option<String>,
    /// `average_power_draw`; `None`: there is no such element.
    pub average: Option<Result<Power, Fault>>,
    /// `instant_power_draw`.
    pub instant: Option<Result<Power, Fault>>,
    /// `power_draw`, of older drivers.
    pub draw: Option<Result<Power, Fault>>,
    /// The power limit in force.
    pub limit: Option<Power>,
    /// Whether the card is split into instances.
    pub mig: Option<bool>,
    /// Its compute processes.
    pub processes: Vec<Process>,
}

impl XmlCard {
    /// The power that is there, and which it is: the average, the plain draw, the instant.
    pub fn power(&self) -> Option<(&'static str, Result<Power, Fault>)> {
        [("average", self.average), ("draw", self.draw), ("instant", self.instant)]
            .into_iter()
            .find_map(|(name, power)| Some((name, power?)))
    }
}

/// The cards; `None` where the text is no answer of the tool's.
pub fn cards(text: &str) -> Option<Vec<XmlCard>> {
    let log = inside(text, "nvidia_smi_log")?;
    let mut cards = Vec::new();
    let mut rest = log;
    while let Some(begin) = rest.find("<gpu id=\"") {
        let from = rest.get(begin + "<gpu id=\"".len()..)?;
        let (pci, from) = from.split_once('"')?;
        let end = from.find("</gpu>").unwrap_or(from.len());
        let body = from.get(..end)?;
        cards.push(XmlCard { pci: identity::normal_pci(pci), ..card(body) });
        rest = from.get(end..)?;
    }
    Some(cards)
}

/// A card's element, or a part of one.
pub fn card(body: &str) -> XmlCard {
    let word = |name: &str| inside(body, name).map(unescaped).filter(|word| !word.is_empty());
    let readings = ["gpu_power_readings", "power_readings"]
        .into_iter()
        .find_map(|name| inside(body, name))
        .unwrap_or_default();
    let watts = cell::unit("W");
    let power = |name: &str| {
        let text = inside(readings, name)?;
        Some(watts.map_or(Err(Fault::MalformedRow), |watts| cell::power(text, watts)))
    };
    let limit = ["current_power_limit", "enforced_power_limit", "power_limit"]
        .into_iter()
        .find_map(|name| power(name)?.ok())
        .filter(|limit| *limit > Power::ZERO);
    XmlCard {
        pci: None,
        uuid: word("uuid"),
        name: word("product_name"),
        average: power("average_power_draw"),
        instant: power("instant_power_draw"),
        draw: power("power_draw"),
        limit,
        mig: inside(body, "current_mig").and_then(|mode| match mode.trim() {
            "Enabled" => Some(true),
            "Disabled" => Some(false),
            _ => None,
        }),
        processes: processes(body),
    }
}

fn processes(body: &str) -> Vec<Process> {
    let mut rest = inside(body, "processes").unwrap_or_default();
    let mut processes = Vec::new();
    while let Some(one) = inside(rest, "process_info") {
        let field = |name: &str| inside(one, name).map(unescaped);
        let computes = field("type").is_none_or(|kind| kind.contains('C'));
        if let Some(pid) = field("pid").and_then(|pid| pid.parse().ok()).filter(|_| computes) {
            let used_mib = field("used_memory").as_deref().and_then(memory_mib);
            processes.push(Process {
                pid,
                used_mib,
                name: field("process_name").unwrap_or_default(),
            });
        }
        rest = rest.split_once("</process_info>").map_or("", |(_, after)| after);
    }
    processes
}

/// What stands in the first element of that name.
fn inside<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
    let from = text.find(&begin)? + begin.len();
    let rest = text.get(from..)?;
    Some(rest.get(..rest.find(&end)?)?.trim())
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watts(power: Result<Power, Fault>) -> Option<f64> {
        power.ok().map(Power::watts)
    }

    #[test]
    fn smi_line_shape_07_power_is_found_by_each_of_its_names() {
        let new = card(
            "<gpu_power_readings><power_state>P8</power_state><average_power_draw>17.31 \
             W</average_power_draw><instant_power_draw>16.02 W</instant_power_draw>\
             <current_power_limit>220.00 W</current_power_limit></gpu_power_readings>",
        );
        let (field, power) = new.power().unwrap();
        assert_eq!((field, watts(power)), ("average", Some(17.31)));
        assert_eq!(new.instant.and_then(watts), Some(16.02));
        assert_eq!(new.limit, Power::from_watts(220.0));
        let old = card(
            "<power_readings><power_draw>N/A</power_draw><power_limit>[N/A]</power_limit>\
             </power_readings>",
        );
        assert_eq!(old.power(), Some(("draw", Err(Fault::NotSupported))));
        assert_eq!(old.limit, None);
        assert_eq!(card("<x></x>").power(), None);
    }

    #[test]
    fn cards_and_their_processes() {
        let text = "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<gpu id=\"00000000:18:00.0\">\
                    <uuid>GPU-a</uuid><processes><process_info><pid>7</pid><type>C</type>\
                    <process_name>/a &amp; b</process_name><used_memory>12 MiB</used_memory>\
                    </process_info><process_info><pid>8</pid><type>G</type></process_info>\
                    </processes></gpu><gpu id=\"00000000:3B:00.0\"><uuid>GPU-b</uuid></gpu>\
                    </nvidia_smi_log>";
        let cards = cards(text).unwrap();
        assert_eq!(cards.len(), 2);
        assert_eq!(cards[0].pci.as_deref(), Some("0000:18:00.0"));
        let process = Process { pid: 7, used_mib: Some(12), name: "/a & b".to_owned() };
        assert_eq!(cards[0].processes, [process]);
        assert_eq!((cards[1].uuid.as_deref(), cards[1].processes.len()), (Some("GPU-b"), 0));
        assert_eq!(super::cards("NVIDIA-SMI has failed"), None);
        assert_eq!(super::cards("<nvidia_smi_log><gpu id=\"").map(|cards| cards.len()), None);
    }
}
