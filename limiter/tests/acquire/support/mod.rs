//! Stages: one store in memory, limiters on it, each behind a connection of its own, and simulated time.

pub(crate) use zae_limiter_testing::connection::{Connection, Fault, FaultRates};

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use tokio::time::Instant;
use zae_limiter::{
    Clock, EmbeddedStore, Error, Lease, Limit, NewEntity, RateLimiter, RateLimiterBuilder, Refusal, Timestamp,
};

pub(crate) const TABLE: &str = "acquire-test";
/// The resource of all calls.
pub(crate) const GPT: &str = "gpt-4";

/// Tokio's time as a calendar that starts at noon: simulated time is one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock {
    origin: Instant,
    noon: Timestamp,
    /// What this clock is ahead (or behind) of the others.
    pub(crate) off_by_millis: i64,
}

impl TokioClock {
    fn starting_now() -> Self {
        Self {
            origin: Instant::now(),
            noon: Timestamp::parse("2026-01-31T12:00:00Z").unwrap(),
            off_by_millis: 0,
        }
    }

    pub(crate) fn off_by(self, off_by_millis: i64) -> Self {
        Self {
            off_by_millis,
            ..self
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.origin.elapsed().as_millis()).unwrap();
        self.noon.plus_millis(elapsed + self.off_by_millis)
    }

    fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A table in memory.
pub(crate) struct Stage {
    store: EmbeddedStore,
    /// The connection of limiters that have none of their own.
    pub(crate) wire: Connection,
    pub(crate) clock: TokioClock,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let store = EmbeddedStore::memory().unwrap();
        Self {
            wire: Connection::to(store.clone()),
            clock: TokioClock::starting_now(),
            store,
        }
    }

    /// Another connection to the same table.
    pub(crate) fn another_wire(&self) -> Connection {
        Connection::to(self.store.clone())
    }

    pub(crate) fn builder(&self) -> RateLimiterBuilder {
        self.builder_on(&self.wire)
    }

    pub(crate) fn builder_on(&self, wire: &Connection) -> RateLimiterBuilder {
        RateLimiter::builder(TABLE)
            .endpoint_url("http://wire.invalid")
            .region("us-east-1")
            .credentials(credentials())
            .http_client(wire.clone())
            .clock(self.clock)
            .principal("tester")
            .create_table(true)
    }

    /// A limiter with these limits as the builder's defaults.
    pub(crate) async fn limiter(&self, defaults: &[&str]) -> RateLimiter {
        let limiter = self.builder().default_limits(limits(defaults)).await.unwrap();
        self.wire.calls();
        limiter
    }

    /// An SDK client on the same table, for what others do to it.
    pub(crate) fn client(&self) -> Client {
        Client::from_conf(self.store.sdk_config().build())
    }

    /// The bucket of an entity as anybody would see it.
    pub(crate) async fn bucket(&self, entity: &str) -> Option<Bucket> {
        let client = self.client();
        let [pk, sk] = bucket_key(entity);
        let response = client
            .get_item()
            .table_name(TABLE)
            .key("PK", pk)
            .key("SK", sk)
            .consistent_read(true)
            .send()
            .await;
        response.unwrap().item.map(Bucket)
    }

    /// Changes attributes of a bucket as somebody else would: numbers are set, or removed where there is none.
    pub(crate) async fn tamper(&self, entity: &str, changes: &[(&str, Option<i64>)]) {
        let [pk, sk] = bucket_key(entity);
        let client = self.client();
        for (name, value) in changes {
            let update = client
                .update_item()
                .table_name(TABLE)
                .key("PK", pk.clone())
                .key("SK", sk.clone())
                .expression_attribute_names("#a", *name);
            let update = match value {
                Some(number) => update
                    .update_expression("SET #a = :v")
                    .expression_attribute_values(":v", AttributeValue::N(number.to_string())),
                None => update.update_expression("REMOVE #a"),
            };
            update.send().await.unwrap();
        }
    }

    /// Deletes a bucket as its time to live does.
    pub(crate) async fn delete_bucket(&self, entity: &str) {
        let [pk, sk] = bucket_key(entity);
        let client = self.client();
        let delete = client.delete_item().table_name(TABLE).key("PK", pk).key("SK", sk);
        delete.send().await.unwrap();
    }
}

fn bucket_key(entity: &str) -> [AttributeValue; 2] {
    [format!("ENTITY#{entity}"), format!("#BUCKET#{GPT}")].map(AttributeValue::S)
}

fn credentials() -> Credentials {
    Credentials::new("test", "test", None, None, "tests")
}

/// A bucket's item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bucket(pub(crate) HashMap<String, AttributeValue>);

impl Bucket {
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.0
            .get(name)
            .map(|value| value.as_n().unwrap().parse().unwrap())
    }

    /// The level in millitokens, as stored.
    pub(crate) fn level(&self, limit: &str) -> i64 {
        self.number(&format!("b_{limit}_tk")).unwrap()
    }

    /// What was consumed in all, in millitokens.
    pub(crate) fn consumed(&self, limit: &str) -> i64 {
        self.number(&format!("b_{limit}_tc")).unwrap()
    }
}

pub(crate) fn limits(texts: &[&str]) -> Vec<Limit> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A limit that gives nothing back while a test runs, so that every token can be accounted for.
pub(crate) fn hoard(name: &str, tokens: u64) -> Limit {
    Limit::custom(name, tokens, tokens, 1, Limit::MAX_PERIOD_SECONDS).unwrap()
}

pub(crate) async fn advance(time: Duration) {
    tokio::time::advance(time).await;
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn exceeded(error: Error) -> Refusal {
    match error {
        Error::Refused(exceeded) => Arc::unwrap_or_clone(exceeded),
        other => panic!("not a refusal: {other}"),
    }
}

/// Takes tokens and commits.
pub(crate) async fn take(limiter: &RateLimiter, entity: &str, limit: &str, tokens: u64) -> Result<(), Error> {
    lease(limiter, entity, limit, tokens).await?.commit().await
}

pub(crate) async fn lease(
    limiter: &RateLimiter,
    entity: &str,
    limit: &str,
    tokens: u64,
) -> Result<Lease, Error> {
    limiter.acquire(entity, GPT).consume(limit, tokens).await
}

/// How many tokens of its own limit an entity has now.
pub(crate) async fn available(limiter: &RateLimiter, entity: &str, limit: &str) -> i64 {
    let peek = limiter.acquire(entity, GPT).peek().await.unwrap();
    let own = peek
        .statuses()
        .iter()
        .find(|status| status.limit.name().as_str() == limit && status.entity.as_str() == entity);
    own.unwrap().available
}

/// Takes single tokens until there are none, and counts them.
pub(crate) async fn drain(limiter: &RateLimiter, entity: &str, limit: &str) -> u64 {
    let mut taken = 0;
    loop {
        match take(limiter, entity, limit, 1).await {
            Ok(()) => taken += 1,
            Err(error) => {
                exceeded(error);
                return taken;
            }
        }
        assert!(taken < 10_000, "there is no end");
    }
}

/// One call on each of this many buckets.
pub(crate) async fn warm(limiter: &RateLimiter, buckets: usize) {
    for number in 0..buckets {
        take(limiter, &format!("user-{number}"), "rpm", 1).await.unwrap();
    }
}

/// A runtime of its own, with simulated time.
pub(crate) fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// An entity whose calls are charged to its parent too.
pub(crate) fn child(id: &str, parent: &str) -> NewEntity {
    NewEntity::new(id).parent(parent).cascade(true)
}

pub(crate) async fn create(limiter: &RateLimiter, entity: NewEntity) {
    limiter.repository().create_entity(entity).await.unwrap();
}

/// Stores limits of an entity for [`GPT`].
pub(crate) async fn set_limits(limiter: &RateLimiter, entity: &str, stored: &[&str]) {
    let stored = limits(stored);
    let set = limiter.repository().set_limits(entity, GPT, stored).await;
    set.unwrap();
}

/// Stores limits for [`GPT`].
pub(crate) async fn set_resource_limits(limiter: &RateLimiter, stored: &[&str]) {
    let stored = limits(stored);
    let set = limiter.repository().set_resource_defaults(GPT, stored).await;
    set.unwrap();
}
