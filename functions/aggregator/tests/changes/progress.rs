//! How a snapshot knows which records it has counted.

use zae_limiter_aggregator::{Condition, Progress, SnapshotUpdate, UsageDelta, groups};
use zae_limiter_schema::{AttributeValue, WindowKind};

use crate::changes::support::{EVENING, after, consuming, entries, set};

/// A snapshot that has counted up to this record.
fn progress(last: &UsageDelta, newest: i64) -> Progress {
    let newest = newest.to_string();
    let stored = |name: &str| match name {
        "_sq" => Some(last.position.as_str()),
        "_ln" => Some(last.link.after.as_str()),
        "_sa" => Some(newest.as_str()),
        _ => None,
    };
    Progress::from_attributes(stored).unwrap()
}

#[test]
fn a_snapshot_knows_which_records_it_has_passed_without_counting_them() {
    let all: Vec<_> = (1..=6)
        .map(|n| {
            consuming(
                n,
                EVENING,
                i64::try_from(n).unwrap() - 1,
                i64::try_from(n).unwrap(),
            )
        })
        .collect();
    let pick = |numbers: &[usize]| numbers.iter().map(|n| all[n - 1].clone()).collect::<Vec<_>>();
    let counts = |progress: &Progress| {
        all.iter()
            .map(|d| progress.has_counted(&d.position))
            .collect::<Vec<_>>()
    };

    // The first delivery lacks 1, 3 and 4; there must be no snapshot yet.
    let first = pick(&[2, 5]);
    let group = &groups(&[WindowKind::Daily], entries(&first))[0];
    let update = SnapshotUpdate::whole(group, 1);
    assert_eq!(update.condition, Condition::New);
    let progress = after(&update);
    assert_eq!(counts(&progress), [false, true, false, false, true, false]);

    // 6 follows 5. What the snapshot knows about 1, 3 and 4 stays.
    let next = pick(&[6]);
    let group = &groups(&[WindowKind::Daily], entries(&next))[0];
    assert!(matches!(
        SnapshotUpdate::whole(group, 1).condition,
        Condition::Follows { .. }
    ));
    let progress = after(&SnapshotUpdate::rest(group, 1, &progress));
    assert_eq!(counts(&progress), [false, true, false, false, true, true]);

    // Delivered again, and in part: only what is missing is counted.
    let again = pick(&[2, 3, 4, 5]);
    let group = &groups(&[WindowKind::Daily], entries(&again))[0];
    let rest = group.uncounted(&progress).unwrap();
    assert_eq!(rest.entries().len(), 2);
    let update = SnapshotUpdate::rest(&rest, 1, &progress);
    assert_eq!(update.add[0], ("rpm".to_owned(), 2));
    let progress = after(&update);
    assert_eq!(counts(&progress), [false, true, true, true, true, true]);

    let all_again = &groups(&[WindowKind::Daily], entries(&all))[0];
    let rest = all_again.uncounted(&progress).unwrap();
    let progress = after(&SnapshotUpdate::rest(&rest, 1, &progress));
    assert_eq!(all_again.uncounted(&progress), None);
}

#[test]
fn the_gaps_of_a_snapshot_are_bounded() {
    let mut progress: Option<Progress> = None;
    for n in 1..100 {
        let delta = [consuming(
            n * 2,
            EVENING,
            i64::try_from(n * 10).unwrap(),
            i64::try_from(n * 10 + 1).unwrap(),
        )];
        let group = &groups(&[WindowKind::Daily], entries(&delta))[0];
        let update = match &progress {
            Some(progress) => SnapshotUpdate::rest(group, 1, progress),
            None => SnapshotUpdate::whole(group, 1),
        };
        assert!(set(&update, "_gp").unwrap().len() < 3_000);
        assert_eq!(update.forgotten_gaps, u64::from(n > 16));
        progress = Some(after(&update));
    }
}

#[test]
fn what_is_left_of_a_group_is_written_under_the_progress_that_was_seen() {
    let changes = [consuming(9, EVENING, 0, 5), consuming(10, EVENING + 1, 5, 7)];
    let groups = groups(&[WindowKind::Monthly], entries(&changes[..1]));
    let seen = progress(&changes[0], EVENING + 50);
    assert_eq!(groups[0].uncounted(&seen), None);
    let both = zae_limiter_aggregator::groups(&[WindowKind::Hourly], entries(&changes));
    let rest = both[0].uncounted(&seen).unwrap();
    let update = SnapshotUpdate::rest(&rest, 1, &seen);
    assert_eq!(update.add[0], ("rpm".to_owned(), 2));
    assert_eq!(
        update.condition,
        Condition::Unchanged {
            last: seen.last.clone(),
            gaps: None,
        }
    );
    let newest = update.set.iter().find(|(name, _)| name == "_sa").unwrap();
    assert_eq!(
        newest.1,
        AttributeValue::S((EVENING + 50).to_string()),
        "never goes back"
    );
}

#[test]
fn a_record_numbered_below_the_progress_but_newer_than_it_is_told_from_a_duplicate() {
    let changes = [consuming(5, EVENING, 0, 5), consuming(6, EVENING + 1, 5, 7)];
    let groups = groups(&[WindowKind::Hourly], entries(&changes));
    let seen = |newest| progress(&changes[1], newest);
    assert!(groups[0].regressed(&seen(EVENING + 1)).is_empty());
    let places: Vec<_> = groups[0]
        .regressed(&seen(EVENING))
        .iter()
        .map(|entry| entry.index)
        .collect();
    assert_eq!(places, [1]);
}
