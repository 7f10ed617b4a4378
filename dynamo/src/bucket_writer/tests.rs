//! The requests do on the engine what the interpreter says, on random items and random writes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod draw;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use zae_limiter_schema::bucket::{
    Action, Attr, Attributes, BucketKey, BucketWrite, Condition, Field, Scalar, SlotIndex, Statement,
    WriteKind,
};
use zae_limiter_schema::{AttributeValue, LimitName, StackName};

use super::{BucketRequest, BucketWriter};
use crate::{CapacityMeter, EmbeddedStore, Entropy, Table, Updated, to_sdk_item, to_sdk_key};
use draw::Draw;

const NOW: i64 = 1_769_860_800_000;

fn key() -> BucketKey {
    BucketKey {
        entity: "user-1".parse().unwrap(),
        resource: "gpt-4".parse().unwrap(),
    }
}

/// A table of the engine that holds at most one bucket.
struct Engine {
    table: Table,
    writer: BucketWriter,
    meter: CapacityMeter,
    runtime: tokio::runtime::Runtime,
}

impl Engine {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (store, meter) = (EmbeddedStore::memory().unwrap(), CapacityMeter::new());
        let table = Table {
            client: Client::from_conf(store.sdk_config().interceptor(meter.clone()).build()),
            name: StackName::parse("limiter").unwrap(),
            place: store.place(),
            entropy: Arc::new(Entropy::seeded(1)),
            budget: Duration::from_secs(10),
            attempt: Duration::from_secs(3),
            deadline: None,
        };
        runtime.block_on(table.create()).unwrap();
        Self {
            writer: BucketWriter::new(table.clone()),
            table,
            meter,
            runtime,
        }
    }

    /// Makes the bucket like this, or absent.
    fn put(&self, item: Option<&Attributes>) {
        let table = &self.table;
        let key = to_sdk_key(&key().key());
        self.runtime.block_on(async {
            let Some(item) = item else {
                let delete = table.client.delete_item().table_name(table.name.as_str());
                delete.set_key(Some(key)).send().await.unwrap();
                return;
            };
            let mut whole = to_sdk_item(item.to_item());
            whole.extend(key);
            let put = table.client.put_item().table_name(table.name.as_str());
            put.set_item(Some(whole)).send().await.unwrap();
        });
    }

    /// The item after the statement, or nothing and the item that refused it.
    fn apply(&self, statement: &Statement) -> Result<Attributes, Option<Attributes>> {
        let request = BucketRequest::of_statement("limiter", &key().key(), statement);
        self.outcome(self.writer.send(request))
    }

    fn write(&self, write: &BucketWrite) -> Result<Attributes, Option<Attributes>> {
        self.outcome(self.writer.write(write))
    }

    fn outcome(
        &self,
        sent: impl Future<Output = crate::Result<Updated<Attributes>>>,
    ) -> Result<Attributes, Option<Attributes>> {
        match self.runtime.block_on(sent).unwrap() {
            Updated::Done(bucket) => Ok(bucket),
            Updated::ConditionFailed(bucket) => Err(bucket),
        }
    }
}

#[test]
fn random_writes_do_the_same_on_the_engine_and_in_the_interpreter() {
    let engine = Engine::new();
    let (mut kinds, mut admitted, mut refused) = (BTreeMap::new(), 0, 0);
    for seed in 0..900 {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let limits = draw.limits();
        let on_item = draw.terms(limits.clone());
        let item = (!draw.one_in(6)).then(|| draw.item(&on_item));
        let stub = draw.one_in(8);
        let item = item.map(|item| if stub { draw::stub(&item) } else { item });
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
                assert_eq!(found, item, "seed {seed}: the answer carries the item");
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

#[test]
fn values_of_every_type_are_written_and_read() {
    let engine = Engine::new();
    let other = Scalar::Other;
    let map = |value| {
        AttributeValue::M(std::collections::HashMap::from([(
            "a \"b\" \\".to_owned(),
            value,
        )]))
    };
    let values = [
        ("empty", Scalar::Text("".into())),
        ("a \"quoted\" name", Scalar::Number(0)),
        (
            "text",
            Scalar::Text("line\n\u{1}\u{1f}\"quoted\" \\ \u{e9}\u{1f600}".into()),
        ),
        ("large", Scalar::Number(i128::from(u64::MAX) * 1_000_000_000)),
        ("flag", Scalar::Flag(true)),
        ("decimal", other(AttributeValue::N("12.5".to_owned()))),
        ("null", other(AttributeValue::Null(true))),
        ("bytes", other(AttributeValue::B(vec![0, 1, 255]))),
        (
            "texts",
            other(AttributeValue::Ss(vec!["a".to_owned(), "b".to_owned()])),
        ),
        (
            "numbers",
            other(AttributeValue::Ns(vec!["1".to_owned(), "2".to_owned()])),
        ),
        ("binaries", other(AttributeValue::Bs(vec![vec![1], vec![2]]))),
        (
            "list",
            other(AttributeValue::L(vec![
                AttributeValue::Bool(false),
                AttributeValue::S("s".to_owned()),
            ])),
        ),
        ("map", other(map(map(AttributeValue::N("5".to_owned()))))),
        (
            "empty-map",
            other(AttributeValue::M(std::collections::HashMap::new())),
        ),
    ];
    let attr = |name: &str| Attr::Other(name.into());
    let statement = Statement {
        conditions: Vec::new(),
        actions: values
            .iter()
            .map(|(name, value)| Action::Set(attr(name), value.clone()))
            .collect(),
    };
    let written = engine.apply(&statement).unwrap();
    for (name, value) in &values {
        assert_eq!(written.get(&attr(name)), Some(value), "{name}");
    }
    assert_eq!(Attributes::default().apply(&statement).unwrap(), written);
}

#[test]
fn consumed_capacity_is_counted() {
    let engine = Engine::new();
    let before = engine.meter.consumed();
    let set = |conditions| Statement {
        conditions,
        actions: vec![Action::Set(Attr::Events, Scalar::Number(1))],
    };
    engine.apply(&set(Vec::new())).unwrap();
    let written = engine.meter.consumed();
    assert_eq!((written.calls - before.calls, written.write_units), (1, 1.0));
    engine
        .apply(&set(vec![Condition::Missing(Attr::Events)]))
        .unwrap_err();
    let refused = engine.meter.consumed();
    assert_eq!((refused.calls - written.calls, refused.write_units), (1, 2.0));
}

#[test]
fn ordinary_updates_of_the_same_client_are_left_alone() {
    let engine = Engine::new();
    let client = super::direct::client_for(&engine.table.client);
    let table = Table {
        client,
        ..engine.table.clone()
    };
    let update = crate::Update::of(key().key()).set("ev", AttributeValue::N("7".to_owned()));
    let after = engine.runtime.block_on(table.update_once(update)).unwrap();
    let Updated::Done(item) = after else {
        panic!("{after:?}")
    };
    assert_eq!(item.get("ev"), Some(&AttributeValue::N("7".to_owned())));
}

#[test]
fn an_error_is_the_services_own() {
    let engine = Engine::new();
    let statement = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Set(Attr::Etag, Scalar::Text("text".into()))],
    };
    engine.apply(&statement).unwrap();
    let add_to_text = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Add(Attr::Etag, 1)],
    };
    let request = BucketRequest::of_statement("limiter", &key().key(), &add_to_text);
    let error = engine.runtime.block_on(engine.writer.send(request)).unwrap_err();
    assert!(
        matches!(error.cause(), Some(crate::CallError::Invalid(_))),
        "{error}"
    );
}

/// The header fields of a request.
type Fields = Vec<(String, String)>;

/// An HTTP client that keeps the headers of each request.
#[derive(Debug, Clone)]
struct Recording {
    store: EmbeddedStore,
    seen: Arc<std::sync::Mutex<Vec<Fields>>>,
}

impl HttpConnector for Recording {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.seen.lock().unwrap().push(headers.collect());
        self.store.call(request)
    }
}

impl HttpClient for Recording {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

#[test]
fn every_write_names_the_same_user_agent() {
    let engine = Engine::new();
    let recording = Recording {
        store: EmbeddedStore::memory().unwrap(),
        seen: Arc::default(),
    };
    let client = Client::from_conf(
        recording
            .store
            .sdk_config()
            .http_client(recording.clone())
            .build(),
    );
    let table = Table {
        client,
        ..engine.table.clone()
    };
    let writer = BucketWriter::new(table.clone());
    let set = Statement {
        conditions: Vec::new(),
        actions: vec![Action::Set(Attr::Events, Scalar::Number(1))],
    };
    engine.runtime.block_on(async {
        table.create().await.unwrap();
        recording.seen.lock().unwrap().clear();
        for _ in 0..3 {
            let request = BucketRequest::of_statement("limiter", &key().key(), &set);
            writer.send(request).await.unwrap();
        }
    });
    let seen = recording.seen.lock().unwrap();
    let header = |request: &[(String, String)], wanted: &str| {
        let found = request.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone())
    };
    let agents: Vec<_> = seen
        .iter()
        .map(|request| header(request, "user-agent").unwrap())
        .collect();
    assert!(agents[0].contains("api/dynamodb"), "{agents:?}");
    assert!(agents.iter().all(|agent| *agent == agents[0]), "{agents:?}");
    for request in seen.iter() {
        assert_eq!(
            header(request, "content-type").unwrap(),
            "application/x-amz-json-1.0"
        );
        assert_eq!(header(request, "amz-sdk-invocation-id"), None);
    }
}
