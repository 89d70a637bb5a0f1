use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn machine(scenario: &str) -> Machine {
    Machine::new(Scenario::parse(scenario).unwrap())
}

fn says(scenario: &str, line: &str) -> Result<String, Ends> {
    answer(&machine(scenario), &ask::parse(&words(line))?, true)
}

const TWO: &str = "card 0\n idle 70.125\n card 1\n idle 80\n instant window_ms=0\n proc 0 inf 4242 \
                   1800 /opt/run, v2/serve --ids 1,2\n proc 0 inf 7 -1 other";

#[test]
fn a_query_has_the_tools_columns_units_and_order() {
    let text = says(
        TWO,
        "--query-gpu=index,gpu_uuid,power.draw,power.limit,clocks.sm,\
         clocks_event_reasons.sw_power_cap,memory.used --format=csv",
    );
    assert_eq!(
        text.unwrap(),
        "index, uuid, power.draw [W], power.limit [W], clocks.current.sm [MHz], \
         clocks_event_reasons.sw_power_cap, memory.used [MiB]\n\
         0, GPU-1ab00000-0000-4000-8000-000000000000, 70.12 W, 700.00 W, 1980 MHz, Not Active, 4 \
         MiB\n\
         1, GPU-1ab00000-0000-4000-8000-000000000001, 80.00 W, 700.00 W, 1980 MHz, Not Active, \
         1804 MiB\n"
    );
    let text = says(TWO, "-i 1 --query-gpu=index,power.draw --format=csv,nounits");
    assert_eq!(text.unwrap(), "index, power.draw [W]\n1, 80.00\n");
    let text = says(TWO, "--id=0000:18:00.0 --query-gpu=index --format=csv,noheader");
    assert_eq!(text.unwrap(), "0\n");
    let stamped = says(TWO, "--query-gpu=timestamp --format=csv,noheader -i 0").unwrap();
    let shape: String =
        stamped.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter }).collect();
    assert_eq!(shape, "9999/99/99 99:99:99.999\n");
}

#[test]
fn what_the_driver_does_not_know_is_refused_in_its_words() {
    let query = "--query-gpu=index,power.draw.average --format=csv";
    assert!(says(TWO, query).is_ok());
    let ends = says(&format!("driver 515.65.01\n{TWO}"), query).unwrap_err();
    assert_eq!(
        (ends.code, ends.says.as_str()),
        (2, "Field \"power.draw.average\" is not a valid field to query.\n\n")
    );
    assert_eq!(says(TWO, "--query-gpu=index --format=csv -i 7").unwrap_err().code, 6);
    assert_eq!(says(TWO, "--query-gpu=index").unwrap_err().code, 2);
    assert_eq!(says(TWO, "--frobnicate").unwrap_err().code, 2);
}

#[test]
fn each_failure_has_its_word_or_sentence() {
    let cell = |fault: &str| {
        says(
            &format!("card 0\n fault 0 inf {fault}"),
            "--query-gpu=power.draw --format=csv,noheader",
        )
    };
    assert_eq!(cell("power notsupported").unwrap(), "[N/A]\n");
    assert_eq!(cell("power unknown").unwrap(), "[Unknown Error]\n");
    assert_eq!(cell("power resetreq").unwrap(), "[GPU requires reset]\n");
    assert_eq!(cell("smi.power.draw text ERR!").unwrap(), "ERR!\n");
    assert_eq!(cell("smi.garbage x what is this").unwrap(), "what is this\n");
    let ends = cell("init nodriver").unwrap_err();
    assert_eq!(ends.code, 9);
    assert!(ends.says.contains("couldn't communicate with the NVIDIA driver"));
    assert_eq!(cell("init mismatch").unwrap_err().code, 18);
    let ends = cell("handle lost").unwrap_err();
    assert!(ends.code == 15 && ends.says.contains("GPU is lost"), "{ends:?}");
}

#[test]
fn processes_are_listed_in_each_form() {
    let query = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv";
    assert_eq!(
        says(TWO, query).unwrap(),
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n\
         GPU-1ab00000-0000-4000-8000-000000000001, 4242, /opt/run, v2/serve --ids 1,2, 1800 MiB\n\
         GPU-1ab00000-0000-4000-8000-000000000001, 7, other, [N/A]\n"
    );
    assert_eq!(says("card 0\n fault 0 inf procs timeout", query).unwrap_err().code, 1);
    let text = says(TWO, "pmon -c 1 -s m").unwrap();
    assert!(text.contains("4242     C   1800") && text.contains("0           -     -"), "{text}");
    let text = says(TWO, "-q -x").unwrap();
    assert!(text.contains("<instant_power_draw>80.00 W</instant_power_draw>"), "{text}");
    assert!(text.contains("<used_memory>N/A</used_memory>"), "{text}");
    assert!(says(TWO, "-L").unwrap().starts_with("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1ab0"));
    assert!(says(TWO, "").unwrap().contains("80.00 W / 700 W"));
}

#[test]
fn loops_in_seconds_and_milliseconds() {
    let every = |line: &str| {
        ask::parse(&words(&format!("--query-gpu=index --format=csv {line}"))).map(|ask| ask.every)
    };
    use std::time::Duration;
    assert_eq!(every(""), Ok(None));
    for (line, ms) in
        [("-lms 100", 100), ("--loop-ms=250", 250), ("-l 2", 2000), ("--loop=1", 1000)]
    {
        assert_eq!(every(line), Ok(Some(Duration::from_millis(ms))), "{line}");
    }
    assert_eq!(every("-lms soon").unwrap_err().code, 2);
}
