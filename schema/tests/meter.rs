//! Properties of the reference arithmetic of one limit.
#![allow(clippy::unwrap_used)]

mod common;

use common::{config, elapsed, meter};
use proptest::prelude::*;
use zae_limiter_schema::bucket::Wait;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn refill_over_any_split_equals_refill_over_the_whole(
        meter in meter(),
        parts in proptest::collection::vec(elapsed(), 0..12),
    ) {
        let whole = meter.refilled(parts.iter().sum());
        let split = parts.iter().fold(meter.refilled(0), |meter, part| meter.refilled(*part));
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn refill_gives_exactly_the_floor_of_elapsed_times_rate_up_to_the_burst(meter in meter(), elapsed in elapsed()) {
        let earned = (elapsed * meter.params.amount() + meter.remainder) / meter.params.period();
        prop_assert_eq!(meter.refilled(elapsed).tokens, meter.params.burst().min(meter.tokens + earned));
    }

    #[test]
    fn the_level_is_never_above_the_burst(meter in meter(), elapsed in elapsed(), amount in 0..1_000_000_000i128) {
        let burst = meter.params.burst();
        prop_assert!(meter.available(elapsed) <= burst);
        prop_assert!(meter.refilled(elapsed).tokens <= burst);
        prop_assert!(meter.credit(elapsed, amount).tokens <= burst);
        prop_assert!(meter.credit(elapsed, amount).refilled(elapsed).tokens <= burst);
    }

    #[test]
    fn reading_changes_nothing(meter in meter(), at in elapsed(), later in elapsed()) {
        let before = meter.available(at + later);
        let _ = meter.available(at);
        prop_assert_eq!(meter.refilled(at).available(later), before);
    }

    #[test]
    fn an_amount_is_refused_until_the_promised_moment_and_admitted_then(
        meter in meter(),
        at in elapsed(),
        part in 1..=1_000i128,
    ) {
        let amount = (meter.params.burst() * part / 1_000).max(1);
        match meter.wait_for(at, amount) {
            Wait::Now => prop_assert!(meter.try_take(at, amount).is_ok()),
            Wait::Never => prop_assert!(amount > meter.params.burst()),
            Wait::After(millis) => {
                prop_assert!(millis > 0);
                prop_assert!(meter.try_take(at, amount).is_err());
                prop_assert!(meter.try_take(at + millis - 1, amount).is_err());
                prop_assert!(meter.try_take(at + millis, amount).is_ok());
            }
        }
    }

    #[test]
    fn more_than_the_burst_never_fits(meter in meter(), at in elapsed(), extra in 1..1_000_000i128) {
        let amount = meter.params.burst() + extra;
        prop_assert_eq!(meter.wait_for(at, amount), Wait::Never);
        prop_assert_eq!(meter.try_take(at, amount).unwrap_err().wait, Wait::Never);
    }

    #[test]
    fn a_clock_that_went_backwards_changes_nothing(meter in meter(), back in 0..i128::from(i64::MAX)) {
        prop_assert_eq!(meter.refilled(-back), meter.refilled(0));
        prop_assert_eq!(meter.available(-back), meter.available(0));
    }

    #[test]
    fn taking_and_giving_back_at_once_is_nothing(meter in meter(), at in elapsed(), amount in 0..1_000_000_000i128) {
        let refilled = meter.refilled(at);
        let back = refilled.force_take(0, amount).credit(0, amount);
        prop_assert_eq!(back.tokens, refilled.tokens);
    }
}
