//! Numbers worked out by hand from the formulas of the token bucket.
//!
//! The Python peer computes with the same integers. Where it rounds and we are exact, the test says so.

use zae_limiter_schema::bucket::{Params, RetryAfter, TokenBucket, TtlRule};
use zae_limiter_schema::{Limit, whole_tokens};

fn params(limit: &str) -> Params {
    Params::from(limit.parse::<Limit>().unwrap().rate().unwrap())
}

fn token_bucket(limit: &str, tokens: i128) -> TokenBucket {
    TokenBucket {
        params: params(limit),
        tokens,
        remainder: 0,
    }
}

#[test]
fn a_limit_is_stored_in_millitokens_and_milliseconds() {
    let stored = params("rpm:100:150");
    assert_eq!(
        (
            stored.capacity(),
            stored.burst(),
            stored.amount(),
            stored.period()
        ),
        (100_000, 150_000, 100_000, 60_000)
    );
}

#[test]
fn refill_is_elapsed_times_amount_by_period_rounded_down() {
    let empty = token_bucket("rpm:100", 0);
    for (elapsed, tokens, remainder) in [
        (0, 0, 0),
        (1, 1, 40_000),         // 100,000 / 60,000
        (2, 3, 20_000),         // 200,000 / 60,000
        (3, 5, 0),              // 300,000 / 60,000
        (600, 1_000, 0),        // the first whole token
        (1_000, 1_666, 40_000), // 100,000,000 / 60,000
        (30_000, 50_000, 0),    // half a minute, half the limit
        (59_999, 99_998, 20_000),
        (60_000, 100_000, 0),
        (3_600_000, 100_000, 0), // never above the burst
    ] {
        let refilled = empty.refilled(elapsed);
        assert_eq!(
            (refilled.tokens, refilled.remainder),
            (tokens, remainder),
            "after {elapsed} ms"
        );
    }
}

/// The peer has no remainder: it moves `rf` by `add × period // amount`, here by 999 of 1,000 ms, and so gives 3
/// more after the next millisecond, 1,669 in all, where 1,668 have come back.
#[test]
fn the_remainder_is_kept_where_the_peer_rounds_the_time_of_refill() {
    let after_a_second = token_bucket("rpm:100", 0).refilled(1_000);
    let a_millisecond_later = after_a_second.refilled(1);
    assert_eq!(
        (a_millisecond_later.tokens, a_millisecond_later.remainder),
        (1_668, 20_000)
    );
    assert_eq!(a_millisecond_later, token_bucket("rpm:100", 0).refilled(1_001));
}

#[test]
fn a_slow_limit_loses_nothing_to_a_fast_one_that_shares_its_time_of_refill() {
    // One a day is a millitoken every 86.4 s. Taken each second, every single division gives nothing.
    let mut day = token_bucket("rpd:1/day", 0);
    for _ in 0..86 {
        day = day.refilled(1_000);
    }
    assert_eq!((day.tokens, day.remainder), (0, 86_000_000));
    assert_eq!(day.refilled(399).tokens, 0);
    assert_eq!((day.refilled(400).tokens, day.refilled(400).remainder), (1, 0));
    assert_eq!(
        (0..86_400)
            .fold(token_bucket("rpd:1/day", 0), |m, _| m.refilled(1_000))
            .tokens,
        1_000
    );
}

/// The peer returns 6.001 s, 0.601 s and 90.001 s: it always adds a millisecond. Where the division leaves something
/// over, the two agree: 8.572 s.
#[test]
fn the_wait_is_deficit_times_period_by_amount_rounded_up() {
    assert_eq!(
        token_bucket("rpm:100", 0).wait_for(0, 10_000),
        RetryAfter::after_millis(6_000)
    );
    assert_eq!(
        token_bucket("rpm:100", 0).wait_for(0, 1_000),
        RetryAfter::after_millis(600)
    );
    assert_eq!(
        token_bucket("tpm:1000", -1_500_000).wait_for(0, 0),
        RetryAfter::after_millis(90_000)
    );
    // 1,000 × 60,000 / 7,000 = 8,571.4…
    assert_eq!(
        token_bucket("rpm:7", 0).wait_for(0, 1_000),
        RetryAfter::after_millis(8_572)
    );
    assert_eq!(
        token_bucket("rpm:100", 10_000).wait_for(0, 10_000),
        RetryAfter::Now
    );
    // Part of the wait is over.
    assert_eq!(
        token_bucket("rpm:100", 0).wait_for(2_500, 10_000),
        RetryAfter::after_millis(3_500)
    );
}

#[test]
fn what_is_asked_is_refused_at_every_earlier_millisecond_and_admitted_at_that_one() {
    let empty = token_bucket("rpm:7", 0);
    for elapsed in 0..8_572 {
        let refused = empty.try_take(elapsed, 1_000).unwrap_err();
        assert_eq!(refused.wait, RetryAfter::after_millis(8_572 - elapsed));
    }
    let taken = empty.try_take(8_572, 1_000).unwrap();
    // 8,572 × 7,000 = 60,004,000 = 1,000 × 60,000 + 4,000
    assert_eq!((taken.tokens, taken.remainder), (0, 4_000));
}

/// The peer names a finite time for this.
#[test]
fn more_than_the_burst_is_never_there() {
    assert_eq!(
        token_bucket("rpm:100:150", 0).wait_for(0, 150_001),
        RetryAfter::Never
    );
    assert_eq!(
        token_bucket("rpm:100:150", 0).wait_for(0, 150_000),
        RetryAfter::after_millis(90_000)
    );
}

#[test]
fn a_bucket_starts_with_the_burst_and_then_sustains_the_capacity() {
    let full = TokenBucket::full(params("tpm:10000:15000"));
    let empty = full.try_take(0, 15_000_000).unwrap();
    assert_eq!(empty.available(60_000), 10_000_000);
    assert_eq!(empty.available(90_000), 15_000_000);
    assert_eq!(empty.available(120_000), 15_000_000);
}

#[test]
fn five_hundred_were_estimated_and_two_thousand_used() {
    let before = token_bucket("tpm:1000", 500_000);
    let admitted = before.try_take(0, 500_000).unwrap();
    assert_eq!(admitted.tokens, 0);
    let adjusted = admitted.force_take(0, 2_000_000 - 500_000);
    assert_eq!(adjusted.tokens, -1_500_000);
    // 1,500 tokens of debt at 1,000 a minute: a minute and a half.
    assert_eq!(adjusted.available(89_999), -17);
    assert_eq!(adjusted.available(90_000), 0);
    assert_eq!(adjusted.wait_for(0, 1_000), RetryAfter::after_millis(90_060));
    assert!(adjusted.try_take(90_059, 1_000).is_err());
    assert!(adjusted.try_take(90_060, 1_000).is_ok());
}

#[test]
fn what_was_not_used_goes_back_and_never_above_the_burst() {
    let after = token_bucket("tpm:1000", 200_000);
    assert_eq!(after.credit(0, 300_000).tokens, 500_000);
    assert_eq!(after.credit(0, 800_001).tokens, 1_000_000);
    // A level above the burst, as an unclamped refund of the peer leaves it, is cut.
    assert_eq!(token_bucket("rpm:100", 120_000).available(0), 100_000);
}

#[test]
fn people_see_whole_tokens_rounded_down_below_zero_too() {
    let seen = [1_999, 1_000, 999, 0, -1, -1_000, -1_001].map(whole_tokens);
    assert_eq!(seen, [1, 1, 0, 0, -1, -1, -2]);
}

#[test]
fn the_time_to_fill_is_that_of_the_burst_rounded_up() {
    assert_eq!(params("rpm:100").fill_time(), 60_000);
    assert_eq!(params("tpm:10000:15000").fill_time(), 90_000);
    assert_eq!(params("slow:1000/min@10").fill_time(), 6_000_000);
    assert_eq!(params("rpd:1/day").fill_time(), 86_400_000);
    // 10,000 × 60,000 / 7,000 = 85,714.28…
    assert_eq!(params("x:7:10").fill_time(), 85_715);
}

#[test]
fn a_life_beyond_all_bounds_ends_after_a_century() {
    let longest = Params::new(1, Params::MAX_AMOUNT, 1, Params::MAX_PERIOD).unwrap();
    let rule = TtlRule::from_multiplier(u32::MAX);
    assert_eq!(
        rule.life_seconds(longest.fill_time(), i128::MAX),
        Some(3_155_760_000)
    );
}
