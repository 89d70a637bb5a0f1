//! `audit`: what balances, the first entry that does not, and what is no journal.

use std::{fmt::Write, io::Write as _, process::Stdio};

use joulebook::{
    books::{Line, What},
    core::ledger::{
        Account, Entry, Ledger, Phase, Reason, RequestId, Transaction,
        settle::{Around, Carry, Others, Presence, Rest, Rho, Split, Tick, settle},
    },
};
use serde_json::Value;

use super::bench::{Bench, Said, said};

/// Transactions of a card: so many ticks of 1 J over a floor of 3 W, two requests in each.
fn booked(card: &str, ticks: u64) -> Vec<String> {
    let mut ledger = Ledger::new();
    let mut lines = Vec::new();
    let present = [(1, 10), (2, 30)].map(|(id, decode_tokens)| Presence {
        request: RequestId(id),
        resident_ns: 100_000_000,
        prefill_weight: 0,
        decode_tokens,
    });
    let around = Around {
        present: &present,
        others: &Others::Nobody,
        rest: Some(Rest { power_uw: 3_000_000, off_uw: None, model_loaded: true }),
        rho: Rho::default(),
        split: Split::Weighted,
    };
    let mut write = |ledger: &mut Ledger, transaction: Transaction| {
        ledger.apply(&transaction).unwrap();
        let line = Line::moved(card, transaction);
        lines.push(serde_json::to_string(&line).unwrap());
    };
    for number in 0..ticks {
        let (begin_ns, end_ns) = (number * 100_000_000, (number + 1) * 100_000_000);
        let tick = Tick { begin_ns, end_ns, counted_uj: 1_000_000, unplaced: false };
        let post = ledger.posting(end_ns, tick.counted_uj);
        write(&mut ledger, post);
        let settled = ledger.settling(end_ns, &settle(tick, &around, &mut Carry::default()).shares);
        write(&mut ledger, settled);
    }
    lines
}

fn joined(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// What the program says of this journal.
fn audit(journal: impl AsRef<[u8]>, more: &[&str]) -> Said {
    let bench = Bench::without_cards();
    let path = bench.path("journal");
    std::fs::write(&path, journal).unwrap();
    said(bench.joulebook(["audit", path.to_str().unwrap()]).args(more))
}

fn object(said: &Said) -> Value {
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn what_balances_is_shown_by_card_and_account() {
    let lines = [booked("GPU-a", 10), booked("GPU-b", 4)].concat();
    let said = audit(joined(&lines), &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for words in ["card GPU-a", "idle/resident", "3.000000", "7.000000", "10.000000", "card GPU-b"]
    {
        assert!(said.out.contains(words), "`{words}` is not in\n{}", said.out);
    }
    assert!(said.out.contains("20 transactions, 2 requests"), "{}", said.out);
    assert!(said.out.ends_with("balances: 28 transactions, imbalance 0 µJ\n"), "{}", said.out);
}

#[test]
fn the_object_says_the_same_numbers() {
    let text = joined(&booked("GPU-a", 10));
    let answer = object(&audit(&text, &["--json"]));
    assert_eq!((&answer["balances"], &answer["transactions"]), (&true.into(), &20.into()));
    let card = &answer["cards"][0];
    assert_eq!((&card["card"], &card["requests"]), (&"GPU-a".into(), &2.into()));
    let accounts: Vec<(&str, f64)> = card["accounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["account"].as_str().unwrap(), it["joules"].as_f64().unwrap()))
        .collect();
    assert_eq!(accounts, [("idle/resident", 3.0), ("requests, decode", 7.0)]);
    assert_eq!(card["sum_joules"].as_f64(), Some(10.0));
    assert_eq!(card["register_joules"].as_f64(), Some(10.0));
    assert_eq!(card["imbalance_joules"].as_f64(), Some(0.0));
    let page = audit(&text, &["--requests"]).out;
    for (account, joules) in [("request/1/decode", "1.750000"), ("request/2/decode", "5.250000")] {
        let row = page.lines().find(|row| row.contains(account)).unwrap();
        assert!(row.contains(joules), "{row}");
    }
}

#[test]
fn the_first_entry_that_breaks_the_law_is_named() {
    let honest = [booked("GPU-a", 3), booked("GPU-b", 3)].concat();
    let forged = |from: &str, to: &str| {
        let mut lines = honest.clone();
        // The settlement of GPU-b's second tick.
        assert!(lines[9].contains(from), "{}", lines[9]);
        lines[9] = lines[9].replace(from, to);
        lines[11] = lines[11].replace(from, to);
        audit(joined(&lines), &[])
    };
    for (from, to, what) in [
        ("300000", "300001", "it gives 1 µJ more than it takes"),
        ("525000", "524000", "it takes 1000 µJ more than it gives"),
        (r#""number":3"#, r#""number":4"#, "number 3 should come here"),
        (r#""suspense""#, r#""gap""#, "moves `gap`"),
        (r#""suspense""#, r#""register""#, "moves `register`"),
        (r#""suspense""#, r#""request/9/decode""#, "moves `request/9/decode`"),
        (r#""settle""#, r#""correct""#, "moves `suspense`"),
    ] {
        let said = forged(from, to);
        assert_eq!(said.code, Some(1), "{to}: {}", said.err);
        let number = if to.contains("number") { 4 } else { 3 };
        let named = format!("journal:10: card GPU-b: transaction {number} ");
        assert!(said.err.contains(&named), "{to}: {}", said.err);
        assert!(said.err.contains(what), "{to}: {}", said.err);
        assert!(said.out.contains("the 9 transactions before line 10 hold"), "{}", said.out);
    }
    // A line that is gone, one that is there twice, two that changed places.
    let without = [&honest[..2], &honest[3..]].concat();
    let twice = [&honest[..3], &honest[2..]].concat();
    let mut swapped = honest.clone();
    swapped.swap(1, 2);
    for (lines, at) in [(without, 3), (twice, 4), (swapped, 2)] {
        let said = audit(joined(&lines), &["--json"]);
        let answer = object(&said);
        assert_eq!((said.code, &answer["broken"]["line"]), (Some(1), &at.into()), "{answer}");
        assert_eq!(answer["balances"], false);
    }
}

#[test]
fn more_than_an_account_holds_is_not_taken() {
    let mut lines = booked("GPU-a", 2);
    lines.push(
        r#"{"card":"GPU-a","transaction":{"number":4,"reason":"correct","tick_ns":1,"entries":[{"account":"request/1/decode","amount_uj":-9000000},{"account":"request/2/decode","amount_uj":9000000}]}}"#
            .to_owned(),
    );
    let said = audit(joined(&lines), &[]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("takes more from `request/1/decode`"), "{}", said.err);
}

#[test]
fn a_program_that_was_started_again_begins_a_book() {
    let lines = [booked("GPU-a", 3), booked("GPU-a", 2)].concat();
    let said = audit(joined(&lines), &["--json", "--requests"]);
    let answer = object(&said);
    assert_eq!((said.code, &answer["cards"][0]["books"]), (Some(0), &2.into()));
    assert_eq!(answer["cards"][0]["register_joules"].as_f64(), Some(5.0));
    assert_eq!(answer["cards"][0]["requests"], 4, "numbers begin anew");
    assert!(said.out.contains("book 2: request/1/decode"), "{}", said.out);
}

/// The same book, begun by a line that says so, its first request closed at its end.
fn announced(card: &str, ticks: u64, number: u64) -> Vec<String> {
    let renumbered = |line: &String| {
        let mut line: Line = serde_json::from_str(line).unwrap();
        if let What::Moved(transaction) = &mut line.what {
            transaction.number += number;
        }
        line
    };
    let mut lines = vec![Line::open(card, number)];
    lines.extend(booked(card, ticks).iter().map(renumbered));
    let account = Account::Request(RequestId(1), Phase::Decode);
    let amount_uj = ticks as i64 * 175_000;
    let entries = vec![
        Entry { account, amount_uj: -amount_uj },
        Entry { account: Account::Closed(Phase::Decode), amount_uj },
    ];
    let number = number + 2 * ticks;
    let closing = Transaction { number, reason: Reason::Close, tick_ns: 0, entries };
    lines.push(Line::moved(card, closing));
    lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect()
}

#[test]
fn numbers_go_on_where_a_line_says_that_a_book_begins() {
    let lines = [announced("GPU-a", 3, 0), announced("GPU-a", 2, 7)].concat();
    let text = joined(&lines);
    let said = audit(&text, &["--requests"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for words in ["4 requests in 2 books", "balances: 12 transactions, imbalance 0 µJ"] {
        assert!(said.out.contains(words), "{}", said.out);
    }
    for (account, joules) in [
        ("book 1: request/1/decode", "0.525000"),
        ("book 1: request/2/decode", "1.575000"),
        ("book 2: request/1/decode", "0.350000"),
        ("book 2: request/2/decode", "1.050000"),
    ] {
        let row = said.out.lines().find(|row| row.contains(account)).unwrap();
        assert!(row.contains(joules), "{row}");
    }
    // Their sum is the same whether each is kept or not.
    let answer = object(&audit(&text, &["--json"]));
    let decode = answer["cards"][0]["accounts"].as_array().unwrap().iter();
    let decode = decode.filter(|it| it["account"] == "requests, decode");
    assert_eq!(decode.map(|it| it["joules"].as_f64().unwrap()).sum::<f64>(), 3.5);
    // A book that does not follow; one of which no line says that it begins; a closing that leaves
    // something; what is charged behind it.
    let wrong = [announced("GPU-a", 3, 0), announced("GPU-a", 2, 6)].concat();
    let silent = [announced("GPU-a", 3, 0), booked("GPU-a", 1)].concat();
    let mut left = lines.clone();
    left[7] = left[7].replace("525000", "525");
    let skipped = [&lines[..7], &lines[8..]].concat();
    for (lines, at, what) in [
        (wrong, 9, "should go on with transaction 7, not 6"),
        (silent, 9, "number 7 should come here"),
        (left, 8, "closes `request/1/decode` and leaves something in it"),
        (skipped, 8, "should go on with transaction 6, not 7"),
    ] {
        let said = audit(joined(&lines), &[]);
        assert_eq!(said.code, Some(1), "{what}: {}", said.out);
        assert!(said.err.contains(&format!("journal:{at}: card GPU-a: ")), "{}", said.err);
        assert!(said.err.contains(what), "{}", said.err);
    }
}

#[test]
fn a_cut_last_line_is_said_and_the_rest_is_judged() {
    let text = joined(&booked("GPU-a", 5));
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    for cut in [last + 1, last + 30, text.len() - 3] {
        let said = audit(&text[..cut], &[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.err.contains("journal:10: the last line is cut"), "{}", said.err);
        assert!(said.out.contains("suspense"), "{}", said.out);
        assert!(said.out.contains("balances: 9 transactions"), "{}", said.out);
    }
    let zeros = [&text.as_bytes()[..last + 30], &[0; 400]].concat();
    let said = audit(zeros, &["--json"]);
    assert_eq!((said.code, &object(&said)["cut_line"]), (Some(0), &10.into()));
    // Only its newline is lost.
    let said = audit(text.trim_end(), &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    // What stands before a cut line is not forgiven.
    let forged = text.replacen("300000", "300001", 1);
    assert_eq!(audit(&forged[..text.len() - 9], &[]).code, Some(1));
}

#[test]
fn what_is_no_journal_is_2() {
    let honest = booked("GPU-a", 3);
    let with = |line: &str| {
        let mut lines = honest.clone();
        lines[2] = line.to_owned();
        joined(&lines)
    };
    let cut = &honest[2][..40];
    for text in [with(cut), with(""), with("{}"), with("\u{0}"), with("[1]"), with("no entry")] {
        let said = audit(&text, &[]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
        assert!(said.err.contains("journal:3: no entry of a journal"), "{}", said.err);
    }
    // An unfinished last line that could never have become one; and a finished one.
    for text in ["no entry", &format!("{cut}\n")] {
        assert_eq!(audit(text, &[]).code, Some(2), "{text}");
    }
    let unknown = with(&honest[2].replace("suspense", "pocket"));
    assert!(audit(unknown, &[]).err.contains("`pocket` is no account"));
    let bench = Bench::without_cards();
    for path in ["nowhere", "."] {
        let path = bench.path(path);
        let said = bench.say(["audit", path.to_str().unwrap()]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(path.to_str().unwrap()), "{}", said.err);
    }
}

#[test]
fn standard_input_is_read_and_nothing_is_nothing() {
    let bench = Bench::without_cards();
    let feed = |text: &str| {
        let mut command = bench.joulebook(["audit", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, out) = feed(&joined(&booked("GPU-a", 300)));
    assert_eq!(code, Some(0));
    assert!(out.contains("balances: 600 transactions"), "{out}");
    assert_eq!(feed(""), (Some(0), "the journal is empty\n".to_owned()));
}
