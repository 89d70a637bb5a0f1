//! What `nvidia-smi` prints: its tables, lists, sentences and its XML form.

mod program;
mod stream;

use joulebook::{
    core::{
        Fault, Power,
        estimate::{Missing, Span},
    },
    reader::Process,
    smi::{
        processes::{self, Listed},
        sentence::{Meaning, meaning},
        table::{self, Row},
        xml,
    },
    tenancy::{Rules, Tenancy, decide},
};
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, list, refused, text},
    measured, readings,
};

/// What a loop is asked for where a case does not say.
const COLUMNS: &str = "index,power.draw";
/// … and a single call.
const NAMED: &str = "index,uuid,power.draw";
const BARE: &str = "csv,noheader,nounits";

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    match text(input, "kind")? {
        "smi_csv" => csv(input),
        "smi_stream" => stream::lines(input),
        "smi_stream_timed" => stream::timed(input),
        "smi_sequence" => sequence(input),
        "smi_xml" => xml_card(input),
        "smi_text" => listing(input),
        "fake_smi" => program::answer(input),
        _ => Err(Refused::Unsupported),
    }
}

/// One call's table.
fn csv(input: &Value) -> Result<Answer, Refused> {
    let (query, format) = (text(input, "query")?, text(input, "format")?);
    let stdout = text(input, "stdout")?;
    let code = input.get("exit").and_then(Value::as_i64);
    if code != Some(0) {
        return Ok(unread(failed(stdout, code)));
    }
    if query.split(',').any(|column| column.trim() == "pid") {
        return applications(stdout);
    }
    let rows = table::rows(query, format, stdout);
    let mut answer = Answer::new();
    answer.insert("devices".into(), json!(rows.len()));
    answer.insert("rejected".into(), json!(rows.iter().filter(|row| row.is_none()).count()));
    let good: Vec<&Row> = rows.iter().flatten().collect();
    // Of rows that do not say whose they are no card's reading can be made.
    answer.insert("bound".into(), json!(good.iter().all(|row| row.is_bound())));
    let watts = |row: &&Row| draw(row).ok().map(Power::watts);
    if let [row] = good.as_slice() {
        answer.insert("watts".into(), json!(watts(row)));
        answer.insert("memory_used_mib".into(), json!(row.used_mib));
        answer.insert("memory_total_mib".into(), json!(row.total_mib));
        answer.insert("utilization_pct".into(), json!(row.utilization_pct));
        answer.insert("power_limit_w".into(), json!(row.limit.map(Power::watts)));
        answer.insert("error".into(), json!(draw(row).err()));
        // An answer over HTTP needs one reading to be one.
        let readable = draw(row).is_ok() || row.utilization_pct.is_some() || row.used_mib.is_some();
        answer.insert("http_status".into(), json!(if readable { 200 } else { 503 }));
    } else {
        answer.insert("watts".into(), json!(good.iter().map(watts).collect::<Vec<_>>()));
    }
    for row in good.iter().filter(|row| row.index.is_some()) {
        let name = format!("gpu{}", row.index.unwrap_or_default());
        answer.insert(name, Value::Object(of_row(row)));
    }
    Ok(answer)
}

/// What one card's row says of its power.
fn of_row(row: &Row) -> Answer {
    match draw(row) {
        Ok(power) => {
            let mut answer = Answer::new();
            answer.insert("watts".into(), json!(power.watts()));
            answer
        }
        Err(fault) => unread(fault),
    }
}

/// A card that shows no power: the window that would be made of it.
fn unread(fault: Fault) -> Answer {
    let context = measured::context(Span { open_ns: 0, close_ns: 0 }, None, "smi_sampler");
    let mut answer = measured::answer(&Err(Missing::of(fault)), &context, &Value::Null);
    answer.insert("watts".into(), Value::Null);
    answer
}

/// The power of a row, from whichever of its columns there is.
fn draw(row: &Row) -> Result<Power, Fault> {
    [row.draw, row.average, row.instant].into_iter().flatten().next().unwrap_or(Err(Fault::Absent))
}

/// The list of processes on cards.
fn applications(stdout: &str) -> Result<Answer, Refused> {
    let listed = processes::compute_apps(stdout).ok_or_else(|| refused("stdout"))?;
    let mut answer = Answer::new();
    if let [Listed { process, .. }] = listed.as_slice() {
        answer.insert("pid".into(), json!(process.pid));
        answer.insert("process_name".into(), json!(process.name));
        answer.insert("used_mib".into(), json!(process.used_mib));
    }
    answer.insert("processes".into(), json!(named(listed)));
    Ok(answer)
}

/// Calls one after the other: each stands for itself, and a failed one is asked again.
fn sequence(input: &Value) -> Result<Answer, Refused> {
    let mut answer = Answer::new();
    for call in list(input, "calls")? {
        let stdout = text(call, "stdout")?;
        let code = call.get("exit").and_then(Value::as_i64);
        let at = call.get("t").map(readings::cell).ok_or_else(|| refused("calls"))?;
        let said = match code {
            Some(0) => match table::rows(NAMED, BARE, stdout).first() {
                Some(Some(row)) => of_row(row),
                _ => unread(Fault::MalformedRow),
            },
            code => unread(failed(stdout, code)),
        };
        answer.insert(format!("t{at}"), Value::Object(said));
    }
    Ok(answer)
}

/// A card of the XML form, or a part of one.
fn xml_card(input: &Value) -> Result<Answer, Refused> {
    let card = xml::card(text(input, "fragment")?);
    let mut answer = Answer::new();
    let shown = card.power();
    let watts = |power: Option<Result<Power, Fault>>| power.and_then(Result::ok).map(Power::watts);
    answer.insert("watts".into(), json!(watts(shown.map(|(_, power)| power))));
    answer.insert("field".into(), json!(shown.map(|(name, _)| name)));
    answer.insert("error".into(), json!(shown.and_then(|(_, power)| power.err())));
    answer.insert("power_limit_w".into(), json!(card.limit.map(Power::watts)));
    let also = json!({
        "instant": watts(card.instant), "average": watts(card.average), "draw": watts(card.draw),
    });
    answer.insert("also".into(), also);
    Ok(answer)
}

/// A list of processes in a form for people.
fn listing(input: &Value) -> Result<Answer, Refused> {
    if text(input, "cmd")? != "pmon" {
        return Err(Refused::Unsupported);
    }
    let listed = processes::monitor(text(input, "stdout")?);
    let mut answer = Answer::new();
    let Some(listed) = listed else {
        answer.insert("tenancy".into(), json!("unknown"));
        answer.insert("error".into(), json!(Fault::MalformedRow));
        return Ok(answer);
    };
    let resident: Vec<Process> = listed.iter().map(|listed| listed.process.clone()).collect();
    let verdict = decide(Ok(&resident), &Rules::default(), &|_| None);
    let word = match verdict.tenancy {
        Tenancy::Alone => "alone",
        Tenancy::Foreign(_) => "foreign",
        Tenancy::Unknown(_) => "unknown",
    };
    answer.insert("tenancy".into(), json!(word));
    answer.insert("processes".into(), json!(named(listed)));
    Ok(answer)
}

fn named(listed: Vec<Listed>) -> Vec<Process> {
    listed.into_iter().map(|listed| listed.process).collect()
}

/// The power in a row `index, power`.
pub(super) fn watts_of_row(row: &str) -> Option<f64> {
    let rows = table::rows(COLUMNS, BARE, row);
    draw(rows.first()?.as_ref()?).ok().map(Power::watts)
}

/// The processes of `--query-compute-apps=gpu_uuid,pid,process_name,used_memory`.
pub(super) fn compute_apps(text: &str) -> Option<Vec<Process>> {
    processes::compute_apps(text).map(named)
}

/// Why a call failed, by what it printed and its exit code.
pub(super) fn failed(said: &str, code: Option<i64>) -> Fault {
    match meaning(said, code.and_then(|code| i32::try_from(code).ok())) {
        Meaning::Failed(fault) => fault,
        Meaning::UnknownField(_) | Meaning::UnknownOption => Fault::NotSupported,
    }
}
