//! A journal in a file over several starts of the program, and over crashes.

use std::{fs, path::Path, time::Duration};

use joulebook::{
    books::{Audit, Books, JournalFile, Labels, Line, Receipt, Settings, Status, Usage},
    core::{
        Flags, Source,
        keeper::{self, CardFacts, Keeper, Opening, Payer, Phases, Publish},
        ledger::{
            Account,
            settle::{Others, Rest, Rho, Tick},
        },
    },
};

use crate::bench::Bench;

const LONG: Duration = Duration::from_secs(20);

/// The books of a program that is started, does some work, and ends; the receipt of its work.
fn start(bench: &Bench, path: &Path) -> Receipt {
    let journal = Some(JournalFile::append(path).unwrap().into());
    let books = Books::of(&bench.meter(), Settings { journal, ..Settings::default() }).unwrap();
    let mut ticket = books.open(&Labels::default());
    ticket.tokens(3);
    bench.pass(5);
    let receipt = ticket.close(Usage::default()).settle(LONG);
    books.close();
    receipt
}

fn audited(path: &Path) -> Audit {
    let mut audit = Audit::of_each_request();
    audit.read(&mut fs::read(path).unwrap().as_slice()).unwrap();
    assert_eq!((audit.broken(), audit.cut(), audit.lacks_newline()), (None, None, false));
    audit
}

fn books(audit: &Audit) -> u64 {
    audit.cards().next().unwrap().1.books()
}

#[test]
fn numbers_go_on_from_start_to_start_and_each_book_begins_at_nothing() {
    let bench = Bench::new();
    bench.draws(300.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut receipts = Vec::new();
    for number in 1..=3 {
        receipts.push(start(&bench, &path));
        assert_eq!(books(&audited(&path)), number);
    }
    let entries = receipts.iter().map(|receipt| &receipt.entries[0]);
    let spans: Vec<(u64, u64)> = entries.map(|it| (it.first, it.last)).collect();
    assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0), "no number twice: {spans:?}");
    // Requests begin anew with each book; each was charged what its receipt says.
    let audit = audited(&path);
    let (_, card) = audit.cards().next().unwrap();
    assert_eq!(card.requests(), 3);
    for (number, receipt) in (1..).zip(&receipts) {
        let charged: i128 =
            card.each().filter(|(book, ..)| *book == number).map(|(.., uj)| uj).sum();
        assert!((charged as f64 / 1e6 - receipt.joules.unwrap()).abs() < 1e-9, "{receipt:?}");
    }
    let accounts = card.accounts();
    let sum: i128 = accounts.values().sum();
    assert!(sum == 0 && accounts[&Account::Register] < 0, "{accounts:?}");
    // A book that begins with another number has lost lines before it.
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("\"open\"")).count(), 3);
    let (name, number) = (audit.cards().next().unwrap().0, card.next_number());
    let open = serde_json::to_string(&Line::open(name, number + 1)).unwrap();
    let skipped = format!("{text}{open}\n");
    let mut audit = Audit::new();
    audit.read(&mut skipped.as_bytes()).unwrap();
    let broken = audit.broken().unwrap();
    assert!(broken.what.contains(&format!("transaction {number}")), "{broken:?}");
    assert_eq!(broken.line, text.lines().count() as u64 + 1);
}

#[test]
fn a_journal_that_a_crash_has_cut_is_mended_and_written_on() {
    let bench = Bench::new();
    bench.draws(300.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    start(&bench, &path);
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let lines = audited(&path).transactions() + 1;
    for (number, left) in (2..).zip([
        [&whole[..last + 1], &[]].concat(),
        [&whole[..last + 40], &[]].concat(),
        // A page that was never written reads as zeros.
        [&whole[..last + 40], &[0; 500]].concat(),
        [&whole[..], &[0; 500]].concat(),
    ]) {
        fs::write(&path, &left).unwrap();
        let mended = JournalFile::append(&path).unwrap().mended().unwrap();
        let (line, from) = if left.len() > whole.len() && left.starts_with(&whole) {
            (lines + 1, whole.len())
        } else {
            (lines, last)
        };
        assert_eq!((mended.line, mended.bytes), (line, (left.len() - from) as u64), "{number}");
        assert_eq!(fs::read(&path).unwrap(), whole[..from]);
        // What was cut is gone, what stands is proved, and the next book follows.
        start(&bench, &path);
        assert_eq!(books(&audited(&path)), 2);
    }
    // Only its newline was lost.
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(JournalFile::append(&path).unwrap().mended(), None);
    assert_eq!(fs::read(&path).unwrap(), whole);
}

/// What an audit holds does not grow with the journal: a request that is closed in it is only counted.
#[test]
fn an_audit_holds_what_is_open_and_not_what_ever_was() {
    const REQUESTS: u64 = 200_000;
    const A_SECOND: u64 = 200;
    let facts = CardFacts {
        name: "GPU".into(),
        backend: "simulated",
        source: Source::Local,
        lag_ns: 0,
        lag_uncertainty_ns: 0,
    };
    let keeping = keeper::Settings { journal: true, ..keeper::Settings::default() };
    let mut books = Keeper::new(keeping, [facts]);
    let mut audit = Audit::new();
    let (mut most, mut id) = (0, 0);
    for second in 0..REQUESTS / A_SECOND + 70 {
        let begin_ns = (1000 + second) * 1_000_000_000;
        let end_ns = begin_ns + 1_000_000_000;
        for _ in 0..A_SECOND.min(REQUESTS - id) {
            id += 1;
            let payer = Payer { card: 0, phases: Phases::Both, rho: Rho::default() };
            let opening = Opening { id, payers: vec![payer], ..Opening::default() };
            books.open(begin_ns + 1, opening).unwrap();
            books.tokens(id, begin_ns + 2, 4);
            books.close(id, end_ns, Status::Done, Usage::default());
        }
        let tick = Tick { begin_ns, end_ns, counted_uj: 300_000_000, unplaced: false };
        books.publish(
            0,
            Publish {
                tick,
                edge_uj: 1000,
                rest: Some(Rest { power_uw: 70_000_000, off_uw: None, model_loaded: true }),
                spread_uw: 0,
                others: Others::Nobody,
                contended_by: None,
                flags: Flags::NONE,
            },
        );
        books.advance(end_ns + 2_000_000);
        assert_eq!(
            books.finished().count() as u64,
            if second * A_SECOND < REQUESTS { A_SECOND } else { 0 }
        );
        for (_, transaction) in books.journal() {
            audit.judge(Line::moved("GPU", transaction));
            most = most.max(audit.held());
        }
    }
    assert_eq!(audit.broken(), None);
    let (_, card) = audit.cards().next().unwrap();
    assert_eq!((card.requests(), audit.held()), (REQUESTS, 0));
    // Each stands for a minute, in which late news may come of it, and the longest tick.
    assert!(most as u64 <= 64 * A_SECOND, "{most} of {REQUESTS} requests were held");
    let held = books.standing(0).unwrap().ledger.balances().count();
    assert_eq!(card.accounts().len(), held, "the book itself holds no more");
}

#[test]
fn what_cannot_be_proved_is_not_written_on() {
    let bench = Bench::new();
    bench.draws(300.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    start(&bench, &path);
    let honest = fs::read_to_string(&path).unwrap();
    let refused = |text: &str, why: &[&str]| {
        fs::write(&path, text).unwrap();
        let error = JournalFile::append(&path).unwrap_err().to_string();
        assert!(why.iter().all(|why| error.contains(why)), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing is touched");
    };
    refused("{}\n", &["journal.jsonl:1: no entry", "another file"]);
    refused(&format!("{honest}no entry\n"), &["no entry of a journal", "another file"]);
    let forged = honest.replacen("\"amount_uj\":-", "\"amount_uj\":-1", 1);
    refused(&forged, &["journal.jsonl:2: card", "does not balance", "another file"]);
    // A cut line behind what does not balance is left there too.
    refused(&forged[..forged.len() - 9], &["does not balance"]);
    fs::write(&path, honest).unwrap();
    let held = JournalFile::append(&path).unwrap();
    let error = JournalFile::append(&path).unwrap_err().to_string();
    assert!(error.contains("another program"), "{error}");
    drop(held);
    drop(JournalFile::append(&path).unwrap());
}
