//! The compiled expressions do on the engine what the interpreter says, on random items and random writes.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use zae_limiter_schema::bucket::{
    Action, Attr, Attributes, Batch, BucketKey, BucketWrite, ClientId, Condition, Decoded, Demand, Field,
    Footing, Incarnation, Params, Scalar, Shape, Slot, SlotBefore, Statement, Terms, TtlRule,
};
use zae_limiter_schema::{Limit, LimitName, LimitSet, Timestamp};

use super::{Compiled, compile};
use crate::backend::WriteOutcome;
use crate::dynamo::{from_sdk_item, to_sdk_key, to_sdk_value};
use crate::{RateLimiter, Repository};

const NOW: i64 = 1_769_860_800_000;
const NAMES: [&str; 3] = ["rpm", "tpm", "per-day.v2"];

fn client(id: &str) -> ClientId {
    ClientId::parse(id).unwrap()
}

fn key() -> BucketKey {
    BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

/// A table of the engine that holds at most one bucket.
struct Engine {
    repository: Repository,
    runtime: tokio::runtime::Runtime,
}

impl Engine {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let limiter = runtime.block_on(RateLimiter::embedded().build()).unwrap();
        Self {
            repository: limiter.repository().clone(),
            runtime,
        }
    }

    /// Makes the bucket like this, or absent.
    fn put(&self, item: Option<&Attributes>) {
        let table = &self.repository.inner.table;
        let key = to_sdk_key(&key().key());
        self.runtime.block_on(async {
            let Some(item) = item else {
                let delete = table.client.delete_item().table_name(table.name.as_str());
                delete.set_key(Some(key)).send().await.unwrap();
                return;
            };
            let mut whole: HashMap<_, _> = item
                .to_item()
                .into_inner()
                .into_iter()
                .map(|(name, value)| (name, to_sdk_value(value)))
                .collect();
            whole.extend(key);
            let put = table.client.put_item().table_name(table.name.as_str());
            put.set_item(Some(whole)).send().await.unwrap();
        });
    }

    /// The item after the statement, or nothing and the item that refused it.
    fn apply(&self, statement: &Statement) -> Result<Attributes, Option<Attributes>> {
        let Compiled {
            update,
            condition,
            names,
            values,
        } = compile(statement);
        let table = &self.repository.inner.table;
        let request = table
            .client
            .update_item()
            .table_name(table.name.as_str())
            .set_key(Some(to_sdk_key(&key().key())))
            .update_expression(update)
            .set_condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let read =
            |item: HashMap<String, AttributeValue>| Attributes::from_item(&from_sdk_item(item).unwrap());
        match self.runtime.block_on(request.send()) {
            Ok(answer) => Ok(read(answer.attributes.unwrap())),
            Err(error) => match error.into_service_error() {
                UpdateItemError::ConditionalCheckFailedException(failed) => Err(failed.item.map(read)),
                other => panic!("{other:?}: {statement:?}"),
            },
        }
    }

    fn write(&self, write: &BucketWrite) -> WriteOutcome {
        self.runtime
            .block_on(self.repository.inner.backend.write_bucket(write))
    }
}

/// Random items and writes, the same for a seed.
struct Draw(fastrand::Rng);

impl Draw {
    fn one_in(&mut self, parts: u32) -> bool {
        self.0.u32(0..parts) == 0
    }

    fn number(&mut self, range: std::ops::RangeInclusive<i64>) -> i128 {
        i128::from(self.0.i64(range))
    }

    fn limits(&mut self) -> Vec<Limit> {
        let count = self.0.usize(1..=NAMES.len());
        let limit = |draw: &mut Self, name| {
            let (capacity, extra) = (draw.0.u64(1..=20), draw.0.u64(0..=10));
            let period = draw.0.choice([1, 7, 60, 86_400]).unwrap_or(1);
            Limit::custom(name, capacity, capacity + extra, draw.0.u64(1..=30), period).unwrap()
        };
        NAMES
            .into_iter()
            .take(count)
            .map(|name| limit(self, name))
            .collect()
    }

    fn terms(&mut self, limits: Vec<Limit>) -> Terms {
        let parent = self.one_in(3).then(|| "org".parse().unwrap());
        let ttl = TtlRule::from_multiplier(if self.one_in(3) { 0 } else { 7 });
        let cascade = parent.is_some();
        Terms::new(LimitSet::new(limits).unwrap(), parent, cascade, ttl)
    }

    /// A bucket of these terms as it may stand in a table.
    fn item(&mut self, terms: &Terms) -> Attributes {
        let mut item = Attributes::default();
        let number = Scalar::Number;
        item.insert(
            Attr::RefilledAt,
            number(i128::from(NOW) - self.number(0..=90_000)),
        );
        match self.0.u32(0..8) {
            0 => {}
            1 => item.insert(Attr::Etag, Scalar::Text("ffffffffff1.AAAAAA".into())),
            _ => item.insert(Attr::Etag, Scalar::Text(terms.etag("BBBBBB").as_str().into())),
        }
        if let Some(parent) = terms.parent() {
            item.insert(Attr::Parent, Scalar::Text(parent.as_str().into()));
        }
        item.insert(Attr::Cascade, Scalar::Flag(terms.cascade()));
        for (id, age) in [("me00", 5_000), ("old0", 90_000), ("new0", 10_000)] {
            if self.one_in(2) {
                item.insert(Attr::Slot(client(id)), number(i128::from(NOW) - age));
            }
        }
        if self.one_in(2) {
            item.insert(
                Attr::ExpiresAt,
                number(i128::from(NOW / 1000) + self.number(-100..=100_000)),
            );
        }
        if self.one_in(2) {
            item.insert(Attr::Events, number(self.number(0..=1000)));
        }
        if self.one_in(8) {
            item.insert(Attr::Other("something".into()), Scalar::Text("else".into()));
        }
        for limit in terms.limits() {
            self.put_limit(&mut item, limit);
        }
        item
    }

    fn put_limit(&mut self, item: &mut Attributes, limit: &Limit) {
        let params = Params::from(limit);
        let burst = i64::try_from(params.burst()).unwrap();
        let tokens = match self.0.u32(0..6) {
            0 => params.burst(),
            1 => self.number(-burst..=0),
            2 => params.burst() + self.number(1..=5_000),
            _ => self.number(0..=burst),
        };
        let mut put =
            |field, value| item.insert(Attr::Limit(limit.name().clone(), field), Scalar::Number(value));
        put(Field::Tokens, tokens);
        put(Field::Capacity, params.capacity());
        put(Field::Burst, params.burst());
        put(Field::Amount, params.amount());
        put(Field::Period, params.period());
        put(Field::Consumed, i128::from(self.0.u32(0..50_000)));
        if self.0.bool() {
            put(Field::Remainder, i128::from(self.0.u32(0..900)));
        }
        // Sometimes without sense, as the peer leaves limits.
        match self.0.u32(0..16) {
            0 => put(Field::Period, 0),
            1 => item.remove(&Attr::Limit(limit.name().clone(), Field::Amount)),
            _ => {}
        }
    }

    /// The item as somebody saw it before others have changed it.
    fn aged(&mut self, item: &Attributes) -> Attributes {
        let mut seen = item.clone();
        for (attr, value) in item.iter() {
            let Scalar::Number(number) = value else { continue };
            if matches!(
                attr,
                Attr::Limit(_, Field::Tokens) | Attr::RefilledAt | Attr::Slot(_)
            ) && self.one_in(4)
            {
                let before = number - self.number(0..=3_000);
                seen.insert(attr.clone(), Scalar::Number(before));
            }
        }
        seen
    }

    fn batch(&mut self, terms: &Terms) -> Batch {
        let mut batch = Batch::default();
        for limit in terms.limits() {
            let mut part = |parts| {
                if self.one_in(parts) {
                    self.number(1..=9_000)
                } else {
                    0
                }
            };
            let demand = Demand {
                credit: part(3),
                adjust: part(3),
                debit: part(2),
                recount: -part(8),
            };
            batch.add(limit.name(), demand);
        }
        batch.acquires = self.0.u32(0..3);
        batch
    }

    fn slot(&mut self, seen: Option<&Attributes>) -> Slot {
        let me = client("me00");
        let number = seen.and_then(|seen| seen.number(&Attr::Slot(me)));
        let before = match number {
            Some(number) if self.one_in(3) => SlotBefore::NumberOrAbsent(number),
            Some(number) => SlotBefore::Number(number),
            None => SlotBefore::Absent,
        };
        Slot {
            client: me,
            before,
            number: i128::from(NOW),
        }
    }

    /// A write that is made from what was seen, if the batch fits.
    fn write(&mut self, seen: Option<&Attributes>, terms: &Terms) -> Option<BucketWrite> {
        let now = Timestamp::from_millis(NOW);
        let (batch, slot) = (self.batch(terms), self.slot(seen));
        let decoded = seen.map(|seen| seen.decode().unwrap());
        let footing = match &decoded {
            Some(Decoded::Bucket(image)) if terms.match_image(image) => Footing::live(image, terms, now),
            Some(Decoded::Bucket(image)) => Footing::parameters(image, terms, now),
            Some(Decoded::Stub) | None => Footing::create(terms, now),
        };
        footing.write(key(), &batch, slot, Incarnation::from_random(self.0.u64(..)))
    }
}

#[test]
fn random_writes_do_the_same_on_the_engine_and_in_the_interpreter() {
    let engine = Engine::new();
    let (mut shapes, mut admitted, mut refused) = (BTreeMap::new(), 0, 0);
    for seed in 0..900 {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let limits = draw.limits();
        let on_item = draw.terms(limits.clone());
        let item = (!draw.one_in(6)).then(|| draw.item(&on_item));
        let stub = draw.one_in(8);
        let item = item.map(|mut item| {
            if stub {
                item.remove(&Attr::RefilledAt);
            }
            item
        });
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
            (Ok(expected), WriteOutcome::Done(after)) => {
                assert_eq!(after, expected, "seed {seed}: {write:?}");
                *shapes.entry(format!("{:?}", write.shape)).or_insert(0) += 1;
                admitted += 1;
            }
            (Err(_), WriteOutcome::Refused(found)) => {
                assert_eq!(found, item, "seed {seed}: the refusal carries the item");
                refused += 1;
            }
            (expected, outcome) => panic!("seed {seed}: {expected:?} but {outcome:?}\n{write:?}"),
        }
    }
    assert!(admitted >= 200 && refused >= 100, "{admitted} and {refused}");
    for shape in [Shape::Touch, Shape::Settle, Shape::New, Shape::Parameters] {
        let seen = shapes.get(&format!("{shape:?}")).copied().unwrap_or(0);
        assert!(seen >= 10, "{shape:?} was written {seen} times: {shapes:?}");
    }
}

/// Conditions of every kind on attributes of every kind, missing ones included.
fn random_condition(draw: &mut Draw, depth: u32) -> Condition {
    let attrs = [
        Attr::RefilledAt,
        Attr::Etag,
        Attr::Cascade,
        Attr::ExpiresAt,
        Attr::Slot(client("me00")),
        Attr::Limit(LimitName::parse("rpm").unwrap(), Field::Tokens),
    ];
    let attr = attrs[draw.0.usize(..attrs.len())].clone();
    let bound = draw.number(-3..=3);
    match draw.0.u32(0..if depth == 0 { 6 } else { 7 }) {
        0 => Condition::Missing(attr),
        1 => Condition::AtLeast(attr, bound),
        2 => Condition::AtMost(attr, bound),
        3 => Condition::Above(attr, bound),
        4 => Condition::Is(attr, Scalar::Number(bound)),
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
            Attr::Slot(client("me00")),
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

/// Expressions of the protocol, word for word.
mod words {
    use super::*;

    fn terms() -> Terms {
        let limits = ["rpm:60", "tpm:600"].map(|text| text.parse::<Limit>().unwrap());
        Terms::new(
            LimitSet::new(limits.to_vec()).unwrap(),
            None,
            false,
            TtlRule::from_multiplier(7),
        )
    }

    fn item(terms: &Terms, tokens: [i128; 2]) -> Attributes {
        let mut item = Attributes::default();
        item.insert(Attr::RefilledAt, Scalar::Number(i128::from(NOW) - 3_000));
        item.insert(Attr::Etag, Scalar::Text(terms.etag("BBBBBB").as_str().into()));
        item.insert(Attr::Cascade, Scalar::Flag(false));
        item.insert(Attr::Slot(client("me00")), Scalar::Number(7));
        item.insert(Attr::ExpiresAt, Scalar::Number(i128::from(NOW / 1000) + 400));
        for (limit, tokens) in terms.limits().iter().zip(tokens) {
            let params = Params::from(limit);
            let fields = [
                (Field::Tokens, tokens),
                (Field::Capacity, params.capacity()),
                (Field::Burst, params.burst()),
                (Field::Amount, params.amount()),
                (Field::Period, params.period()),
                (Field::Consumed, 0),
            ];
            for (field, value) in fields {
                item.insert(Attr::Limit(limit.name().clone(), field), Scalar::Number(value));
            }
        }
        item
    }

    fn compiled(tokens: [i128; 2], debits: [i128; 2]) -> Compiled {
        let terms = terms();
        let Ok(Decoded::Bucket(image)) = item(&terms, tokens).decode() else {
            panic!("no bucket")
        };
        let mut batch = Batch {
            acquires: 1,
            ..Batch::default()
        };
        for (limit, debit) in terms.limits().iter().zip(debits) {
            batch.add(
                limit.name(),
                Demand {
                    debit,
                    ..Demand::default()
                },
            );
        }
        let slot = Slot {
            client: client("me00"),
            before: SlotBefore::Number(7),
            number: i128::from(NOW),
        };
        let footing = Footing::live(&image, &terms, Timestamp::from_millis(NOW));
        let write = footing
            .write(key(), &batch, slot, Incarnation::from_random(1))
            .unwrap();
        compile(&write.statement())
    }

    fn value(compiled: &Compiled, name: &str) -> String {
        match &compiled.values[name] {
            AttributeValue::N(text) | AttributeValue::S(text) => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_touch_adds_within_the_range_for_which_it_is_exact() {
        let compiled = compiled([10_000, 100_000], [1_000, 5_000]);
        assert_eq!(
            compiled.update,
            "SET #a0 = :v0 ADD #a1 :v1, #a2 :v2, #a3 :v3, #a4 :v4, #a5 :v5"
        );
        assert_eq!(
            compiled.condition.as_deref().unwrap(),
            "#a6 = :v6 AND #a0 = :v7 AND #a7 >= :v8 AND #a1 >= :v9 AND #a1 <= :v10 AND #a3 >= :v11 AND #a3 <= :v12 \
             AND (attribute_not_exists(#a8) OR #a8 > :v13)"
        );
        let names: Vec<_> = (0..9)
            .map(|index| compiled.names[&format!("#a{index}")].as_str())
            .collect();
        let expected = [
            "o_me00", "b_rpm_tk", "b_rpm_tc", "b_tpm_tk", "b_tpm_tc", "ev", "cf", "rf", "ttl",
        ];
        assert_eq!(names, expected);
        // Three seconds have brought 3 and 30 tokens, which must still fit under 60 and 600.
        for (name, expected) in [
            (":v1", "-1000"),
            (":v2", "1000"),
            (":v9", "1000"),
            (":v10", "57000"),
            (":v11", "5000"),
            (":v12", "570000"),
            (":v7", "7"),
        ] {
            assert_eq!(value(&compiled, name), expected, "{name}");
        }
    }

    #[test]
    fn a_settle_moves_the_moment_of_refill_with_rows_for_every_limit() {
        // The first needs its refill, the second is full.
        let compiled = compiled([500, 590_000], [2_000, 0]);
        assert_eq!(
            compiled.update,
            "SET #a0 = :v0, #a1 = :v1, #a2 = :v2, #a6 = :v5 REMOVE #a4, #a7 ADD #a3 :v3, #a5 :v4, #a8 :v6"
        );
        assert_eq!(
            compiled.condition.as_deref().unwrap(),
            "#a9 = :v7 AND #a0 = :v8 AND #a1 = :v9 AND #a3 >= :v10 AND #a3 <= :v11 AND #a6 >= :v12"
        );
        let names: Vec<_> = (0..10)
            .map(|index| compiled.names[&format!("#a{index}")].as_str())
            .collect();
        let expected = [
            "o_me00", "rf", "ttl", "b_rpm_tk", "b_rpm_rr", "b_rpm_tc", "b_tpm_tk", "b_tpm_rr", "ev", "cf",
        ];
        assert_eq!(names, expected);
        for (name, expected) in [
            (":v1", NOW.to_string().as_str()),
            (":v3", "1000"),
            (":v4", "2000"),
            (":v5", "600000"),
            (":v10", "-1000"),
            (":v11", "57000"),
            (":v12", "570000"),
        ] {
            assert_eq!(value(&compiled, name), expected, "{name}");
        }
    }
}
