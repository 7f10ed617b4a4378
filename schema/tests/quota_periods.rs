//! When the periods of quotas begin and end.

use std::process::Command;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use zae_limiter_schema::{Limit, QuotaPeriod, Timestamp, Weekday};

use crate::common::{config, quota_period};

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn period(text: &str) -> QuotaPeriod {
    text.parse().unwrap()
}

/// The end of the period around a time.
fn end(period_text: &str, now: &str) -> String {
    period(period_text).end_after(at(now)).to_string()
}

/// Start and end of a calendar period, and its hours.
fn around(period: &QuotaPeriod, now: Timestamp) -> (Timestamp, Timestamp, u64) {
    let (end, seconds) = (period.end_after(now), period.length_seconds(now));
    let start = Timestamp::from_seconds(end.seconds() - i64::try_from(seconds).unwrap());
    (start, end, seconds)
}

/// Each row: period, a time in it, its start and end in UTC, and its length in minutes.
fn check(rows: &[(&str, &str, &str, &str, u64)]) {
    for (text, now, starts, ends, minutes) in rows {
        let (start, end, seconds) = around(&period(text), at(now));
        let found = (start.to_string(), end.to_string(), seconds);
        let expected = ((*starts).to_owned(), (*ends).to_owned(), minutes * 60);
        assert_eq!(found, expected, "{text} around {now}");
    }
}

#[test]
fn days_on_which_the_clock_changes_have_23_or_25_hours() {
    check(&[
        (
            "day in Europe/Berlin",
            "2026-03-29T10:00:00Z",
            "2026-03-28T23:00:00Z",
            "2026-03-29T22:00:00Z",
            23 * 60,
        ),
        (
            "day in Europe/Berlin",
            "2026-10-25T10:00:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-25T23:00:00Z",
            25 * 60,
        ),
        (
            "day in America/New_York",
            "2026-03-08T12:00:00Z",
            "2026-03-08T05:00:00Z",
            "2026-03-09T04:00:00Z",
            23 * 60,
        ),
        (
            "day in America/New_York",
            "2026-11-01T12:00:00Z",
            "2026-11-01T04:00:00Z",
            "2026-11-02T05:00:00Z",
            25 * 60,
        ),
        // Here the clock changes by half an hour.
        (
            "day in Australia/Lord_Howe",
            "2026-10-03T20:00:00Z",
            "2026-10-03T13:30:00Z",
            "2026-10-04T13:00:00Z",
            23 * 60 + 30,
        ),
        (
            "day in Australia/Lord_Howe",
            "2026-04-04T20:00:00Z",
            "2026-04-04T13:00:00Z",
            "2026-04-05T13:30:00Z",
            24 * 60 + 30,
        ),
    ]);
}

#[test]
fn a_period_whose_boundary_is_skipped_begins_as_much_later() {
    check(&[
        // 02:00 on March 29 does not exist: the period begins at 03:00.
        (
            "day at 02:00 in Europe/Berlin",
            "2026-03-28T12:00:00Z",
            "2026-03-28T01:00:00Z",
            "2026-03-29T01:00:00Z",
            24 * 60,
        ),
        (
            "day at 02:00 in Europe/Berlin",
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-30T00:00:00Z",
            23 * 60,
        ),
        (
            "week from sunday at 02:00 in America/New_York",
            "2026-03-08T07:00:00Z",
            "2026-03-08T07:00:00Z",
            "2026-03-15T06:00:00Z",
            7 * 24 * 60 - 60,
        ),
        // 02:00 on October 4 becomes 02:30.
        (
            "month from day 4 at 02:00 in Australia/Lord_Howe",
            "2026-10-03T15:30:00Z",
            "2026-10-03T15:30:00Z",
            "2026-11-03T15:00:00Z",
            31 * 24 * 60 - 30,
        ),
    ]);
}

#[test]
fn a_period_whose_boundary_occurs_twice_begins_with_the_first() {
    check(&[
        (
            "day at 02:00 in Europe/Berlin",
            "2026-10-24T23:59:59Z",
            "2026-10-24T00:00:00Z",
            "2026-10-25T00:00:00Z",
            24 * 60,
        ),
        // 02:30 for the second time.
        (
            "day at 02:00 in Europe/Berlin",
            "2026-10-25T01:30:00Z",
            "2026-10-25T00:00:00Z",
            "2026-10-26T01:00:00Z",
            25 * 60,
        ),
        (
            "week from sunday at 01:00 in America/New_York",
            "2026-11-01T06:30:00Z",
            "2026-11-01T05:00:00Z",
            "2026-11-08T06:00:00Z",
            7 * 24 * 60 + 60,
        ),
    ]);
}

#[test]
fn hours_are_those_of_the_local_clock() {
    check(&[
        (
            "hour",
            "2026-05-01T10:20:00Z",
            "2026-05-01T10:00:00Z",
            "2026-05-01T11:00:00Z",
            60,
        ),
        (
            "hour in Asia/Kolkata",
            "2026-05-01T10:20:00Z",
            "2026-05-01T09:30:00Z",
            "2026-05-01T10:30:00Z",
            60,
        ),
        (
            "hour in Asia/Kathmandu",
            "2026-05-01T10:20:00Z",
            "2026-05-01T10:15:00Z",
            "2026-05-01T11:15:00Z",
            60,
        ),
        // The hour that occurs twice is two hours.
        (
            "hour in Europe/Berlin",
            "2026-10-25T00:30:00Z",
            "2026-10-25T00:00:00Z",
            "2026-10-25T01:00:00Z",
            60,
        ),
        (
            "hour in Europe/Berlin",
            "2026-10-25T01:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T02:00:00Z",
            60,
        ),
    ]);
}

#[test]
fn a_month_without_the_day_begins_on_its_last() {
    for (now, expected) in [
        ("2026-01-15T00:00:00Z", "2026-01-31T00:00:00Z"),
        ("2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"),
        ("2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("2026-03-31T00:00:00Z", "2026-04-30T00:00:00Z"),
        ("2026-04-30T00:00:00Z", "2026-05-31T00:00:00Z"),
        ("2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z"),
        ("2028-01-31T12:00:00Z", "2028-02-29T00:00:00Z"),
    ] {
        assert_eq!(end("month from day 31", now), expected);
    }
    assert_eq!(
        end("month from day 29", "2026-02-01T00:00:00Z"),
        "2026-02-28T00:00:00Z"
    );
    assert_eq!(
        end("month from day 29", "2028-02-01T00:00:00Z"),
        "2028-02-29T00:00:00Z"
    );
    // The hour counts too: it is still the period before.
    let early = end("month from day 31 at 06:00", "2026-02-28T05:59:59Z");
    assert_eq!(early, "2026-02-28T06:00:00Z");
}

#[test]
fn leap_years_and_the_turn_of_the_year() {
    check(&[
        (
            "year",
            "2028-02-29T00:00:00Z",
            "2028-01-01T00:00:00Z",
            "2029-01-01T00:00:00Z",
            366 * 24 * 60,
        ),
        (
            "year",
            "2026-12-31T23:59:59Z",
            "2026-01-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
            365 * 24 * 60,
        ),
        // In New York it is still the old year, in Kolkata already the new one.
        (
            "year in America/New_York",
            "2027-01-01T04:59:59Z",
            "2026-01-01T05:00:00Z",
            "2027-01-01T05:00:00Z",
            365 * 24 * 60,
        ),
        (
            "year in Asia/Kolkata",
            "2026-12-31T18:30:00Z",
            "2026-12-31T18:30:00Z",
            "2027-12-31T18:30:00Z",
            365 * 24 * 60,
        ),
        (
            "year at 06:00",
            "2027-01-01T05:59:59Z",
            "2026-01-01T06:00:00Z",
            "2027-01-01T06:00:00Z",
            365 * 24 * 60,
        ),
        (
            "month",
            "2028-02-29T23:59:59Z",
            "2028-02-01T00:00:00Z",
            "2028-03-01T00:00:00Z",
            29 * 24 * 60,
        ),
        (
            "day",
            "2028-02-29T12:00:00Z",
            "2028-02-29T00:00:00Z",
            "2028-03-01T00:00:00Z",
            24 * 60,
        ),
        (
            "week",
            "2026-12-31T12:00:00Z",
            "2026-12-28T00:00:00Z",
            "2027-01-04T00:00:00Z",
            7 * 24 * 60,
        ),
    ]);
}

#[test]
fn weeks_begin_on_monday_or_on_the_day_that_is_given() {
    // November 18, 2026 is a Wednesday.
    for (day, starts) in [
        (Weekday::Monday, "2026-11-16"),
        (Weekday::Tuesday, "2026-11-17"),
        (Weekday::Wednesday, "2026-11-18"),
        (Weekday::Thursday, "2026-11-12"),
        (Weekday::Friday, "2026-11-13"),
        (Weekday::Saturday, "2026-11-14"),
        (Weekday::Sunday, "2026-11-15"),
    ] {
        let weeks = QuotaPeriod::week_from(day);
        let (start, _, seconds) = around(&weeks, at("2026-11-18T12:00:00Z"));
        assert_eq!(
            (start.to_string(), seconds),
            (format!("{starts}T00:00:00Z"), 7 * 86_400)
        );
    }
    assert_eq!(QuotaPeriod::week(), QuotaPeriod::week_from(Weekday::Monday));
}

/// Samoa had no December 30 in 2011.
#[test]
fn a_day_that_a_zone_skipped_is_no_period() {
    let days = period("day at 05:00 in Pacific/Apia");
    let (start, end, seconds) = around(&days, at("2011-12-30T10:30:00Z"));
    assert_eq!(start.to_string(), "2011-12-29T15:00:00Z");
    assert_eq!(end.to_string(), "2011-12-30T15:00:00Z");
    assert_eq!(seconds, 86_400);
    let midnight = period("day in Pacific/Apia");
    assert_eq!(
        midnight.end_after(at("2011-12-30T09:59:59Z")),
        at("2011-12-30T10:00:00Z")
    );
    assert_eq!(
        midnight.end_after(at("2011-12-30T10:00:00Z")),
        at("2011-12-31T10:00:00Z")
    );
}

#[test]
fn a_period_from_first_use_is_whole_from_the_call_that_begins_it() {
    let five_hours = QuotaPeriod::from_first_use(Duration::from_secs(5 * 3600)).unwrap();
    let now = Timestamp::from_millis(at("2026-03-29T00:30:00Z").millis() + 123);
    assert_eq!(five_hours.end_after(now).millis() - now.millis(), 5 * 3_600_000);
    assert_eq!(five_hours.length_seconds(now), 5 * 3600);
    assert!(five_hours.is_from_first_use());
    assert!(!QuotaPeriod::day().is_from_first_use());
}

#[test]
fn at_the_end_of_time_periods_still_end_after_now() {
    for text in [
        "hour",
        "day",
        "week",
        "month from day 31",
        "year in Asia/Kolkata",
        "7d from first use",
    ] {
        let last_seconds = Timestamp::from_millis(Timestamp::MAX.millis() - 1);
        assert_eq!(period(text).end_after(last_seconds), Timestamp::MAX, "{text}");
        assert!(period(text).end_after(Timestamp::MIN) > Timestamp::MIN, "{text}");
    }
}

/// The boundary days of a calendar period, one after the other.
fn begins_on(text: &str, day: Date) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        ["day", ..] => true,
        ["week", "from", name, ..] => format!("{:?}", day.weekday()).to_lowercase() == *name,
        ["week", ..] => day.weekday() == jiff::civil::Weekday::Monday,
        ["month", "from", "day", first, ..] => {
            day.day() == first.parse::<i8>().unwrap().min(day.days_in_month())
        }
        ["month", ..] => day.day() == 1,
        ["year", ..] => day.day_of_year() == 1,
        _ => panic!("{text}"),
    }
}

/// The first boundary after a time, looked for day by day.
fn next_boundary(text: &str, now: Timestamp) -> Timestamp {
    let zone = text.rsplit_once(" in ").map_or("UTC", |(_, zone)| zone);
    let hour = text.split_once(" at ").map_or("00", |(_, after)| &after[..2]);
    let zone = TimeZone::get(zone).unwrap();
    let local = jiff::Timestamp::from_millisecond(now.millis())
        .unwrap()
        .to_zoned(zone.clone());
    let mut day = local.date().yesterday().unwrap();
    loop {
        let begins = day.at(hour.parse().unwrap(), 0, 0, 0);
        let begins = zone.to_ambiguous_zoned(begins).compatible().unwrap();
        if begins_on(text, day) && begins.timestamp().as_millisecond() > now.millis() {
            return Timestamp::from_millis(begins.timestamp().as_millisecond());
        }
        day = day.tomorrow().unwrap();
    }
}

/// From 1970 to 2200, often near a change of a clock in the zones that are tested.
fn any_time() -> impl Strategy<Value = Timestamp> {
    let changes = prop_oneof![
        Just("2026-03-29T01:00:00Z"),
        Just("2026-10-25T01:00:00Z"),
        Just("2026-03-08T07:00:00Z"),
        Just("2026-11-01T06:00:00Z"),
        Just("2026-04-04T15:00:00Z"),
        Just("2026-10-03T15:30:00Z"),
        Just("2011-12-30T10:00:00Z"),
        Just("2028-02-29T00:00:00Z"),
        Just("2026-12-31T23:59:59Z"),
    ];
    let near = (changes, -2 * 86_400_000..2 * 86_400_000i64)
        .prop_map(|(change, by)| Timestamp::from_millis(at(change).millis() + by));
    let any = (0..7_258_118_400_000i64).prop_map(Timestamp::from_millis);
    prop_oneof![near, any]
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn now_is_in_its_period_and_the_next_ends_later(period in quota_period(), now in any_time()) {
        let (_, end, seconds) = around(&period, now);
        prop_assert!(end > now);
        prop_assert!(seconds > 0);
        prop_assert!(end.millis() - i64::try_from(seconds).unwrap() * 1000 <= now.millis(), "{}", period);
        let mut last = end;
        for _ in 0..4 {
            let next = period.end_after(last);
            prop_assert!(next > last, "{}: {} then {}", period, last, next);
            last = next;
        }
    }

    /// Clients agree on the boundary wherever in the period they begin it.
    #[test]
    fn a_calendar_period_ends_at_the_same_time_for_all_of_it(
        period in quota_period(), now in any_time(), part in 0.0..1.0f64,
    ) {
        if !period.is_from_first_use() {
            let end = period.end_after(now);
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "any time in the period will do")]
            let later = now.plus_millis(((end.millis() - now.millis() - 1) as f64 * part) as i64);
            prop_assert_eq!(period.end_after(later), end, "{} at {} and {}", period, now, later);
        }
    }

    #[test]
    fn a_calendar_period_ends_at_the_first_boundary_of_its_zone(period in quota_period(), now in any_time()) {
        let text = period.to_string();
        if !period.is_from_first_use() && !text.starts_with("hour") {
            prop_assert_eq!(period.end_after(now), next_boundary(&text, now), "{} after {}", period, now);
        }
    }

    #[test]
    fn lengths_of_periods_from_first_use(seconds in 1..=Limit::MAX_PERIOD_SECONDS, now in any_time()) {
        let period = QuotaPeriod::from_first_use(Duration::from_secs(seconds)).unwrap();
        prop_assert_eq!(u64::try_from(period.end_after(now).since(now)).unwrap(), seconds * 1000);
    }
}

/// Runs the tests above again in a process with another time zone and no time zone database.
#[test]
fn neither_the_zone_of_the_process_nor_the_databases_of_the_machine_matter() {
    for zone in ["Asia/Tokyo", "America/St_Johns", "nonsense"] {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--test-threads=1"])
            .args([
                "quota_periods::days_on_which_the_clock_changes_have_23_or_25_hours",
                "quota_periods::leap_years_and_the_turn_of_the_year",
                "quota_periods::hours_are_those_of_the_local_clock",
            ])
            .env("TZ", zone)
            .env("TZDIR", "/nonexistent")
            .env("PROPTEST_CASES", "10")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success() && output.contains("3 passed"),
            "{zone}: {output}"
        );
    }
}
