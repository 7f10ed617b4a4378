//! Single decisions: what becomes of a quota or of permits by one write.

use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{Batch, BucketConfig, Demand, Evaluation};

use super::world::Table;
use crate::common::name;

const DAY: i64 = 86_400_000;

fn start() -> Timestamp {
    Timestamp::parse("2026-05-01T10:00:00Z").unwrap()
}

fn config(limits: &[&str]) -> BucketConfig {
    Table::new(limits).config
}

fn debit(amounts: &[(&str, i128)]) -> Batch {
    let mut batch = Batch::default();
    for (limit, amount) in amounts {
        let demand = Demand {
            debit: *amount,
            ..Demand::default()
        };
        batch.add(&name(limit), demand);
    }
    batch
}

/// A bucket takes some of `limit`, then loses it, and a day later its other limit changes. True for each of the last two writes if
/// the limit is on the bucket afterwards.
fn stays(text: &str, taken: i128) -> [bool; 2] {
    let limit = text.split(':').next().unwrap();
    let mut table = Table::new(&["rpm:100", text]);
    let first = config(&["rpm:100", text]);
    let taken = debit(&[("rpm", 1_000), (limit, taken)]);
    let write = table.plan(0, &Evaluation::create(&first, start()), &taken);
    assert!(table.send(&write.unwrap().statement()));
    let mut changes = |rate: &str, at: Timestamp| {
        let (image, without) = (table.image().unwrap(), config(&[rate]));
        let evaluation = Evaluation::parameters(&image, &without, at);
        let write = table.plan(0, &evaluation, &debit(&[("rpm", 1_000)]));
        assert!(table.send(&write.unwrap().statement()));
        let image = table.image().unwrap();
        image.permits.contains_key(&name(limit)) || image.quotas.contains_key(&name(limit))
    };
    [
        changes("rpm:100", start()),
        changes("rpm:200", start().plus_millis(DAY)),
    ]
}

#[test]
fn a_limit_that_is_no_longer_configured_leaves_when_nothing_of_it_is_used() {
    for limit in [
        "parallel:8 at once for 1min",
        "spend:500 per day",
        "spend:500 per 5h from first use",
    ] {
        assert_eq!(stays(limit, 0), [false, false], "{limit}");
        assert_eq!(
            stays(limit, 2_000),
            [true, false],
            "{limit}: it stays while some of it is used"
        );
    }
}

/// A bucket has no room for the limits of a call: what it no longer needs is removed by a write of its own.
#[test]
fn a_limit_that_is_no_longer_configured_makes_room_when_nothing_of_it_is_used() {
    for text in ["parallel:8 at once for 1min", "spend:500 per day"] {
        let limit = text.split(':').next().unwrap();
        for taken in [0, 2_000] {
            let mut table = Table::new(&["rpm:100", text]);
            let (both, without) = (config(&["rpm:100", text]), config(&["rpm:100"]));
            let batch = debit(&[("rpm", 1_000), (limit, taken)]);
            let write = table.plan(0, &Evaluation::create(&both, start()), &batch);
            assert!(table.send(&write.unwrap().statement()));
            let image = table.image().unwrap();
            let removal = table.removal(0, &Evaluation::parameters(&image, &without, start()));
            assert_eq!(removal.is_some(), taken == 0, "{text}");
            if let Some(removal) = removal {
                assert!(table.send(&removal.statement()));
                let image = table.image().unwrap();
                assert!(image.permits.is_empty() && image.quotas.is_empty(), "{image:?}");
            }
        }
    }
}

#[test]
fn a_top_up_begins_a_period_and_adds_to_what_is_left() {
    let mut table = Table::new(&["spend:500 per day"]);
    let config = config(&["spend:500 per day"]);
    let spend = name("spend");
    let evaluation = Evaluation::create(&config, start());
    let mut batch = Batch::default();
    assert!(evaluation.top_up(&mut batch, &spend, 30_000));
    let outlook = evaluation.outlook(&spend, &batch, 0).unwrap();
    assert_eq!(outlook.left, 530_000);
    let write = table.plan(0, &evaluation, &batch);
    assert!(table.send(&write.unwrap().statement()));
    let quota = &table.image().unwrap().quotas[&spend];
    let midnight = Timestamp::parse("2026-05-02T00:00:00Z").unwrap();
    assert_eq!(
        (quota.used, quota.period_end, quota.topped_up),
        (0, Some(midnight), 30_000)
    );
    assert_eq!(quota.topped_up_until, Some(midnight));
}

/// The period of the limit changes by an image of the day before. Meanwhile another process has begun the next day.
#[test]
fn a_changed_period_does_not_end_one_that_it_has_not_seen() {
    let daily = config(&["spend:500 per day"]);
    let monthly = config(&["spend:500 per month"]);
    for rolls_over in [false, true] {
        let mut table = Table::new(&["spend:500 per day"]);
        let write = table.plan(
            0,
            &Evaluation::create(&daily, start()),
            &debit(&[("spend", 1_000)]),
        );
        assert!(table.send(&write.unwrap().statement()));
        let seen = table.image().unwrap();
        let evaluation = Evaluation::parameters(&seen, &monthly, start());
        let change = table.plan(0, &evaluation, &Batch::default()).unwrap();
        if rolls_over {
            let next_day = Evaluation::live(&seen, &daily, start().plus_millis(DAY));
            let write = table.plan(1, &next_day, &debit(&[("spend", 2_000)]));
            assert!(table.send(&write.unwrap().statement()));
        }
        assert_eq!(table.send(&change.statement()), !rolls_over);
    }
}
