//! What may be a limit, and its form on the command line and in JSON.

use std::time::Duration;

use crate::common::{any_limit, config};
use proptest::prelude::*;
use zae_limiter_schema::{
    Concurrency, InvalidLimit, Limit, LimitKind, LimitSet, QuotaPeriod, Tokens, whole_tokens,
};

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
    let words = proptest::sample::select(vec![
        "500",
        "8",
        "0",
        "per",
        "at",
        "once",
        "for",
        "from",
        "first",
        "use",
        "in",
        "day",
        "week",
        "month",
        "hour",
        "year",
        "sunday",
        "Monday",
        "10min",
        "5h",
        "7d",
        "8s",
        "06:00",
        "23:00",
        "24:00",
        "31",
        "32",
        "UTC",
        "europe/berlin",
        "Europe/Atlantis",
        " ",
        "Per",
        "alert",
        "80%",
        "0%",
        "101%",
        "x:",
    ]);
    let sentence = proptest::collection::vec(words, 1..10).prop_map(|words| format!("x:{}", words.join(" ")));
    prop_oneof![3 => nearly, 1 => ".{0,60}", 3 => sentence]
}

/// The text of a limit with one character replaced, removed or doubled.
fn damaged() -> impl Strategy<Value = String> {
    (any_limit(), any::<prop::sample::Index>(), 0..3u8, any::<char>()).prop_map(
        |(limit, place, how, other)| {
            let mut text: Vec<char> = limit.to_string().chars().collect();
            let place = place.index(text.len());
            match how {
                0 => text[place] = other,
                1 => drop(text.remove(place)),
                _ => text.insert(place, text[place]),
            }
            text.into_iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_limit_is_what_it_prints(limit in any_limit()) {
        prop_assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
    }

    #[test]
    fn a_limit_round_trips_through_json(limit in any_limit()) {
        let json = serde_json::to_string(&limit).unwrap();
        prop_assert_eq!(serde_json::from_str::<Limit>(&json).unwrap(), limit);
    }

    #[test]
    fn a_set_of_limits_round_trips_through_json_in_order_of_name(
        limits in proptest::collection::btree_map(crate::common::limit_name(), any_limit(), 0..5),
    ) {
        let limits = limits.into_iter().map(|(name, limit)| Limit::from_kind(name, limit.kind().clone()));
        let set = LimitSet::new(limits).unwrap();
        let json = serde_json::to_string(&set).unwrap();
        prop_assert_eq!(serde_json::from_str::<LimitSet>(&json).unwrap(), set.clone());
        prop_assert!(set.names().is_sorted());
    }

    #[test]
    fn any_text_is_a_limit_that_prints_as_an_equal_one_or_an_error_of_readable_length(
        text in prop_oneof![text(), damaged()],
    ) {
        match text.parse::<Limit>() {
            Ok(limit) => prop_assert_eq!(parse(&limit.to_string()), limit),
            Err(error) => prop_assert!(error.to_string().chars().count() < 350, "{}", error),
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
    assert_eq!(twice.to_string(), "duplicate limit name rpm");
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

#[test]
fn quotas_as_people_type_them() {
    let month = || QuotaPeriod::month();
    let five_hours = QuotaPeriod::from_first_use(Duration::from_secs(18_000)).unwrap();
    for (text, period, printed) in [
        ("500 per month", month(), "500 per month"),
        (
            "500 per month in Europe/Berlin",
            month().in_zone("Europe/Berlin").unwrap(),
            "500 per month in Europe/Berlin",
        ),
        (
            "500 per month in EUROPE/berlin",
            month().in_zone("Europe/Berlin").unwrap(),
            "500 per month in Europe/Berlin",
        ),
        (
            "500 per month from day 1 at 00:00 in utc",
            month(),
            "500 per month",
        ),
        (
            "500 per month from day 31 at 6:00",
            QuotaPeriod::month_from(31).unwrap().at_hour(6).unwrap(),
            "500 per month from day 31 at 06:00",
        ),
        ("500 per week from Monday", QuotaPeriod::week(), "500 per week"),
        (
            "500 per week from SUNDAY at 23:00",
            QuotaPeriod::week_from(zae_limiter_schema::Weekday::Sunday)
                .at_hour(23)
                .unwrap(),
            "500 per week from sunday at 23:00",
        ),
        (
            "500 per hour in Asia/Kolkata",
            QuotaPeriod::hour().in_zone("Asia/Kolkata").unwrap(),
            "500 per hour in Asia/Kolkata",
        ),
        ("500 per year", QuotaPeriod::year(), "500 per year"),
        (
            "500 per 5h from first use",
            five_hours.clone(),
            "500 per 5h from first use",
        ),
        (
            "500 per 300min from first use",
            five_hours.clone(),
            "500 per 5h from first use",
        ),
        (
            "  500\tper   18000s  from first use ",
            five_hours,
            "500 per 5h from first use",
        ),
    ] {
        let limit = parse(&format!("spend:{text}"));
        assert_eq!(limit, Limit::quota("spend", 500, period).unwrap(), "{text}");
        assert_eq!(limit.to_string(), format!("spend:{printed}"));
        assert_eq!(limit.kind().as_str(), "quota");
        assert_eq!((limit.capacity().get(), limit.burst().get()), (500, 500));
        assert!(limit.rate().is_none());
    }
}

#[test]
fn limits_on_calls_in_flight_as_people_type_them() {
    let limit = |seconds| Limit::concurrency("parallel", 8, Duration::from_secs(seconds)).unwrap();
    for (text, seconds, printed) in [
        ("8 at once for 600s", 600, "8 at once for 10min"),
        ("8 at once for 90s", 90, "8 at once for 90s"),
        (" 8  at once\tfor 2h ", 7_200, "8 at once for 2h"),
        ("8 at once for 1d", 86_400, "8 at once for 1d"),
        ("8 at once for 8s", 8, "8 at once for 8s"),
    ] {
        let read = parse(&format!("parallel:{text}"));
        assert_eq!(read, limit(seconds), "{text}");
        assert_eq!(read.to_string(), format!("parallel:{printed}"));
        assert_eq!(read.kind().as_str(), "concurrency");
        let LimitKind::Concurrency(concurrency) = read.kind() else {
            panic!("{read}")
        };
        assert_eq!(concurrency.expires_after_seconds(), seconds);
        assert_eq!(concurrency.permits().get(), 8);
    }
}

#[test]
fn near_misses_are_refused_with_the_part_at_fault_and_the_rule() {
    for (text, part, rule) in [
        ("0 per month", "amount 0 of limit x", "it must be above 0"),
        ("-5 per month", "amount \"-5\"", "is not a whole number"),
        ("1.5 per month", "amount \"1.5\"", "is not a whole number"),
        ("many per month", "amount \"many\"", "is not a whole number"),
        (
            "99999999999999999999 per day",
            "amount 99999999999999999999",
            "is too large",
        ),
        ("500 per", "quota period \"\"", "it must be hour, day, week"),
        (
            "500 per months",
            "quota period \"months\"",
            "it must be hour, day, week",
        ),
        (
            "500 per Month",
            "quota period \"Month\"",
            "it must be hour, day, week",
        ),
        ("500 per 5h", "quota period \"5h\"", "such as 5h from first use"),
        (
            "500 per month from day 0",
            "month from day 0",
            "the day must be 1 to 31",
        ),
        (
            "500 per month from day 32",
            "month from day 32",
            "the day must be 1 to 31",
        ),
        (
            "500 per month from day +5",
            "month from day +5",
            "the day must be 1 to 31",
        ),
        (
            "500 per month from day 005",
            "month from day 005",
            "the day must be 1 to 31",
        ),
        (
            "500 per month from 15",
            "month from 15",
            "\"from\" does not belong here",
        ),
        (
            "500 per week from someday",
            "week from someday",
            "monday to sunday",
        ),
        ("500 per day at 24:00", "day at 24:00", "the hour must be 0 to 23"),
        (
            "500 per day at 06:30",
            "day at 06:30",
            "the hour must be 00:00 to 23:00",
        ),
        (
            "500 per day at +6:00",
            "day at +6:00",
            "the hour must be 00:00 to 23:00",
        ),
        ("500 per day at 6", "day at 6", "the hour must be 00:00 to 23:00"),
        (
            "500 per hour at 06:00",
            "hour at 06:00",
            "an hour has no hour of the day",
        ),
        (
            "500 per day in Europe/Atlantis",
            "Europe/Atlantis",
            "no time zone has this name",
        ),
        (
            "500 per day in Etc/Unknown",
            "Etc/Unknown",
            "no time zone has this name",
        ),
        ("500 per day in CEST", "CEST", "no time zone has this name"),
        ("500 per day in +02:00", "+02:00", "no time zone has this name"),
        ("500 per day in", "day in", "\"in\" does not belong here"),
        (
            "500 per day in UTC at 06:00",
            "day in UTC at 06:00",
            "\"at\" does not belong here",
        ),
        (
            "500 per day please",
            "day please",
            "\"please\" does not belong here",
        ),
        (
            "500 per 5h from first use at 06:00",
            "5h from first use at 06:00",
            "has no hour of the day",
        ),
        (
            "500 per 5h from first use in UTC",
            "5h from first use in UTC",
            "has no time zone",
        ),
        ("500 per 0s from first use", "0s from first use", "1 to 316224000"),
        (
            "500 per 3661d from first use",
            "316310400s from first use",
            "1 to 316224000",
        ),
        (
            "500 per 5m from first use",
            "5m from first use",
            "is not a time such as 90s, 10min, 5h or 7d",
        ),
        (
            "0 at once for 10min",
            "permits 0 of limit x",
            "it must be above 0",
        ),
        (
            "eight at once for 10min",
            "permits \"eight\"",
            "is not a whole number",
        ),
        ("8 at once", "\"x:8 at once\"", "it needs the expiry of a permit"),
        (
            "8 at once for",
            "\"x:8 at once for\"",
            "it needs the expiry of a permit",
        ),
        (
            "8 at once for 10",
            "expiry \"10\"",
            "is not a time such as 90s, 10min, 5h or 7d",
        ),
        (
            "8 at once for 10 min",
            "\"x:8 at once for 10 min\"",
            "it needs the expiry of a permit",
        ),
        (
            "8 at once for 7s",
            "expiry 7 of limit x",
            "it must be 8 to 86400 seconds",
        ),
        (
            "8 at once for 25h",
            "expiry 90000 of limit x",
            "it must be 8 to 86400 seconds",
        ),
        (
            "8 at once for 99999999999999999d",
            "expiry \"99999999999999999d\"",
            "is not a time such as",
        ),
        (
            "8 At Once for 10min",
            "capacity \"8 At Once for 10min\"",
            "such as rpm:100, spend:500 per month or parallel:8 at once for 10min",
        ),
        ("100 /min", "capacity \"100 \"", "is not a whole number"),
    ] {
        let error = refusal(&format!("x:{text}"));
        assert!(error.contains(part) && error.contains(rule), "{text}: {error}");
    }
}

#[test]
fn the_constructors_of_quotas_and_concurrency_limits_have_the_same_rules() {
    let message = |limit: Result<Limit, InvalidLimit>| limit.unwrap_err().to_string();
    let more = Tokens::MAX + 1;
    assert_eq!(
        message(Limit::quota("x", more, QuotaPeriod::day())),
        format!(
            "amount {more} of limit x is invalid: it must be at most {}",
            Tokens::MAX
        )
    );
    assert_eq!(
        message(Limit::quota("ttl", 1, QuotaPeriod::day())),
        Limit::per_day("ttl", 1).unwrap_err().to_string()
    );
    let permits = |permits, expiry| Limit::concurrency("x", permits, expiry);
    assert_eq!(
        message(permits(0, Duration::from_secs(600))),
        "permits 0 of limit x is invalid: it must be above 0"
    );
    assert_eq!(
        message(permits(8, Duration::from_millis(600_500))),
        "expiry in milliseconds 600500 of limit x is invalid: it must be whole seconds"
    );
    for seconds in [
        Concurrency::MIN_EXPIRY_SECONDS - 1,
        Concurrency::MAX_EXPIRY_SECONDS + 1,
    ] {
        assert_eq!(
            message(permits(8, Duration::from_secs(seconds))),
            format!("expiry {seconds} of limit x is invalid: it must be 8 to 86400 seconds")
        );
    }
    let half = QuotaPeriod::from_first_use(Duration::from_millis(1_500)).unwrap_err();
    assert_eq!(
        half.to_string(),
        "quota period \"1.5s from first use\" is invalid: it must be whole seconds, 1 to 316224000 of them"
    );
    for limit in ["x:5 per day", "x:5 at once for 10min"] {
        let error = parse(limit).with_burst(9).unwrap_err().to_string();
        assert_eq!(error, "burst 9 of limit x is invalid: only a rate has a burst");
    }
}

#[test]
fn the_fields_of_json_tell_the_kind() {
    let read = |json: &str| serde_json::from_str::<Limit>(json);
    let quota = r#"{"name":"spend","quota":500,"per":"month in Europe/Berlin"}"#;
    assert_eq!(
        read(quota).unwrap(),
        parse("spend:500 per month in Europe/Berlin")
    );
    assert_eq!(serde_json::to_string(&read(quota).unwrap()).unwrap(), quota);
    let permits = r#"{"name":"parallel","concurrency":8,"expires_after_seconds":600}"#;
    assert_eq!(read(permits).unwrap(), parse("parallel:8 at once for 10min"));
    assert_eq!(serde_json::to_string(&read(permits).unwrap()).unwrap(), permits);
    for (json, error) in [
        (r#"{"name":"x"}"#, "missing field `capacity`"),
        (r#"{"name":"x","quota":5}"#, "missing field `per`"),
        (
            r#"{"name":"x","concurrency":5}"#,
            "missing field `expires_after_seconds`",
        ),
        (
            r#"{"name":"x","quota":0,"per":"day"}"#,
            "amount 0 of limit x is invalid: it must be above 0",
        ),
        (
            r#"{"name":"x","quota":5,"per":"fortnight"}"#,
            "quota period \"fortnight\" is invalid",
        ),
        (
            r#"{"name":"x","concurrency":5,"expires_after_seconds":7}"#,
            "expiry 7 of limit x is invalid: it must be 8 to 86400 seconds",
        ),
        (
            r#"{"name":"x","quota":5,"per":"day","concurrency":5}"#,
            "limit x mixes the fields of several kinds",
        ),
        (
            r#"{"name":"x","quota":5,"per":"day","burst":5}"#,
            "limit x mixes the fields of several kinds",
        ),
        (
            r#"{"name":"x","per":"day"}"#,
            "limit x mixes the fields of several kinds",
        ),
        (
            r#"{"name":"x","capacity":5,"burst":5,"refill_amount":5,"refill_period_seconds":60,"expires_after_seconds":60}"#,
            "limit x mixes the fields of several kinds",
        ),
        (
            r#"{"name":"x","quota":5,"per":"day","zone":"UTC"}"#,
            "unknown field `zone`",
        ),
    ] {
        let found = read(json).unwrap_err().to_string();
        assert!(found.contains(error), "{json}: {found}");
    }
}

#[test]
fn amounts_may_be_money_and_those_of_the_limit_that_counts_money_are_printed_so() {
    for (text, printed, amount) in [
        ("usd:$10 per month", "usd:$10 per month", 10_000_000),
        ("usd:$12.5/day", "usd:$12.50/day", 12_500_000),
        ("usd:1/min", "usd:$0.000001/min", 1),
        ("spend:$10 per month", "spend:10000000 per month", 10_000_000),
    ] {
        let limit = parse(text);
        assert_eq!(limit.capacity().get(), amount, "{text}");
        assert_eq!(limit.to_string(), printed);
        assert_eq!(parse(printed), limit);
    }
    let rate = parse("usd:$1/min:$2@$0.50");
    assert_eq!(rate.to_string(), "usd:$1/min:$2@$0.50");
    let amounts = (rate.burst().get(), rate.rate().unwrap().refill_amount().get());
    assert_eq!(amounts, (2_000_000, 500_000));
    for (text, rule) in [
        ("usd:$0.0000001/day", "it must have at most 6 decimal places"),
        ("usd:$ per day", "write dollars, such as $12.50"),
        ("usd:$1000001 per day", "it must be at most $1000000.00"),
        ("usd:$0 per day", "it must be above 0"),
        ("usd:$8 at once for 10min", "is not a whole number"),
        ("usd:$8/$1s", "is not sec, min, hour, day"),
        ("usd:8 per day alert at $80%", "is not a percentage"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(rule), "{text}: {refusal}");
    }
}

#[test]
fn thresholds_of_a_quota_are_sorted_percentages() {
    let quota = parse("spend:500 per month  alert at 100%  80% 80%");
    assert_eq!(quota.to_string(), "spend:500 per month alert at 80% 100%");
    let in_berlin = parse("spend:500 per week from sunday at 06:00 in Europe/Berlin alert at 95%");
    assert_eq!(
        in_berlin.to_string(),
        "spend:500 per week from sunday at 06:00 in Europe/Berlin alert at 95%"
    );
    let json = r#"{"name":"spend","quota":500,"per":"month","alert_at":[80,100]}"#;
    assert_eq!(serde_json::to_string(&quota).unwrap(), json);
    assert_eq!(serde_json::from_str::<Limit>(json).unwrap(), quota);
    let without = r#"{"name":"spend","quota":500,"per":"month"}"#;
    assert_eq!(
        serde_json::to_string(&parse("spend:500 per month")).unwrap(),
        without
    );
}

#[test]
fn invalid_thresholds_are_refused_with_the_rule() {
    for (text, rule) in [
        (
            "alert at 0%",
            "alert threshold 0 of limit spend is invalid: it must be 1 to 100 percent",
        ),
        (
            "alert at 101%",
            "alert threshold 101 of limit spend is invalid: it must be 1 to 100 percent",
        ),
        (
            "alert at 1% 2% 3% 4% 5% 6% 7% 8% 9% 10% 11%",
            "alert threshold 11 of limit spend is invalid: a quota has at most 10 thresholds",
        ),
        ("alert at 80", "\"80\" is not a percentage such as 80%"),
        ("alert at 80.5%", "\"80.5%\" is not a percentage such as 80%"),
        ("alert at", "\"alert\" must be followed by \"at\" and percentages"),
        (
            "alert 80%",
            "\"alert\" must be followed by \"at\" and percentages",
        ),
        ("in UTC alert at 80% in UTC", "\"in\" is not a percentage"),
    ] {
        let refusal = refusal(&format!("spend:500 per month {text}"));
        assert!(refusal.contains(rule), "{text}: {refusal}");
    }
    let rate = Limit::per_minute("rpm", 5).unwrap().alert_at([80]).unwrap_err();
    assert_eq!(
        rate.to_string(),
        "alert threshold 80 of limit rpm is invalid: only a quota has thresholds"
    );
    for json in [
        r#"{"name":"spend","quota":500,"per":"month","alert_at":[0]}"#,
        r#"{"name":"parallel","concurrency":5,"expires_after_seconds":60,"alert_at":[80]}"#,
        r#"{"name":"rpm","capacity":5,"burst":5,"refill_amount":5,"refill_period_seconds":60,"alert_at":[80]}"#,
    ] {
        assert!(serde_json::from_str::<Limit>(json).is_err(), "{json}");
    }
}
