//! Hours, days and months in UTC; times as text; ids that sort by time.

use crate::common::{config, second};
use proptest::prelude::*;
use zae_limiter_schema::{Timestamp, Ulid, Window, WindowKind};

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Any time with a whole month of the calendar after it.
fn time() -> impl Strategy<Value = Timestamp> {
    let last = at("9999-11-30T23:59:59Z").millis();
    prop_oneof![0..=4_102_444_800_000i64, 0..=last].prop_map(Timestamp::from_millis)
}

fn kind() -> impl Strategy<Value = WindowKind> {
    proptest::sample::select(WindowKind::ALL.to_vec())
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_time_is_in_its_window_and_windows_tile_time(kind in kind(), time in time()) {
        let window = kind.window_at(time);
        prop_assert!(window.start() <= time && time < window.end());
        prop_assert_eq!(kind.window_at(window.start()), window);
        prop_assert_eq!(kind.window_at(window.end().plus_millis(-1)), window);
        let next = kind.window_at(window.end());
        prop_assert_eq!(next.start(), window.end());
        prop_assert!(next.key() > window.key(), "keys sort by time");
    }

    #[test]
    fn hours_lie_in_days_and_days_in_months(time in time()) {
        let [hour, day, month] = WindowKind::ALL.map(|kind| kind.window_at(time));
        prop_assert!(day.start() <= hour.start() && hour.end() <= day.end());
        prop_assert!(month.start() <= day.start() && day.end() <= month.end());
        prop_assert!(hour.key().starts_with(&day.key()) && day.key().starts_with(&month.key()));
    }

    #[test]
    fn a_time_round_trips_through_text_to_the_second(time in second(), millis in 0..1000i64) {
        prop_assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        prop_assert_eq!(time.plus_millis(millis).to_string(), time.to_string());
        let json = serde_json::to_string(&time).unwrap();
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
    }

    #[test]
    fn text_is_a_time_only_in_the_one_form_that_is_printed(
        text in prop_oneof![
            ".{0,30}",
            "[+-]?[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
            "[+-]?20[0-9]{2}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-5][0-9]:[0-6][0-9][Zz]?\n?",
        ],
    ) {
        if let Ok(time) = Timestamp::parse(&text) {
            prop_assert_eq!(time.to_string(), text);
        }
    }

    #[test]
    fn a_ulid_round_trips_and_keeps_its_time(millis in 0..=Timestamp::MAX.millis(), random in any::<u128>()) {
        let time = Timestamp::from_millis(millis);
        let id = Ulid::new(time, random);
        let text = id.to_string();
        prop_assert_eq!(text.len(), 26);
        prop_assert_eq!(Ulid::parse(&text), Some(id));
        prop_assert_eq!(Ulid::parse(&text.to_lowercase()), Some(id));
        prop_assert_eq!(id.timestamp(), time);
    }

    #[test]
    fn ulids_sort_by_time_as_values_and_as_text(
        earlier in 0..Timestamp::MAX.millis(),
        later in 1..=1_000_000_000i64,
        chances in any::<(u128, u128)>(),
    ) {
        let early = Ulid::new(Timestamp::from_millis(earlier), chances.0);
        let late = Ulid::new(Timestamp::from_millis(earlier).plus_millis(later), chances.1);
        prop_assert!(early < late);
        prop_assert!(early.to_string() < late.to_string());
    }

    #[test]
    fn any_text_is_a_ulid_of_that_text_or_none(text in prop_oneof![".{0,30}", "[0-9A-Za-z]{26}", "[0-7][0-9A-HJKMNP-TV-Z]{25}"]) {
        if let Some(id) = Ulid::parse(&text) {
            prop_assert_eq!(id.to_string(), text.to_uppercase());
        }
    }
}

#[test]
fn months_have_their_lengths() {
    let days = |month: &str| {
        let window = WindowKind::Monthly.window_at(at(&format!("{month}-15T12:34:56Z")));
        assert_eq!(window.key(), month);
        window.end().since(window.start()) / 86_400_000
    };
    let year: Vec<_> = (1..=12).map(|month| days(&format!("2023-{month:02}"))).collect();
    assert_eq!(year, [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]);
    assert_eq!(days("2024-02"), 29, "every fourth year is a leap year");
    assert_eq!(days("2100-02"), 28, "but not a hundredth");
    assert_eq!(days("2000-02"), 29, "except a four hundredth");
}

#[test]
fn a_leap_day_has_its_own_windows() {
    let day = WindowKind::Daily.window_at(at("2024-02-29T23:59:59Z"));
    assert_eq!(day.key(), "2024-02-29");
    assert_eq!(day.end(), at("2024-03-01T00:00:00Z"));
    assert!(Timestamp::parse("2023-02-29T00:00:00Z").is_err());
    assert!(Timestamp::parse("2100-02-29T00:00:00Z").is_err());
    let last = WindowKind::Daily.window_at(at("2100-02-28T00:00:00Z"));
    assert_eq!(last.end(), at("2100-03-01T00:00:00Z"));
}

#[test]
fn every_window_ends_with_the_year() {
    let last = at("2025-12-31T23:59:59Z").plus_millis(999);
    let next = at("2026-01-01T00:00:00Z");
    for kind in WindowKind::ALL {
        assert_eq!(kind.window_at(last).end(), next, "{kind}");
        assert_eq!(kind.window_at(next).start(), next, "{kind}");
    }
    assert_eq!(WindowKind::Monthly.window_at(last).key(), "2025-12");
    assert_eq!(WindowKind::Monthly.window_at(next).key(), "2026-01");
}

#[test]
fn the_hour_the_day_and_the_month_that_start_together_have_three_keys() {
    let midnight = at("2026-01-01T00:00:00Z");
    let windows = WindowKind::ALL.map(|kind| kind.window_at(midnight));
    assert!(windows.iter().all(|window| window.start() == midnight));
    let keys = windows.map(Window::key);
    assert_eq!(keys, ["2026-01-01T00:00:00Z", "2026-01-01", "2026-01"]);
}

#[test]
fn the_ends_of_time_are_times_like_others() {
    assert_eq!(Timestamp::MIN.to_string(), "1970-01-01T00:00:00Z");
    assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59Z");
    assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
    assert_eq!(Timestamp::from_seconds(i64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MAX.plus_millis(i64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MIN.since(Timestamp::MAX), 0);
    assert!(Timestamp::parse("1969-12-31T23:59:59Z").is_err());
    for kind in WindowKind::ALL {
        assert_eq!(kind.window_at(Timestamp::MAX).end(), Timestamp::MAX, "{kind}");
        assert_eq!(kind.window_at(Timestamp::MIN).start(), Timestamp::MIN, "{kind}");
    }
}

#[test]
fn kinds_of_windows_are_read_as_they_are_written() {
    for kind in WindowKind::ALL {
        assert_eq!(kind.to_string().parse::<WindowKind>(), Ok(kind));
    }
    assert_eq!(
        "weekly".parse::<WindowKind>().unwrap_err().to_string(),
        "window \"weekly\" is invalid: it must be hourly, daily or monthly"
    );
}

#[test]
fn a_ulid_has_48_bits_of_time_and_no_more_than_128_bits() {
    let most = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
    assert_eq!(Ulid::parse(most).unwrap().to_string(), most);
    assert_eq!(Ulid::parse("80000000000000000000000000"), None, "129 bits");
    assert_eq!(Ulid::parse("0000000000000000000000000"), None, "25 characters");
    assert_eq!(
        Ulid::parse("0000000000000000000000000U"),
        None,
        "not of the alphabet"
    );
    assert_eq!(Ulid::parse("0000000000000000000000000\n"), None);
    let id = Ulid::new(Timestamp::from_millis(1_469_918_176_385), u128::MAX);
    assert_eq!(
        id.to_string(),
        "01ARYZ6S41ZZZZZZZZZZZZZZZZ",
        "random stays in its 80 bits"
    );
}
