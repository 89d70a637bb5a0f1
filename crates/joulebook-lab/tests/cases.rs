//! Every fault that a reader, a register, a window, an identity, a tenancy, a clock or a book can
//! meet, as users met it: each case by its name through the case runner with its right value, its variants,
//! and what its prose says asserted of the library itself.

#[cfg(test)]
mod cases {
    mod books;
    mod counters;
    mod identity;
    mod idle_and_clock;
    mod program;
    mod sampler_time;
    mod smi;
    mod sources;
    mod tenancy;
    mod tool;

    use joulebook_lab::case::Case;
    use serde_json::{Map, Value};

    const CASES: &str = include_str!("../../../testdata/cases/cases.jsonl");
    const VARIANTS: &str = include_str!("../../../testdata/cases/variants.jsonl");

    fn all(text: &str) -> Vec<Case> {
        Case::read(text).expect("a file of cases")
    }

    /// Runs a case and its variants, which must all pass; the whole answer of the case itself.
    fn passes(id: &str) -> Map<String, Value> {
        let cases = all(CASES);
        let case = cases.iter().find(|case| case.id == id).expect("a case of that name");
        let outcome = case.judge();
        assert!(outcome.pass, "{id}: {}", outcome.differs.join("; "));
        let begins = format!("{id}-v");
        let variants = all(VARIANTS);
        let own: Vec<&Case> = variants.iter().filter(|case| case.id.starts_with(&begins)).collect();
        assert!(!own.is_empty(), "{id} has no variant");
        for variant in own {
            let outcome = variant.judge();
            assert!(outcome.pass, "{}: {}", variant.id, outcome.differs.join("; "));
        }
        case.answer().expect("an answer")
    }

    /// The whole answer of a variant.
    fn variant(id: &str) -> Map<String, Value> {
        let variants = all(VARIANTS);
        let case = variants.iter().find(|case| case.id == id).expect("a variant of that name");
        case.answer().expect("an answer")
    }

    /// Every case and every variant has a test of its name.
    #[test]
    fn every_case_has_its_test() {
        let tests = [
            include_str!("cases/books.rs"),
            include_str!("cases/counters.rs"),
            include_str!("cases/identity.rs"),
            include_str!("cases/idle_and_clock.rs"),
            include_str!("cases/sampler_time.rs"),
            include_str!("cases/smi.rs"),
            include_str!("cases/sources.rs"),
            include_str!("cases/tenancy.rs"),
        ]
        .concat();
        let cases = all(CASES);
        for case in &cases {
            let name = format!("fn {}()", case.id.replace('-', "_"));
            assert!(tests.contains(&name), "{name}");
        }
        for variant in all(VARIANTS) {
            let of = |case: &Case| variant.id.starts_with(&format!("{}-v", case.id));
            assert!(cases.iter().any(of), "{} is a variant of no case", variant.id);
        }
    }
}
