//! How changes come together into updates of snapshots.

use proptest::prelude::*;
use zae_limiter_aggregator::{Condition, SnapshotUpdate, UsageDelta, groups};
use zae_limiter_schema::{AttributeValue, EntityId, Resource, Timestamp, WindowKind};

use crate::changes::support::{EVENING, consuming, entries, set};

#[test]
fn a_batch_is_one_write_per_bucket_and_window_with_the_hour_and_day_of_each_record() {
    let changes = [
        consuming(1, EVENING, 0, 5),
        consuming(2, EVENING + 1, 5, 7),
        consuming(3, EVENING + 2, 7, 8),
    ];
    let groups = groups(&WindowKind::ALL, entries(&changes));
    let rows: Vec<_> = groups
        .iter()
        .map(|group| {
            let update = SnapshotUpdate::whole(group, 1);
            (update.key.sk.clone(), update.add[0].1)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("#USAGE#gpt-4#2026-01-31T23:00:00Z".to_owned(), 7),
            ("#USAGE#gpt-4#2026-02-01T00:00:00Z".to_owned(), 1),
            ("#USAGE#gpt-4#2026-01-31".to_owned(), 7),
            ("#USAGE#gpt-4#2026-02-01".to_owned(), 1),
            ("#USAGE#gpt-4#2026-01".to_owned(), 7),
            ("#USAGE#gpt-4#2026-02".to_owned(), 1),
        ]
    );
}

#[test]
fn a_snapshot_lives_until_its_window_is_over_and_the_retention_after_it() {
    let changes = [consuming(1, EVENING, 0, 5)];
    let groups = groups(&[WindowKind::Monthly], entries(&changes));
    let update = SnapshotUpdate::whole(&groups[0], 7);
    let ttl = update.set.iter().find(|(name, _)| name == "ttl").unwrap();
    let end = Timestamp::parse("2026-02-08T00:00:00Z").unwrap().seconds();
    assert_eq!(ttl.1, AttributeValue::N(end.to_string()));
}

#[test]
fn a_record_that_stands_twice_in_a_batch_counts_once_and_disorder_is_put_right() {
    let changes = [
        consuming(3, EVENING, 5, 8),
        consuming(1, EVENING, 0, 5),
        consuming(3, EVENING, 5, 8),
    ];
    let groups = groups(&[WindowKind::Daily], entries(&changes));
    let update = SnapshotUpdate::whole(&groups[0], 1);
    assert_eq!(update.add[0], ("rpm".to_owned(), 8));
    let (first, link) = (changes[1].position.clone(), changes[1].link.before.clone());
    assert_eq!(update.condition, Condition::Follows { first, link });
    assert_eq!(groups[0].first_index(), 0);
}

/// A new snapshot is one write unit for the index, and later writes are none: their index keys are the same.
#[test]
fn the_index_is_written_once_per_snapshot_and_with_one_unit() {
    let longest = "x".repeat(EntityId::MAX_LENGTH);
    let mut delta = consuming(1, EVENING, 0, 1);
    delta.entity = longest.parse().unwrap();
    let resource = "y".repeat(Resource::MAX_LENGTH);
    delta.resource = resource.parse().unwrap();
    let deltas = [
        delta.clone(),
        UsageDelta {
            position: consuming(2, EVENING, 1, 2).position,
            ..delta
        },
    ];
    let keys = |delta: &UsageDelta| {
        let deltas = [delta.clone()];
        let group = &groups(&[WindowKind::Hourly], entries(&deltas))[0];
        let update = SnapshotUpdate::whole(group, 1);
        let index = ["GSI2PK", "GSI2SK"].map(|name| set(&update, name).unwrap().to_owned());
        [update.key.pk, update.key.sk, index[0].clone(), index[1].clone()]
    };
    let first = keys(&deltas[0]);
    assert_eq!(first, keys(&deltas[1]));
    let size: usize = first.iter().map(String::len).sum();
    assert!(size + "PKSKGSI2PKGSI2SK".len() <= 1_024, "{size} bytes");
}

proptest! {
    #[test]
    fn however_a_run_of_changes_is_cut_the_parts_sum_up_to_the_whole(
        levels in prop::collection::vec(-1_000i64..1_000, 2..40),
        cut in 0usize..40,
    ) {
        let changes: Vec<_> = levels
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair[0] != pair[1])
            .map(|(number, pair)| consuming(number as u64 + 1, EVENING - 7_200, pair[0], pair[1]))
            .collect();
        prop_assume!(!changes.is_empty());
        let sum = |changes: &[UsageDelta]| -> i128 {
            groups(&[WindowKind::Daily], entries(changes))
                .iter()
                .map(|group| group.consumed().values().sum::<i128>())
                .sum()
        };
        let cut = cut.min(changes.len());
        prop_assert_eq!(sum(&changes), i128::from(levels[levels.len() - 1] - levels[0]));
        prop_assert_eq!(sum(&changes[..cut]) + sum(&changes[cut..]), sum(&changes));
    }
}
