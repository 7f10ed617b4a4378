//! The requests do on the engine what the interpreter says, on random items and random writes.

use std::collections::BTreeMap;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{
    Action, Attr, Attributes, Condition, Field, Scalar, SlotIndex, Statement, WriteKind,
};

use super::Engine;
use super::draw::{Draw, stub};

#[test]
fn random_writes_do_the_same_on_the_engine_and_in_the_interpreter() {
    let engine = Engine::new();
    let (mut kinds, mut admitted, mut refused) = (BTreeMap::new(), 0, 0);
    for seed in 0..900 {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let limits = draw.limits();
        let on_item = draw.terms(limits.clone());
        let item = (!draw.one_in(6)).then(|| draw.item(&on_item));
        let is_stub = draw.one_in(8);
        let item = item.map(|item| if is_stub { stub(&item) } else { item });
        let terms = if draw.one_in(3) {
            let limits = draw.limits();
            draw.terms(limits)
        } else {
            on_item
        };
        let seen = if draw.one_in(2) {
            item.clone()
        } else {
            item.as_ref().map(|item| draw.aged(item))
        };
        let seen = if draw.one_in(12) { None } else { seen };
        let Some(write) = draw.write(seen.as_ref(), &terms) else {
            continue;
        };

        engine.put(item.as_ref());
        let expected = item.clone().unwrap_or_default().apply(&write.statement());
        match (expected, engine.write(&write)) {
            (Ok(expected), Ok(after)) => {
                assert_eq!(after, expected, "seed {seed}: {write:?}");
                *kinds.entry(format!("{:?}", write.kind)).or_insert(0) += 1;
                admitted += 1;
            }
            (Err(_), Err(found)) => {
                assert_eq!(found, item, "seed {seed}: the response carries the item");
                refused += 1;
            }
            (expected, outcome) => panic!("seed {seed}: {expected:?} but {outcome:?}\n{write:?}"),
        }
    }
    assert!(admitted >= 200 && refused >= 100, "{admitted} and {refused}");
    for shape in [
        WriteKind::Touch,
        WriteKind::Refill,
        WriteKind::Create,
        WriteKind::Reconfigure,
    ] {
        let seen = kinds.get(&format!("{shape:?}")).copied().unwrap_or(0);
        assert!(seen >= 10, "{shape:?} was written {seen} times: {kinds:?}");
    }
}

/// Conditions of every kind on attributes of every kind, missing ones included.
fn random_condition(draw: &mut Draw, depth: u32) -> Condition {
    let attrs = [
        Attr::RefilledAt,
        Attr::Etag,
        Attr::Cascade,
        Attr::ExpiresAt,
        Attr::Slot(SlotIndex::FIRST),
        Attr::Limit(LimitName::parse("rpm").unwrap(), Field::Tokens),
    ];
    let attr = attrs[draw.0.usize(..attrs.len())].clone();
    let bound = draw.number(-3..=3);
    match draw.0.u32(0..if depth == 0 { 7 } else { 8 }) {
        0 => Condition::Missing(attr),
        1 => Condition::AtLeast(attr, bound),
        2 => Condition::AtMost(attr, bound),
        3 => Condition::Above(attr, bound),
        4 => Condition::Is(attr, Scalar::Number(bound)),
        6 => Condition::IsNot(attr, Scalar::Number(bound)),
        5 => Condition::Is(
            attr,
            draw.0
                .choice([Scalar::Text("x".into()), Scalar::Flag(true)])
                .unwrap(),
        ),
        _ => {
            let lists = (0..draw.0.usize(1..4)).map(|_| {
                (0..draw.0.usize(1..3))
                    .map(|_| random_condition(draw, depth - 1))
                    .collect()
            });
            Condition::AnyOf(lists.collect())
        }
    }
}

#[test]
fn random_conditions_hold_on_the_engine_exactly_when_the_interpreter_says() {
    let engine = Engine::new();
    let (mut held, mut failed) = (0, 0);
    for seed in 0..600 {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let mut item = Attributes::default();
        let rpm = |field| Attr::Limit(LimitName::parse("rpm").unwrap(), field);
        for attr in [
            Attr::RefilledAt,
            Attr::ExpiresAt,
            Attr::Slot(SlotIndex::FIRST),
            rpm(Field::Tokens),
        ] {
            if draw.0.bool() {
                item.insert(attr, Scalar::Number(draw.number(-3..=3)));
            }
        }
        if draw.0.bool() {
            item.insert(Attr::Etag, Scalar::Text("x".into()));
        }
        if draw.0.bool() {
            item.insert(Attr::Cascade, Scalar::Flag(draw.0.bool()));
        }
        let conditions: Vec<_> = (0..draw.0.usize(0..4))
            .map(|_| random_condition(&mut draw, 2))
            .collect();
        let statement = Statement {
            conditions,
            actions: vec![
                Action::Set(Attr::Etag, Scalar::Text("y".into())),
                Action::Add(Attr::Events, draw.number(-2..=2)),
                Action::Add(rpm(Field::Tokens), draw.number(-2..=2)),
                Action::Remove(Attr::ExpiresAt),
                Action::Set(Attr::Cascade, Scalar::Flag(draw.0.bool())),
                Action::Remove(rpm(Field::Remainder)),
            ],
        };
        engine.put(Some(&item));
        match (item.apply(&statement), engine.apply(&statement)) {
            (Ok(expected), Ok(after)) => {
                assert_eq!(after, expected, "seed {seed}: {statement:?}");
                held += 1;
            }
            (Err(_), Err(found)) => {
                assert_eq!(found, Some(item), "seed {seed}");
                failed += 1;
            }
            (expected, outcome) => panic!("seed {seed}: {expected:?} but {outcome:?}\n{statement:?}"),
        }
    }
    assert!(held >= 150 && failed >= 150, "{held} and {failed}");
}
