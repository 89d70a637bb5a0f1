//! The tool's other forms: `-L`, `-q -x`, and the table without arguments. Only what meters read.

use super::{
    cells::{Cell, major},
    fields::power,
};
use crate::{
    card::{Model, PowerRegister},
    machine::{Machine, Spent},
    scenario::Refusal,
};

/// `-L`.
pub(super) fn list(chosen: &[&Model]) -> String {
    let line = |model: &&Model| {
        let card = model.card();
        format!("GPU {}: {} (UUID: {})\n", model.index(), card.name, card.uuid)
    };
    chosen.iter().map(line).collect()
}

/// `-q -x`, with the elements that a driver of this version has for power.
pub(super) fn xml(machine: &Machine, chosen: &[&Model]) -> String {
    let driver = &machine.scenario().driver;
    let now = jiff::ZonedDateTime::now().strftime("%a %b %e %H:%M:%S %Y").to_string();
    let cards: String = chosen.iter().map(|model| card(machine, model)).collect();
    format!(
        "<?xml version=\"1.0\" ?>\n\
         <!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n\
         <nvidia_smi_log>\n\t<timestamp>{now}</timestamp>\n\
         \t<driver_version>{}</driver_version>\n\
         \t<attached_gpus>{}</attached_gpus>\n{cards}</nvidia_smi_log>\n",
        escaped(driver),
        chosen.len(),
    )
}

fn card(machine: &Machine, model: &Model) -> String {
    let card = model.card();
    let driver = major(&machine.scenario().driver);
    let bare = |cell: &Cell| cell.text(true, driver).trim_matches(['[', ']']).to_owned();
    let watts = |register| bare(&power(machine, model, register, false));
    let readings = if driver >= 570 {
        format!(
            "\t\t\t<average_power_draw>{}</average_power_draw>\n\
             \t\t\t<instant_power_draw>{}</instant_power_draw>\n",
            watts(PowerRegister::Average),
            watts(PowerRegister::Instant)
        )
    } else {
        format!("\t\t\t<power_draw>{}</power_draw>\n", watts(PowerRegister::Average))
    };
    let memory = machine.ask(Spent::Nothing, |t_ns| model.memory(t_ns));
    let total = Cell::of(memory, |memory| memory.total_mib.to_string(), "MiB");
    let used = Cell::of(memory, |memory| memory.used_mib.to_string(), "MiB");
    let busy = machine.ask(Spent::Nothing, |t_ns| model.utilization(t_ns));
    let busy = Cell::of(busy, |busy| busy.gpu.to_string(), "%");
    let residents = machine.ask(Spent::Nothing, |t_ns| model.residents(t_ns)).unwrap_or_default();
    let processes: String = residents
        .into_iter()
        .map(|resident| {
            let used = resident.used_mib.ok_or(Refusal::NotSupported);
            let used = bare(&Cell::of(used, |used| used.to_string(), "MiB"));
            format!(
                "\t\t\t<process_info>\n\t\t\t\t<pid>{}</pid>\n\t\t\t\t<type>C</type>\n\
                 \t\t\t\t<process_name>{}</process_name>\n\
                 \t\t\t\t<used_memory>{used}</used_memory>\n\t\t\t</process_info>\n",
                resident.pid,
                escaped(&resident.name),
            )
        })
        .collect();
    format!(
        "\t<gpu id=\"{}\">\n\t\t<product_name>{}</product_name>\n\t\t<uuid>{}</uuid>\n\
         \t\t<fb_memory_usage>\n\t\t\t<total>{}</total>\n\t\t\t<used>{}</used>\n\
         \t\t</fb_memory_usage>\n\t\t<utilization>\n\t\t\t<gpu_util>{}</gpu_util>\n\
         \t\t</utilization>\n\t\t<gpu_power_readings>\n\t\t\t<power_state>P0</power_state>\n\
         {readings}\t\t\t<current_power_limit>{:.2} W</current_power_limit>\n\
         \t\t</gpu_power_readings>\n\t\t<processes>\n{processes}\t\t</processes>\n\t</gpu>\n",
        card.pci,
        escaped(&card.name),
        escaped(&card.uuid),
        bare(&total),
        bare(&used),
        bare(&busy),
        card.limit.w,
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The table for people, in brief.
pub(super) fn table(machine: &Machine, chosen: &[&Model]) -> String {
    let driver = &machine.scenario().driver;
    let rule = format!("+{}+\n", "-".repeat(89));
    let framed = |text: String| format!("| {text:<87} |\n");
    let mut table = format!("{rule}{}", framed(format!("NVIDIA-SMI {driver}  Driver {driver}")));
    table.push_str(&rule);
    for model in chosen {
        let cell = power(machine, model, PowerRegister::Average, false);
        let (card, watts) = (model.card(), cell.text(true, major(driver)));
        let text = format!(
            "{:>3}  {}  {}  {watts} / {:.0} W",
            model.index(),
            card.name,
            card.pci,
            card.limit.w
        );
        table.push_str(&framed(text));
    }
    table + &rule
}
