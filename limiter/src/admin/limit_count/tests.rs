#![allow(clippy::unwrap_used, clippy::panic)]

use zae_limiter_schema::bucket::{
    Attr, Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Demand, Evaluation, Image,
    Incarnation, Scalar, Sharing, Slot, SlotBefore, SlotIndex, TtlRule,
};
use zae_limiter_schema::{ConfigLevel, ConfigRecord, Limit, LimitSet, Timestamp};

use super::*;
use zae_limiter_dynamo::Update;

/// DynamoDB's bounds of an expression: its length, and its operators and functions.
const MAX_BYTES: usize = 4096;
const MAX_OPERATORS: usize = 300;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limits(capacity: u64) -> LimitSet {
    let limits =
        (0..MAX_LIMITS).map(|number| Limit::per_minute(format!("limit-{number}"), capacity).unwrap());
    LimitSet::new(limits).unwrap()
}

/// Comparisons, sums, connectives and functions.
fn operators(expression: &str) -> usize {
    let signs = |letter: char| "=<>+-".contains(letter);
    let comparisons = expression
        .split(|letter| !signs(letter))
        .filter(|run| !run.is_empty());
    let functions = [
        "attribute_",
        "if_not_exists(",
        "begins_with(",
        "contains(",
        "size(",
    ];
    let functions = functions.iter().map(|name| expression.matches(name).count());
    let connectives = ["AND", "OR", "NOT", "BETWEEN", "IN"];
    let words = expression
        .split_whitespace()
        .map(|word| word.trim_matches(['(', ')']));
    comparisons.count() + functions.sum::<usize>() + words.filter(|word| connectives.contains(word)).count()
}

#[test]
fn operators_are_counted_with_and_without_blanks() {
    assert_eq!(operators("#0=:0 AND (attribute_not_exists(#1) OR #1>=:1)"), 5);
    assert_eq!(operators("#0 = :0 AND (attribute_not_exists(#1) OR #1 >= :1)"), 5);
    assert_eq!(operators("SET #0=:0,#1=if_not_exists(#1,:1)"), 3);
}

fn assert_fits(what: &str, expression: &str) {
    assert!(
        expression.len() <= MAX_BYTES,
        "{what}: {} bytes",
        expression.len()
    );
    assert!(
        operators(expression) <= MAX_OPERATORS,
        "{what}: {} operators",
        operators(expression)
    );
}

fn renamed(capacity: u64) -> LimitSet {
    let limits =
        (0..MAX_LIMITS).map(|number| Limit::per_minute(format!("renamed-{number}"), capacity).unwrap());
    LimitSet::new(limits).unwrap()
}

fn config(limits: &LimitSet, parent: bool) -> BucketConfig {
    let parent = parent.then(|| "parent-1".parse().unwrap());
    let cascade = parent.is_some();
    BucketConfig::new(limits.clone(), parent, cascade, TtlRule::from_multiplier(7))
}

/// Everything that can be asked of every limit at once.
fn batch(limits: &LimitSet, demand: Demand) -> Batch {
    let mut batch = Batch {
        acquires: 1,
        ..Batch::default()
    };
    limits.names().for_each(|name| batch.add(name, demand));
    batch
}

fn key() -> BucketKey {
    BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

fn slot(before: SlotBefore) -> Slot {
    Slot {
        index: SlotIndex::new(1),
        before,
        number: i128::from(NOW.millis()) + 1,
    }
}

fn write(evaluation: &Evaluation<'_>, batch: &Batch, before: SlotBefore) -> Option<BucketWrite> {
    evaluation.write(key(), batch, slot(before), Incarnation::from_random(1))
}

fn image(item: &Attributes) -> Image {
    match item.decode() {
        Ok(Decoded::Bucket(image)) => image,
        other => panic!("no bucket: {other:?}"),
    }
}

/// A bucket with these limits, all slots in use, and as many slots of an earlier release as one write removes.
fn bucket(before: &BucketConfig, taken: i128) -> Attributes {
    let demand = Demand::debit(taken);
    let create = Evaluation::create(before, NOW);
    let create = write(&create, &batch(before.limits(), demand), SlotBefore::Empty).unwrap();
    assert_write_fits("create", &create);
    let mut item = Attributes::default().apply(&create.statement()).unwrap();
    let old = || Scalar::Number(i128::from(NOW.millis()) - 3_600_000);
    for number in 0..16 {
        item.insert(Attr::parse(&format!("o_aa{number:02}")), old());
    }
    for index in SlotIndex::all() {
        item.insert(Attr::Slot(index), old());
    }
    item
}

fn assert_write_fits(what: &str, write: &BucketWrite) {
    let parts = Update::from(write).into_parts();
    assert_fits(&format!("the update of {what}"), &parts.update);
    let condition = parts.condition.unwrap_or_default();
    assert_fits(&format!("the condition of {what}"), &condition);
}

#[test]
fn sixty_limits_would_not_fit_under_other_names() {
    let some = |prefix: &str| {
        let limits = (0..60).map(|number| Limit::per_minute(format!("{prefix}-{number}"), 100).unwrap());
        config(&LimitSet::new(limits).unwrap(), true)
    };
    let (before, after) = (some("limit"), some("renamed"));
    let demand = Demand::debit(1_000);
    let create = Evaluation::create(&before, NOW);
    let create = write(&create, &batch(before.limits(), demand), SlotBefore::Empty).unwrap();
    let item = Attributes::default().apply(&create.statement()).unwrap();
    let seen = image(&item);
    let change = Evaluation::parameters(&seen, &after, NOW.plus_millis(1));
    let change = write(&change, &batch(after.limits(), demand), SlotBefore::Any).unwrap();
    assert!(Update::from(&change).into_parts().update.len() > MAX_BYTES);
}

#[test]
fn every_write_of_a_bucket_with_the_most_limits_fits_into_expressions() {
    let own = SlotBefore::Own(i128::from(NOW.millis()) - 3_600_000);
    let mut writes = 0;
    // A bucket that is full by then and one that is not, and calls that can or cannot do without the refill.
    for (taken, debit, later) in [
        (1_000, 1_000, 7_001),
        (90_000, 1_000, 7_001),
        (90_000, 15_000, 7_001),
        (99_000, 12_000, 7_001),
        (50_000, 10_000, 60_001),
    ] {
        let before = config(&limits(100), true);
        let item = bucket(&before, taken);
        let image = image(&item);
        let now = NOW.plus_millis(later);
        let demands = [(debit, 0, 0), (debit, 500, 0), (debit, 500, 700), (0, 500, 700)];
        for (debit, adjust, credit) in demands {
            let demand = Demand {
                debit,
                adjust,
                credit,
                recount: -1,
                top_up: 1,
            };
            for changed in [
                before.clone(),
                config(&limits(200), false),
                config(&renamed(200), false),
            ] {
                let asked = batch(changed.limits(), demand);
                let evaluations = if changed == before {
                    let live = Evaluation::live(&image, &changed, now);
                    vec![
                        live.clone(),
                        live.clone().with_sharing(Sharing::Shared),
                        live.with_sharing(Sharing::SharedAndStale),
                    ]
                } else {
                    vec![Evaluation::parameters(&image, &changed, now)]
                };
                for evaluation in evaluations {
                    for slot in [own, SlotBefore::Empty, SlotBefore::Any] {
                        let Some(write) = write(&evaluation, &asked, slot) else {
                            continue;
                        };
                        assert_write_fits(&format!("{:?}", write.kind), &write);
                        writes += 1;
                    }
                }
            }
        }
    }
    assert!(writes > 200, "{writes}");
}

#[test]
fn a_bucket_whose_limits_were_all_renamed_is_still_written() {
    let (before, after) = (config(&limits(100), true), config(&renamed(100), true));
    let item = bucket(&before, 90_000);
    let demand = Demand {
        debit: 1_000,
        adjust: 100,
        credit: 200,
        recount: -1,
        top_up: 1,
    };
    let asked = batch(after.limits(), demand);
    let now = NOW.plus_millis(1_001);
    let seen = image(&item);
    let change = Evaluation::parameters(&seen, &after, now);
    let change = write(&change, &asked, SlotBefore::Any).unwrap();
    let item = item.apply(&change.statement()).unwrap();
    // The old limits leave when they are full; until then each write refills them too.
    let seen = image(&item);
    assert_eq!(seen.limits.len(), 2 * MAX_LIMITS);
    for later in [1_002, 2_003, 30_001, 60_001, 600_001] {
        let live = Evaluation::live(&seen, &after, NOW.plus_millis(later));
        for sharing in [Sharing::Alone, Sharing::Shared, Sharing::SharedAndStale] {
            let live = live.clone().with_sharing(sharing);
            let slot = SlotBefore::Own(i128::from(NOW.millis()));
            if let Some(write) = write(&live, &asked, slot) {
                assert_write_fits(&format!("{:?} after {later} ms", write.kind), &write);
            }
        }
    }
}

#[test]
fn the_write_of_a_level_with_the_most_limits_fits_into_expressions() {
    let level = ConfigLevel::System;
    let before = ConfigRecord::new(level.clone(), limits(100)).to_item();
    let record = ConfigRecord::new(level, limits(200));
    let parts = crate::admin::config_write(&record, Some(&before), true).into_parts();
    assert_fits("the update", &parts.update);
    assert_fits("the condition", parts.condition.as_deref().unwrap_or_default());
}
