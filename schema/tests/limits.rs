//! What may be a limit, and its form on the command line and in JSON.

use crate::common::{config, limit};
use proptest::prelude::*;
use zae_limiter_schema::{InvalidLimit, Limit, LimitSet, Tokens, whole_tokens};

fn parse(text: &str) -> Limit {
    text.parse().unwrap()
}

fn refusal(text: &str) -> String {
    text.parse::<Limit>().unwrap_err().to_string()
}

fn numbers(limit: &Limit) -> (u64, u64, u64, u64) {
    let (capacity, burst) = (limit.capacity().get(), limit.burst().get());
    (
        capacity,
        burst,
        limit.rate().unwrap().refill_amount().get(),
        limit.rate().unwrap().refill_period_seconds(),
    )
}

/// Text from the alphabet of the form, so that all of its parts are met, and any text at all.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(String::new()),
        "[0-9]{1,22}",
        "[a-z]{1,4}",
        proptest::sample::select(vec![
            "sec", "min", "hour", "day", "90s", "0s", "-1", "+5", "1e3", " 7", "٣"
        ])
        .prop_map(str::to_owned),
    ];
    let separator = proptest::sample::select(vec![":", "/", "@", "::", ""]);
    let nearly = proptest::collection::vec((part, separator), 0..6).prop_map(|parts| {
        parts
            .into_iter()
            .map(|(part, separator)| part + separator)
            .collect()
    });
    prop_oneof![3 => nearly, 1 => ".{0,60}"]
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_limit_is_what_it_prints(limit in limit()) {
        prop_assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
    }

    #[test]
    fn a_limit_round_trips_through_json(limit in limit()) {
        let json = serde_json::to_string(&limit).unwrap();
        prop_assert_eq!(serde_json::from_str::<Limit>(&json).unwrap(), limit);
    }

    #[test]
    fn a_set_of_limits_round_trips_through_json_in_order_of_name(
        limits in proptest::collection::btree_map(crate::common::limit_name(), limit(), 0..5),
    ) {
        let set = LimitSet::new(limits.into_iter().map(|(name, limit)| {
            Limit::from_parts(name, limit.capacity().get(), limit.burst().get(), limit.rate().unwrap().refill_amount().get(), limit.rate().unwrap().refill_period_seconds()).unwrap()
        })).unwrap();
        let json = serde_json::to_string(&set).unwrap();
        prop_assert_eq!(serde_json::from_str::<LimitSet>(&json).unwrap(), set.clone());
        prop_assert!(set.names().is_sorted());
    }

    #[test]
    fn any_text_is_a_limit_that_prints_as_an_equal_one_or_an_error_of_readable_length(text in text()) {
        match text.parse::<Limit>() {
            Ok(limit) => prop_assert_eq!(parse(&limit.to_string()), limit),
            Err(error) => prop_assert!(error.to_string().chars().count() < 300, "{}", error),
        }
    }

    #[test]
    fn any_numbers_are_a_limit_within_the_bounds_or_an_error(
        capacity in prop_oneof![0..20u64, any::<u64>()],
        burst in prop_oneof![0..20u64, any::<u64>()],
        amount in prop_oneof![0..20u64, any::<u64>()],
        period in prop_oneof![0..20u64, any::<u64>()],
    ) {
        let tokens = 1..=Tokens::MAX;
        let valid = [capacity, burst, amount].iter().all(|value| tokens.contains(value))
            && burst >= capacity
            && (1..=Limit::MAX_PERIOD_SECONDS).contains(&period);
        prop_assert_eq!(Limit::custom("x", capacity, burst, amount, period).is_ok(), valid);
    }
}

#[test]
fn the_forms_that_people_type() {
    assert_eq!(numbers(&parse("rpm:100")), (100, 100, 100, 60));
    assert_eq!(numbers(&parse("rpm:100:150")), (100, 150, 100, 60));
    assert_eq!(
        numbers(&parse("tpd:1000000/day")),
        (1_000_000, 1_000_000, 1_000_000, 86_400)
    );
    assert_eq!(numbers(&parse("rps:10/sec:20")), (10, 20, 10, 1));
    assert_eq!(numbers(&parse("rph:5/hour")), (5, 5, 5, 3600));
    assert_eq!(numbers(&parse("slow:1000/90s:1000@10")), (1000, 1000, 10, 90));
    assert_eq!(parse("gpt-4.in_put:7").name().as_str(), "gpt-4.in_put");
}

#[test]
fn what_is_printed_leaves_out_what_follows_from_the_rest() {
    assert_eq!(parse("rpm:100").to_string(), "rpm:100/min");
    assert_eq!(parse("rps:10/sec:20").to_string(), "rps:10/sec:20");
    assert_eq!(parse("x:10/60s:10@10").to_string(), "x:10/min");
    assert_eq!(parse("x:10/61s:20@5").to_string(), "x:10/61s:20@5");
}

#[test]
fn the_constructors_differ_in_the_period_alone() {
    assert_eq!(numbers(&Limit::per_second("x", 9).unwrap()), (9, 9, 9, 1));
    assert_eq!(numbers(&Limit::per_minute("x", 9).unwrap()), (9, 9, 9, 60));
    assert_eq!(numbers(&Limit::per_hour("x", 9).unwrap()), (9, 9, 9, 3600));
    assert_eq!(numbers(&Limit::per_day("x", 9).unwrap()), (9, 9, 9, 86_400));
    assert_eq!(numbers(&Limit::custom("x", 1, 2, 3, 4).unwrap()), (1, 2, 3, 4));
    let bursty = Limit::per_minute("x", 9).unwrap().with_burst(12).unwrap();
    assert_eq!(numbers(&bursty), (9, 12, 9, 60));
}

#[test]
fn zero_is_refused_with_the_field_the_value_and_the_rule() {
    let zero = |field: &str| format!("{field} 0 of limit rpm is invalid: it must be above 0");
    assert_eq!(refusal("rpm:0"), zero("capacity"));
    assert_eq!(refusal("rpm:10:0"), zero("burst"));
    assert_eq!(refusal("rpm:10@0"), zero("refill amount"));
    assert_eq!(
        refusal("rpm:10/0s"),
        "refill period 0 of limit rpm is invalid: it must be 1 to 316224000 seconds"
    );
}

#[test]
fn a_burst_below_the_capacity_is_refused() {
    let expected = "burst 50 of limit rpm is invalid: it must not be below the capacity, 100";
    assert_eq!(refusal("rpm:100:50"), expected);
    let error = Limit::per_minute("rpm", 100).unwrap().with_burst(50).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(matches!(
        error,
        InvalidLimit::Number {
            field: "burst",
            value: 50,
            ..
        }
    ));
}

#[test]
fn the_largest_numbers_are_accepted_and_one_more_is_not() {
    let (most, longest) = (Tokens::MAX, Limit::MAX_PERIOD_SECONDS);
    assert!(Limit::custom("x", most, most, most, longest).is_ok());
    let rule = format!("of limit x is invalid: it must be at most {most}");
    let more = most + 1;
    let message = |limit: Result<Limit, InvalidLimit>| limit.unwrap_err().to_string();
    assert_eq!(
        message(Limit::custom("x", more, more, 1, 1)),
        format!("capacity {more} {rule}")
    );
    assert_eq!(
        message(Limit::custom("x", 1, more, 1, 1)),
        format!("burst {more} {rule}")
    );
    assert_eq!(
        message(Limit::custom("x", 1, 1, more, 1)),
        format!("refill amount {more} {rule}")
    );
    assert_eq!(
        message(Limit::custom("x", 1, 1, 1, longest + 1)),
        "refill period 316224001 of limit x is invalid: it must be 1 to 316224000 seconds"
    );
    assert!(refusal("x:99999999999999999999").contains("capacity 99999999999999999999 is too large"));
}

#[test]
fn missing_and_malformed_parts_are_named() {
    let form = "; write NAME:CAPACITY[/PERIOD][:BURST], such as rpm:100, spend:500 per month or parallel:8 at once for 10min";
    let broken = |text: &str, rule: &str| format!("limit {text:?} is invalid: {rule}{form}");
    for (text, rule) in [
        ("rpm", "the capacity is missing"),
        ("", "the capacity is missing"),
        ("rpm:", "capacity \"\" is not a whole number"),
        ("rpm:/min", "capacity \"\" is not a whole number"),
        ("rpm:ten", "capacity \"ten\" is not a whole number"),
        ("rpm:-5", "capacity \"-5\" is not a whole number"),
        ("rpm:1.5", "capacity \"1.5\" is not a whole number"),
        ("rpm:100:", "burst \"\" is not a whole number"),
        ("rpm:100:many", "burst \"many\" is not a whole number"),
        ("rpm:100:150:200", "burst \"150:200\" is not a whole number"),
        ("rpm:100@", "refill amount \"\" is not a whole number"),
        (
            "rpm:100/fortnight",
            "period \"fortnight\" is not sec, min, hour, day or a number of seconds such as 90s",
        ),
        (
            "rpm:100/",
            "period \"\" is not sec, min, hour, day or a number of seconds such as 90s",
        ),
    ] {
        assert_eq!(refusal(text), broken(text, rule));
    }
    assert_eq!(
        refusal(":100"),
        "limit name \"\" is invalid: it must not be empty"
    );
    assert!(refusal("ttl:100").starts_with("limit name \"ttl\" is invalid: it is an attribute"));
    let long = "9".repeat(10_000);
    assert!(refusal(&format!("rpm:{long}")).len() < 300);
    assert!(refusal(&format!("rpm:1/{long}x")).len() < 400);
}

#[test]
fn json_is_the_form_of_audit_events_and_nothing_else() {
    let json = r#"{"name":"rpm","capacity":100,"burst":150,"refill_amount":100,"refill_period_seconds":60}"#;
    assert_eq!(serde_json::from_str::<Limit>(json).unwrap(), parse("rpm:100:150"));
    assert_eq!(serde_json::to_string(&parse("rpm:100:150")).unwrap(), json);
    let refused = |json: String| serde_json::from_str::<Limit>(&json).unwrap_err().to_string();
    assert!(
        refused(json.replace("150", "50")).contains("burst 50 of limit rpm is invalid"),
        "it is checked like any other limit"
    );
    assert!(refused(json.replace("\"burst\"", "\"bursts\"")).contains("unknown field `bursts`"));
    assert!(refused(json.replace("rpm", "r#m")).contains("must not contain '#'"));
}

#[test]
fn a_set_takes_each_name_once() {
    let twice = LimitSet::new([parse("rpm:1"), parse("tpm:1"), parse("rpm:2")]).unwrap_err();
    assert_eq!(
        twice.to_string(),
        "limit rpm is given twice: each name may stand once"
    );
    let json = format!("[{0},{0}]", serde_json::to_string(&parse("rpm:1")).unwrap());
    assert!(serde_json::from_str::<LimitSet>(&json).is_err());
}

#[test]
fn whole_tokens_are_rounded_down_also_beyond_64_bits() {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    for millis in [
        0,
        1,
        999,
        1000,
        -1,
        -999,
        -1000,
        -1001,
        most,
        most + 1,
        least,
        least - 1,
        most * most,
        least * most,
    ] {
        let whole = whole_tokens(millis);
        assert!(
            whole * 1000 <= millis && millis < (whole + 1) * 1000,
            "{millis}: {whole}"
        );
    }
}

#[test]
fn an_amount_above_the_most_tokens_is_refused_in_json_and_as_a_number() {
    let (most, tokens) = (Tokens::MAX, Tokens::new(Tokens::MAX).unwrap());
    assert_eq!(serde_json::from_str::<Tokens>(&most.to_string()).unwrap(), tokens);
    assert_eq!(Tokens::try_from(most).unwrap(), tokens);
    assert!(serde_json::from_str::<Tokens>(&(most + 1).to_string()).is_err());
    assert!(Tokens::try_from(most + 1).is_err());
}
