//! The arithmetic of a bucket and the decision about a call, beside governor, which decides in memory alone.

#![allow(clippy::unwrap_used, missing_docs)]

use std::num::NonZeroU32;

use divan::{Bencher, black_box};
use governor::{Quota, RateLimiter};
use zae_limiter_schema::bucket::{
    Batch, BucketConfig, BucketKey, ClientTag, Decoded, Demand, Evaluation, Image, Incarnation, Slot,
    SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::{EntityId, Limit, LimitName, LimitSet, Resource, Timestamp};

const START: i64 = 1_700_000_000_000;

fn main() {
    divan::main();
}

fn config() -> BucketConfig {
    let limits = ["rpm", "tpm"].map(|name| Limit::per_minute(name, 1_000_000).unwrap());
    BucketConfig::new(
        LimitSet::new(limits.to_vec()).unwrap(),
        None,
        false,
        TtlRule::Never,
    )
}

fn key() -> BucketKey {
    BucketKey {
        entity: EntityId::parse("user-1").unwrap(),
        resource: Resource::parse("gpt-4").unwrap(),
    }
}

fn batch(tokens: i128) -> Batch {
    let mut batch = Batch::default();
    for (limit, amount) in [("rpm", 1_000), ("tpm", tokens * 1_000)] {
        let debit = Demand {
            debit: amount,
            ..Demand::default()
        };
        batch.add(&LimitName::parse(limit).unwrap(), debit);
    }
    batch.acquires = 1;
    batch
}

fn slot() -> Slot {
    Slot {
        index: SlotIndex::FIRST,
        before: SlotBefore::Empty,
        number: ClientTag::from_random(1).number(i128::from(START), 0),
    }
}

/// The bucket after its first call.
fn image(config: &BucketConfig) -> Image {
    let evaluation = Evaluation::create(config, Timestamp::from_millis(START));
    let write = evaluation
        .write(key(), &batch(100), slot(), Incarnation::from_random(1))
        .unwrap();
    let item = zae_limiter_schema::bucket::Attributes::default();
    match item.apply(&write.statement()).unwrap().decode().unwrap() {
        Decoded::Bucket(image) => image,
        Decoded::Stub => unreachable!("a write creates the bucket"),
    }
}

#[divan::bench]
fn decide_that_a_call_fits(bencher: Bencher<'_, '_>) {
    let config = config();
    let (image, batch) = (image(&config), batch(100));
    let now = Timestamp::from_millis(START + 1_000);
    bencher.bench(|| Evaluation::live(black_box(&image), &config, now).fits(&batch));
}

#[divan::bench]
fn decide_that_a_call_is_refused(bencher: Bencher<'_, '_>) {
    let config = config();
    let (image, batch) = (image(&config), batch(2_000_000));
    let now = Timestamp::from_millis(START + 1_000);
    bencher.bench(|| Evaluation::live(black_box(&image), &config, now).fits(&batch));
}

#[divan::bench]
fn plan_the_write(bencher: Bencher<'_, '_>) {
    let config = config();
    let (image, batch) = (image(&config), batch(100));
    let now = Timestamp::from_millis(START + 1_000);
    bencher.bench(|| {
        let evaluation = Evaluation::live(black_box(&image), &config, now);
        evaluation.write(key(), &batch, slot(), Incarnation::from_random(1))
    });
}

#[divan::bench]
fn refill_of_one_limit(bencher: Bencher<'_, '_>) {
    let config = config();
    let image = image(&config);
    let bucket = image.limits.values().next().unwrap().token_bucket;
    bencher.bench(|| black_box(bucket).available(black_box(1_000)));
}

#[divan::bench]
fn governor_direct(bencher: Bencher<'_, '_>) {
    let limiter = RateLimiter::direct(Quota::per_minute(NonZeroU32::new(1_000_000).unwrap()));
    bencher.bench(|| limiter.check_n(black_box(NonZeroU32::MIN)).is_ok());
}

#[divan::bench]
fn governor_refusal(bencher: Bencher<'_, '_>) {
    let limiter = RateLimiter::direct(Quota::per_hour(NonZeroU32::MIN));
    let _ = limiter.check();
    bencher.bench(|| black_box(&limiter).check().is_err());
}
