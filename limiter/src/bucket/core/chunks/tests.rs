//! Chunks by themselves.
#![allow(clippy::unwrap_used, clippy::panic)]

mod any_order;

use smallvec::smallvec;
use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketKey, Decoded, Demand, Evaluation, Incarnation, Slot, SlotBefore, SlotIndex,
    TtlRule,
};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use super::rate::{STEADY_CALLS, WINDOW};
use super::*;

fn rpm() -> LimitName {
    LimitName::parse("rpm").unwrap()
}

fn tpm() -> LimitName {
    LimitName::parse("tpm").unwrap()
}

fn config(capacity: u64) -> Arc<BucketConfig> {
    let limits = ["rpm", "tpm"].map(|name| Limit::per_minute(name, capacity).unwrap());
    let limits = LimitSet::new(limits).unwrap();
    Arc::new(BucketConfig::new(limits, None, false, TtlRule::Never))
}

/// A bucket that was just created.
fn image(config: &BucketConfig, incarnation: u64) -> Arc<Image> {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let mut batch = Batch::default();
    let demand = Demand::debit(1_000);
    batch.add(&rpm(), demand);
    let slot = Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Empty,
        number: 1,
    };
    let key = BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    };
    let create = Evaluation::create(config, now);
    let create = create
        .write(key, &batch, slot, Incarnation::from_random(incarnation))
        .unwrap();
    let item = Attributes::default().apply(&create.statement()).unwrap();
    match item.decode() {
        Ok(Decoded::Bucket(image)) => Arc::new(image),
        other => panic!("{other:?}"),
    }
}

fn call() -> Amounts {
    smallvec![(rpm(), 1_000), (tpm(), 50_000)]
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A bucket that gets 100 calls a second, and the now.
fn steady() -> (Chunks, Duration) {
    let mut chunks = Chunks::new();
    for number in 0..100 {
        chunks.note(&call(), millis(number * 10));
    }
    (chunks, millis(1_000))
}

const PLENTY: i128 = 1_000_000_000;

/// A bucket with a chunk held.
fn in_hand(config: &Arc<BucketConfig>) -> (Chunks, Duration, Arc<Image>) {
    let (mut chunks, now) = steady();
    let image = image(config, 1);
    let debit = chunks.debit(|_| PLENTY, now).unwrap();
    assert!(
        chunks
            .arrived(debit.amounts, config.clone(), image.clone(), now)
            .is_none()
    );
    (chunks, now, image)
}

#[test]
fn without_a_steady_rate_nothing_is_taken_ahead() {
    let mut chunks = Chunks::new();
    for number in 0..u64::from(STEADY_CALLS) - 1 {
        chunks.note(&call(), millis(number));
    }
    assert!(!chunks.is_low(WINDOW));
    assert_eq!(chunks.debit(|_| PLENTY, WINDOW), None);
    let (mut steady, now) = steady();
    assert!(steady.is_low(now));
    assert!(!steady.is_low(now + 2 * WINDOW), "the traffic has ended");
}

#[test]
fn a_chunk_covers_the_calls_of_a_fifth_of_a_second_and_under_throttling_of_one_second() {
    let (mut chunks, now) = steady();
    let debit = chunks.debit(|_| PLENTY, now).unwrap();
    assert_eq!(debit.amounts[..], [(rpm(), 20_000), (tpm(), 1_000_000)]);
    chunks.failed(debit.calls, now);
    for _ in 0..10 {
        chunks.widen();
    }
    let debit = chunks.debit(|_| PLENTY, now).unwrap();
    assert_eq!(debit.amounts[..], [(rpm(), 100_000), (tpm(), 5_000_000)]);
}

#[test]
fn a_chunk_narrows_again_when_the_item_is_not_throttled_any_more() {
    let config = config(1_000_000);
    let (mut chunks, now) = steady();
    chunks.widen();
    chunks.widen();
    for _ in 0..50 {
        chunks.arrived(Amounts::new(), config.clone(), image(&config, 1), now);
    }
    assert_eq!(chunks.horizon, SHORTEST_HORIZON);
}

#[test]
fn a_chunk_shrinks_near_the_limit_until_there_is_none() {
    let (mut chunks, now) = steady();
    let level = |rpm_level: i128| move |limit: &LimitName| if *limit == rpm() { rpm_level } else { PLENTY };
    let debit = chunks.debit(level(80_000), now).unwrap();
    assert_eq!(
        debit.amounts[..],
        [(rpm(), 10_000), (tpm(), 500_000)],
        "half of each"
    );
    chunks.failed(debit.calls, now);
    for too_little in [15_000, 0, -5_000] {
        assert_eq!(chunks.debit(level(too_little), now), None, "{too_little}");
    }
}

#[test]
fn one_debit_is_under_way_at_a_time() {
    let (mut chunks, now) = steady();
    assert!(chunks.debit(|_| PLENTY, now).is_some());
    assert!(!chunks.is_low(now));
}

#[test]
fn a_call_is_covered_whole_or_not_at_all() {
    let config = config(1_000_000);
    let (mut chunks, now, bucket) = in_hand(&config);
    let too_much: Amounts = smallvec![(rpm(), 1_000), (tpm(), 1_000_001)];
    assert!(chunks.spend(&too_much, &config, Some(&bucket), now).is_none());
    let unknown: Amounts = smallvec![(LimitName::parse("tpd").unwrap(), 1)];
    assert!(chunks.spend(&unknown, &config, Some(&bucket), now).is_none());
    for _ in 0..20 {
        assert!(chunks.spend(&call(), &config, Some(&bucket), now).is_some());
    }
    assert!(chunks.spend(&call(), &config, Some(&bucket), now).is_none());
    assert_eq!(chunks.tokens(), 0);
}

#[test]
fn a_chunk_is_for_one_configuration_and_one_bucket() {
    let own = config(1_000_000);
    let other = config(2_000_000);
    let (mut chunks, now, bucket) = in_hand(&own);
    assert!(chunks.spend(&call(), &other, Some(&bucket), now).is_none());
    for changed in [image(&other, 1), image(&own, 2)] {
        assert!(chunks.spend(&call(), &own, Some(&changed), now).is_none());
    }
    assert!(
        chunks.spend(&call(), &own, None, now).is_some(),
        "nothing else was seen"
    );
    let back = chunks.unused(Some(&image(&other, 1)), now).unwrap();
    assert_eq!(&*back.incarnation, bucket.incarnation());
    assert_eq!(back.changes[..], [(rpm(), -19_000), (tpm(), -950_000)]);
}

#[test]
fn what_was_in_hand_of_an_earlier_configuration_goes_back_when_new_tokens_arrive() {
    let (own, other) = (config(1_000_000), config(2_000_000));
    let (mut chunks, now, _) = in_hand(&own);
    let outdated = chunks.arrived(call(), other.clone(), image(&other, 1), now);
    assert_eq!(
        outdated.unwrap().changes[..],
        [(rpm(), -20_000), (tpm(), -1_000_000)]
    );
    assert_eq!(chunks.tokens(), 51_000);
}

#[test]
fn an_idle_chunk_is_given_back_once_with_the_calls_to_count() {
    let config = config(1_000_000);
    let (mut chunks, now, bucket) = in_hand(&config);
    chunks.spend(&call(), &config, Some(&bucket), now).unwrap();
    let idle_at = chunks.idle_at().unwrap();
    assert!(chunks.unused(Some(&bucket), idle_at - millis(1)).is_none());
    let back = chunks.unused(Some(&bucket), idle_at).unwrap();
    assert_eq!((back.calls, back.changes.len()), (1, 2));
    assert!(!chunks.is_held());
    assert!(chunks.give_back().is_none());
}

#[test]
fn a_bucket_that_is_short_of_tokens_gets_its_chunk_back_and_rests() {
    let config = config(1_000_000);
    let (mut chunks, now, _) = in_hand(&config);
    assert!(chunks.short(now).is_some());
    assert!(!chunks.is_low(now + PAUSE - millis(1)));
}

#[test]
fn changes_are_booked_on_the_tokens_in_hand_as_far_as_a_chunk_goes() {
    let config = config(1_000_000);
    let (mut chunks, now, bucket) = in_hand(&config);
    let incarnation = bucket.incarnation();
    assert!(
        !chunks.absorb(&smallvec![(tpm(), -1)], incarnation, now),
        "it is full"
    );
    assert!(chunks.absorb(&smallvec![(tpm(), 400_000)], incarnation, now));
    assert!(chunks.absorb(&smallvec![(tpm(), -300_000)], incarnation, now));
    assert!(!chunks.absorb(&smallvec![(tpm(), 900_001)], incarnation, now));
    assert!(!chunks.absorb(&smallvec![(tpm(), 1)], "another", now));
    assert_eq!(chunks.tokens(), 20_000 + 900_000);
}

#[test]
fn a_debit_that_failed_leaves_its_calls_to_be_counted() {
    let config = config(1_000_000);
    let (mut chunks, now, bucket) = in_hand(&config);
    for _ in 0..15 {
        chunks.spend(&call(), &config, Some(&bucket), now).unwrap();
    }
    let debit = chunks.debit(|_| PLENTY, now).unwrap();
    assert_eq!(debit.calls, 15);
    chunks.failed(debit.calls, now);
    assert!(!chunks.is_low(now), "not at once again");
    assert_eq!(chunks.give_back().unwrap().calls, 15);
}
