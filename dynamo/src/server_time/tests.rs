use zae_limiter_schema::Timestamp;

use super::*;

fn observed(date: &str) -> i64 {
    let local = LocalTime {
        now: Timestamp::parse("2026-01-31T12:01:00Z").unwrap_or_default(),
        elapsed: Duration::from_secs(7),
    };
    let watch = ServerTime::new(move || local);
    watch.observe(date, local.elapsed);
    watch.offset()
}

#[test]
fn the_date_of_a_response_shows_how_far_the_clock_is_off() {
    assert_eq!(observed("Sat, 31 Jan 2026 12:00:00 GMT"), -59_500);
    assert_eq!(observed("Sat, 31 Jan 2026 12:00:59 GMT"), 0);
}

#[test]
fn what_is_no_date_changes_nothing() {
    assert_eq!(observed("yesterday"), 0);
}
