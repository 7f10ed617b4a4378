//! Properties of the reference arithmetic of one limit.

use crate::common::{config, elapsed, token_bucket};
use proptest::prelude::*;
use zae_limiter_schema::bucket::RetryAfter;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn refill_over_any_split_equals_refill_over_the_whole(
        token_bucket in token_bucket(),
        parts in proptest::collection::vec(elapsed(), 0..12),
    ) {
        let whole = token_bucket.refilled(parts.iter().sum());
        let split = parts.iter().fold(token_bucket.refilled(0), |token_bucket, part| token_bucket.refilled(*part));
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn refill_gives_exactly_the_floor_of_elapsed_times_rate_up_to_the_burst(token_bucket in token_bucket(), elapsed in elapsed()) {
        let earned = (elapsed * token_bucket.params.amount() + token_bucket.remainder) / token_bucket.params.period();
        prop_assert_eq!(token_bucket.refilled(elapsed).tokens, token_bucket.params.burst().min(token_bucket.tokens + earned));
    }

    #[test]
    fn the_level_is_never_above_the_burst(token_bucket in token_bucket(), elapsed in elapsed(), amount in 0..1_000_000_000i128) {
        let burst = token_bucket.params.burst();
        prop_assert!(token_bucket.available(elapsed) <= burst);
        prop_assert!(token_bucket.refilled(elapsed).tokens <= burst);
        prop_assert!(token_bucket.credit(elapsed, amount).tokens <= burst);
        prop_assert!(token_bucket.credit(elapsed, amount).refilled(elapsed).tokens <= burst);
    }

    #[test]
    fn reading_changes_nothing(token_bucket in token_bucket(), at in elapsed(), later in elapsed()) {
        let before = token_bucket.available(at + later);
        let _ = token_bucket.available(at);
        prop_assert_eq!(token_bucket.refilled(at).available(later), before);
    }

    #[test]
    fn an_amount_is_refused_until_the_promised_time_and_admitted_then(
        token_bucket in token_bucket(),
        at in elapsed(),
        part in 1..=1_000i128,
    ) {
        let amount = (token_bucket.params.burst() * part / 1_000).max(1);
        match token_bucket.wait_for(at, amount) {
            RetryAfter::Now => prop_assert!(token_bucket.try_take(at, amount).is_ok()),
            RetryAfter::Never => prop_assert!(amount > token_bucket.params.burst()),
            RetryAfter::After(time) => {
                let millis = i128::try_from(time.as_millis()).unwrap_or(i128::MAX);
                prop_assert!(millis > 0);
                prop_assert!(token_bucket.try_take(at, amount).is_err());
                prop_assert!(token_bucket.try_take(at + millis - 1, amount).is_err());
                // Beyond 584 million years the promise saturates.
                let exact = millis < i128::from(u64::MAX);
                prop_assert!(!exact || token_bucket.try_take(at + millis, amount).is_ok());
            }
        }
    }

    #[test]
    fn more_than_the_burst_never_fits(token_bucket in token_bucket(), at in elapsed(), extra in 1..1_000_000i128) {
        let amount = token_bucket.params.burst() + extra;
        prop_assert_eq!(token_bucket.wait_for(at, amount), RetryAfter::Never);
        prop_assert_eq!(token_bucket.try_take(at, amount).unwrap_err().wait, RetryAfter::Never);
    }

    #[test]
    fn a_clock_that_went_backwards_changes_nothing(token_bucket in token_bucket(), back in 0..i128::from(i64::MAX)) {
        prop_assert_eq!(token_bucket.refilled(-back), token_bucket.refilled(0));
        prop_assert_eq!(token_bucket.available(-back), token_bucket.available(0));
    }

    #[test]
    fn taking_and_giving_back_at_once_is_nothing(token_bucket in token_bucket(), at in elapsed(), amount in 0..1_000_000_000i128) {
        let refilled = token_bucket.refilled(at);
        let back = refilled.force_take(0, amount).credit(0, amount);
        prop_assert_eq!(back.tokens, refilled.tokens);
    }
}
