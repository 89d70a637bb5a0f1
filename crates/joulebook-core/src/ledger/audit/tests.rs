use super::*;
use crate::ledger::settle::{Around, Carry, Others, Presence, Rho, Split, Tick, settle};

#[test]
fn a_journal_is_read_back_and_the_first_break_is_named() {
    let mut ledger = Ledger::new();
    let mut journal = Vec::new();
    for number in 0..5 {
        let tick = Tick {
            begin_ns: number * 100_000_000,
            end_ns: (number + 1) * 100_000_000,
            counted_uj: (1000 + number) * 1000,
            unplaced: false,
        };
        let post = ledger.posting(tick.end_ns, tick.counted_uj);
        ledger.apply(&post).unwrap();
        let present = [Presence {
            request: RequestId(number),
            resident_ns: 100_000_000,
            prefill_weight: 0,
            decode_tokens: 3,
        }];
        let around = Around {
            present: &present,
            others: &Others::Nobody,
            rest: None,
            rho: Rho::default(),
            split: Split::Weighted,
        };
        let shares = settle(tick, &around, &mut Carry::default()).shares;
        let settled = ledger.settling(tick.end_ns, &shares);
        ledger.apply(&settled).unwrap();
        journal.extend([post, settled]);
    }
    let text: Vec<String> =
        journal.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    let read = |text: &[String]| {
        let mut auditor = Auditor::new();
        let mut lines = text.iter().map(|line| serde_json::from_str::<Transaction>(line).unwrap());
        lines.try_for_each(|line| auditor.next(&line)).map(|()| auditor)
    };
    assert_eq!(read(&text).unwrap().ledger().counted_uj(), ledger.counted_uj());
    let mut forged = text.clone();
    forged[3] = forged[3].replace("1001000", "1001001");
    assert_eq!(read(&forged).unwrap_err().number, 3);
    forged.remove(3);
    assert_eq!(read(&forged).unwrap_err().refused, Refused::OutOfOrder { expected: 3 });
}

#[test]
fn an_audit_finds_what_adds_up_and_is_not_what_it_says() {
    let request = |id| Account::Request(RequestId(id), Phase::Decode);
    let entry =
        |(account, amount_uj): &(Account, i64)| Entry { account: *account, amount_uj: *amount_uj };
    let transaction = |number, reason, entries: &[(Account, i64)]| Transaction {
        number,
        reason,
        tick_ns: 0,
        entries: entries.iter().map(entry).collect(),
    };
    let mut auditor = Auditor::new();
    for honest in [
        transaction(0, Reason::Post, &[(Account::Register, -9), (Account::Suspense, 9)]),
        transaction(1, Reason::Settle, &[(request(1), 5), (Account::Suspense, -5)]),
        transaction(2, Reason::Correct, &[(request(1), -2), (request(2), 2)]),
    ] {
        auditor.next(&honest).unwrap();
    }
    for (reason, entries, account) in [
        // The register counts back, or straight into somebody's account.
        (Reason::Post, [(Account::Suspense, -4), (Account::Register, 4)], Account::Register),
        (Reason::Post, [(Account::Register, -4), (request(2), 4)], request(2)),
        // Energy that nobody posted; taken from a request; back into suspense.
        (Reason::Settle, [(Account::Register, -4), (request(2), 4)], Account::Register),
        (Reason::Settle, [(request(1), -1), (request(2), 1)], request(1)),
        (Reason::Correct, [(request(1), -1), (Account::Suspense, 1)], Account::Suspense),
        (Reason::Correct, [(Account::Register, -4), (request(2), 4)], Account::Register),
    ] {
        let forged = transaction(3, reason, &entries);
        let found = auditor.next(&forged).unwrap_err();
        assert_eq!(found.refused, Refused::Misplaced(account), "{forged:?}");
        assert!(found.to_string().contains(&format!("`{account}`")), "{found}");
    }
    // Nothing was booked of any of them, and what does not add up is said before.
    assert_eq!((auditor.transactions(), auditor.ledger().counted_uj()), (3, 9));
    let broken = transaction(3, Reason::Post, &[(Account::Register, 4)]);
    let said = auditor.next(&broken).unwrap_err().to_string();
    assert_eq!(said, "transaction 3 does not balance: it gives 4 µJ more than it takes");
}

#[test]
fn a_closing_takes_all_of_one_request_and_an_audit_forgets_it() {
    let entry =
        |(account, amount_uj): &(Account, i64)| Entry { account: *account, amount_uj: *amount_uj };
    let closing = |entries: &[(Account, i64)]| Transaction {
        number: 2,
        reason: Reason::Close,
        tick_ns: 0,
        entries: entries.iter().map(entry).collect(),
    };
    let of = |id, phase| Account::Request(RequestId(id), phase);
    let (read, written) = (of(1, Phase::Prefill), of(1, Phase::Decode));
    let closed = Account::Closed;
    let mut ledger = Ledger::new();
    let mut auditor = Auditor::new();
    let post = ledger.posting(0, 9);
    let settled =
        Ledger::from_number(1).settling(0, &[(read, 2), (written, 4), (of(2, Phase::Decode), 3)]);
    for transaction in [post, settled] {
        ledger.apply(&transaction).unwrap();
        auditor.next(&transaction).unwrap();
    }
    for (entries, refused) in [
        (vec![(read, -2), (closed(Phase::Prefill), 2)], Refused::LeftOpen(written)),
        (
            vec![
                (written, -3),
                (read, -2),
                (closed(Phase::Decode), 3),
                (closed(Phase::Prefill), 2),
            ],
            Refused::LeftOpen(written),
        ),
        // The answer's part as the prompt's; into another's account; somebody else's; nobody's.
        (
            vec![(read, -2), (written, -4), (closed(Phase::Prefill), 6)],
            Refused::Misplaced(closed(Phase::Prefill)),
        ),
        (vec![(read, -2), (Account::Gap, 2)], Refused::Misplaced(Account::Gap)),
        (
            vec![(read, -2), (of(2, Phase::Decode), -3), (closed(Phase::Prefill), 5)],
            Refused::Misplaced(of(2, Phase::Decode)),
        ),
        (
            vec![(closed(Phase::Decode), 0), (closed(Phase::Prefill), 0)],
            Refused::Misplaced(closed(Phase::Decode)),
        ),
        (
            vec![
                (read, -5),
                (written, -4),
                (closed(Phase::Prefill), 5),
                (closed(Phase::Decode), 4),
            ],
            Refused::Overdrawn(read),
        ),
    ] {
        let forged = closing(&entries);
        assert_eq!(auditor.next(&forged).unwrap_err().refused, refused, "{entries:?}");
    }
    // In the name of anything else nobody touches what is closed.
    let corrected = Transaction {
        reason: Reason::Correct,
        ..closing(&[(written, -1), (closed(Phase::Decode), 1)])
    };
    let found = auditor.next(&corrected).unwrap_err();
    assert_eq!(found.refused, Refused::Misplaced(closed(Phase::Decode)));
    let honest = ledger.closing(RequestId(1), 7).unwrap();
    ledger.apply(&honest).unwrap();
    ledger.forget(RequestId(1));
    auditor.next(&honest).unwrap();
    assert_eq!(honest.closed(), Some((RequestId(1), (2, 4))));
    assert_eq!((auditor.requests(), auditor.ledger().open_requests()), (2, 1));
    for ledger in [&ledger, auditor.ledger()] {
        assert_eq!((ledger.balance(closed(Phase::Prefill)), ledger.closed_uj()), (2, 6));
        assert_eq!((ledger.requests_uj(), ledger.imbalance_uj()), (9, 0));
        let open = ledger.balances().filter(|(it, _)| matches!(it, Account::Request(..))).count();
        assert_eq!((open, ledger.balances().count()), (1, 4), "register, closed × 2, the other");
    }
    assert_eq!(ledger.closing(RequestId(1), 8), None);
}
