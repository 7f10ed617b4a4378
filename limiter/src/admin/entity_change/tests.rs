#![allow(clippy::unwrap_used)]

use zae_limiter_schema::Timestamp;

use super::super::NewEntity;
use super::*;

fn record(change: &EntityChange) -> EntityRecord {
    let new = NewEntity::new("user-1").metadata([("tier", "gold"), ("team", "a")]);
    change.apply(&new.check(Timestamp::MIN).unwrap()).unwrap()
}

/// What the first change conflicts about if the second one was written before it.
fn conflict(ours: &EntityChange, theirs: &EntityChange) -> Option<String> {
    let (first, present) = (record(&EntityChange::new()), record(theirs));
    ours.conflict(&first, &present, &ours.apply(&present).unwrap())
}

#[test]
fn changes_of_different_fields_and_entries_merge() {
    let changes = [
        EntityChange::new().name("User"),
        EntityChange::new().parent("acme"),
        EntityChange::new().cascade(true),
        EntityChange::new().metadata([("tier", "silver")]),
        EntityChange::new().metadata([("new", 1)]),
        EntityChange::new().without_metadata(["team"]),
    ];
    for (at, ours) in changes.iter().enumerate() {
        for (other, theirs) in changes.iter().enumerate() {
            assert_eq!(conflict(ours, theirs), None, "{ours:?} after {theirs:?}");
            let both = ours.apply(&record(theirs)).unwrap();
            let steps = 1 + u64::from(at != other);
            assert_eq!(both.version, 1 + steps, "{ours:?} after {theirs:?}");
        }
    }
}

#[test]
fn two_values_of_one_field_do_not_merge() {
    let tier = |value: &str| EntityChange::new().metadata([("tier", value)]);
    let all = |value: &str| EntityChange::new().replace_metadata([("tier", value)]);
    let named = |name: &str| EntityChange::new().name(name);
    for (ours, theirs, field) in [
        (named("a"), named("b"), "name"),
        (
            EntityChange::new().parent("acme"),
            EntityChange::new().parent("globex"),
            "parent",
        ),
        (tier("silver"), tier("bronze"), "metadata entry \"tier\""),
        (
            EntityChange::new().without_metadata(["tier"]),
            tier("silver"),
            "metadata entry \"tier\"",
        ),
        (
            all("silver"),
            EntityChange::new().metadata([("new", 1)]),
            "metadata",
        ),
    ] {
        assert_eq!(conflict(&ours, &theirs).as_deref(), Some(field), "{ours:?}");
    }
}

#[test]
fn entries_that_are_too_large_together_are_refused() {
    let large = "x".repeat(60 * 1024);
    let full = record(&EntityChange::new().metadata([("one", large.as_str())]));
    let refused = EntityChange::new()
        .metadata([("two", large.as_str())])
        .apply(&full)
        .unwrap_err();
    assert!(refused.to_string().contains("bytes in all"), "{refused}");
    let replaced = EntityChange::new().replace_metadata([("two", large.as_str())]);
    assert_eq!(replaced.apply(&full).unwrap().metadata.len(), 1);
}
