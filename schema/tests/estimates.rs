//! What callers are told: how large an item gets and when to try again.

use std::time::Duration;

use crate::common::{entity, name, resource};
use zae_limiter_schema::bucket::{RetryAfter, estimated_bytes};

#[test]
fn the_size_of_a_bucket_grows_with_every_name_limit_and_slot() {
    let (user, model, parent) = (entity("user-1"), resource("gpt-4"), entity("org-12"));
    let bytes = |parent, limits: &[&str], slots| {
        let limits: Vec<_> = limits.iter().map(|text| name(text)).collect();
        estimated_bytes(&user, &model, parent, limits.iter(), slots)
    };
    let fixed = 119 + 3 * 6 + 3 * 5;
    assert_eq!(bytes(None, &[], 0), fixed);
    assert_eq!(bytes(Some(&parent), &[], 0), fixed + 9 + 6);
    assert_eq!(bytes(None, &["rpm"], 0), fixed + 78 + 7 * 3);
    assert_eq!(bytes(None, &["rpm", "tokens"], 0), fixed + 2 * 78 + 7 * 9);
    assert_eq!(bytes(None, &[], 2), fixed + 2 * 18);
    assert_eq!(bytes(Some(&parent), &["rpm", "tokens"], 2), 422);
}

#[test]
fn a_wait_is_told_in_seconds_unless_it_never_ends() {
    assert_eq!(RetryAfter::Now.seconds(), Some(0.0));
    assert_eq!(RetryAfter::after_millis(2_500).seconds(), Some(2.5));
    assert_eq!(RetryAfter::Never.seconds(), None);
    let longest = RetryAfter::After(Duration::from_millis(u64::MAX));
    assert_eq!(RetryAfter::after_millis(i128::MAX), longest);
    assert!(RetryAfter::Now < RetryAfter::after_millis(1) && RetryAfter::after_millis(1) < RetryAfter::Never);
}
