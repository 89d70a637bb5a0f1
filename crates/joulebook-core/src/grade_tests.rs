use serde_json::json;

use super::*;

fn estimate(gross_j: f64, bound_j: f64, samples: u64) -> Estimated {
    Ok(Estimate {
        rule: Rule::Shared,
        gross_j,
        bound_j,
        range_j: (gross_j - bound_j, gross_j + bound_j),
        samples,
        bridged_j: 0.0,
        flags: Flags::NONE,
    })
}

fn context(seconds: f64, idle_w: Option<f64>) -> Context {
    Context {
        seconds,
        idle_seconds: seconds,
        idle_w,
        source: Source::Local,
        backend: "nvml_counter",
        tenancy: Tenancy::Alone,
        settled: true,
        ..Context::default()
    }
}

const HINT: Hint = Hint { tokens: 3, joules_per_1k: 4100.0 };

#[test]
fn energy_above_idle_is_sampled_with_its_bound() {
    let got = grade(&estimate(100.0, 5.0, 4), &context(1.0, Some(70.0)), Hint::default());
    assert_eq!((got.joules, got.method), (Some(30.0), Method::Sampled));
    assert_eq!((got.bound_joules, got.low_joules), (Some(5.0), None));
    assert_eq!(got.mean_watts, 100.0);
}

#[test]
fn a_bound_above_the_value_is_unresolved_and_gives_the_interval() {
    let got = grade(&estimate(100.0, 50.0, 1), &context(1.0, Some(70.0)), Hint::default());
    assert_eq!(got.method, Method::Sampled);
    assert!(got.flags.contains(Flags::UNRESOLVED));
    assert_eq!((got.low_joules, got.high_joules), (Some(-20.0), Some(80.0)));
}

#[test]
fn no_window_is_free() {
    for (gross_j, samples, error) in
        [(0.0, 0, Fault::WindowBelowResolution), (9.15, 2, Fault::BelowIdle)]
    {
        let context = context(0.3, Some(38.0));
        let unknown = grade(&estimate(gross_j, 1.0, samples), &context, Hint::default());
        assert_eq!((unknown.joules, unknown.method), (None, Method::Unknown));
        assert_eq!(unknown.error, Some(error));
        assert_eq!(unknown.flags.contains(Flags::BASELINE_SUSPECT), samples > 1);
        let estimated = grade(&estimate(gross_j, 1.0, samples), &context, HINT);
        assert_eq!((estimated.joules, estimated.method), (Some(12.3), Method::Estimated));
        assert_eq!(estimated.bound_joules, None, "an estimate has no measurement bound");
    }
}

#[test]
fn a_card_at_rest_does_not_make_its_floor_suspect() {
    let got = grade(&estimate(69.5, 0.1, 9), &context(1.0, Some(70.0)), Hint::default());
    assert_eq!(got.error, Some(Fault::BelowIdle));
    assert!(!got.flags.contains(Flags::BASELINE_SUSPECT));
}

#[test]
fn without_a_baseline_only_the_gross_figure_stands() {
    let got = grade(&estimate(700.0, 5.0, 4), &context(10.0, None), Hint::default());
    assert_eq!((got.joules, got.error), (None, Some(Fault::NoBaseline)));
    assert_eq!(got.gross_joules, Some(700.0));
    // A floor that is not known is no floor of 0 W; giul's form alone has no other word for it.
    let of = |form: serde_json::Value| form["idle_watts"].clone();
    assert_eq!(of(serde_json::to_value(got.form(0)).unwrap()), json!(null));
    assert_eq!(of(serde_json::to_value(got.giul_form(0)).unwrap()), json!(0.0));
}

#[test]
fn a_shared_card_is_witnessed_and_not_measured() {
    let contended_by = Some("/opt/train (4000 MiB)".to_owned());
    let context = Context { contended_by, ..context(1.0, Some(70.0)) };
    let got = grade(&estimate(300.0, 5.0, 4), &context, Hint::default());
    assert_eq!((got.joules, got.method), (None, Method::Unknown));
    assert_eq!((got.gross_joules, got.error), (Some(300.0), Some(Fault::SharedDevice)));
}

#[test]
fn a_missing_card_makes_the_sum_unknown_and_the_rest_a_lower_bound() {
    let lost = Err(Missing { lower_bound_j: Some(10.0), ..Missing::of(Fault::Lost) });
    let got = combine(&[estimate(100.0, 5.0, 4), lost]);
    let missing = got.unwrap_err();
    assert_eq!((missing.fault, missing.lower_bound_j), (Fault::PartialDevices, Some(105.0)));
    let sum = combine(&[estimate(100.0, 5.0, 4), estimate(50.0, 2.0, 3)]).unwrap();
    assert_eq!((sum.gross_j, sum.bound_j, sum.samples), (150.0, 7.0, 3));
}

#[test]
fn giuls_form_has_its_keys_order_and_roundings() {
    let mut got = grade(&estimate(100.123_456, 5.0, 4), &context(1.0, Some(70.0)), Hint::default());
    let stage = grade(
        &Err(Missing::of(Fault::WindowBelowResolution)),
        &context(0.1, Some(70.0)),
        Hint::default(),
    );
    got.stages.push(("prefill".into(), stage));
    let text = serde_json::to_string(&got.giul_form(7)).unwrap();
    assert_eq!(
        text,
        "{\"joules\":30.123,\"method\":\"sampled\",\"seconds\":1.0,\"samples\":4,\
         \"mean_watts\":100.12,\"idle_watts\":70.0,\"source\":\"local\",\
         \"backend\":\"nvml_counter\",\"joules_per_token\":4.30335,\"tokens_per_joule\":0.232,\
         \"stages\":{\"prefill\":{\"joules\":0.0,\"method\":\"unknown\",\"seconds\":0.1,\
         \"samples\":0,\"mean_watts\":0.0,\"idle_watts\":70.0,\"source\":\"local\",\
         \"backend\":\"nvml_counter\"}}}"
    );
}

#[test]
fn giuls_form_writes_ratios_only_with_tokens_and_null_at_cost_zero() {
    let unknown =
        grade(&Err(Missing::of(Fault::Absent)), &context(1.0, Some(0.0)), Hint::default());
    let form = serde_json::to_value(unknown.giul_form(5)).unwrap();
    assert_eq!((&form["joules_per_token"], &form["tokens_per_joule"]), (&json!(0.0), &json!(null)));
    let form = serde_json::to_value(unknown.giul_form(0)).unwrap();
    assert_eq!(form.get("joules_per_token"), None);
}

#[test]
fn a_small_sampled_figure_never_prints_as_zero() {
    let got = grade(&estimate(0.000_123_456, 0.0, 4), &context(1.0, Some(0.0)), Hint::default());
    let form = serde_json::to_value(got.giul_form(0)).unwrap();
    assert_eq!(form["joules"], json!(0.000123));
    let form = serde_json::to_value(got.form(0)).unwrap();
    assert_eq!(form["joules"], json!(0.000123));
}

#[test]
fn our_form_writes_an_unknown_as_null_with_its_reason() {
    let unknown =
        grade(&Err(Missing::of(Fault::CounterReset)), &context(1.0, Some(0.0)), Hint::default());
    let form = serde_json::to_value(unknown.form(5)).unwrap();
    assert_eq!((&form["joules"], &form["error"]), (&json!(null), &json!("counter_reset")));
    assert_eq!(form.get("joules_per_token"), None);
}
