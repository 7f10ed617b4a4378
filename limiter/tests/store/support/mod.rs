//! Stages: one table each, on one of the kinds of store.

#[macro_use]
mod every_store;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::audit::{AuditEvent, AuditSubject};
use zae_limiter::{
    EmbeddedStore, Limit, ManualClock, NewEntity, PageRequest, RateLimiter, RateLimiterBuilder, Repository,
    Timestamp,
};
use zae_limiter_schema::Item;

pub(crate) use zae_limiter_testing::connection::{Connection, Fault, Weather};
use zae_limiter_testing::{MiniStack, dynamodb_endpoint};

/// Where a stage's table is.
enum Place {
    Memory(EmbeddedStore),
    File(tempfile::TempDir),
    Endpoint(String),
    Faulty(EmbeddedStore, Connection),
}

/// A table of its own and a clock that stands still.
pub(crate) struct Stage {
    place: Place,
    pub(crate) name: String,
    pub(crate) clock: Arc<ManualClock>,
}

fn fresh_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!(
        "store-test-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

impl Stage {
    fn at(place: Place) -> Self {
        // Far ahead of the machine's clock: a store that deletes what has expired must find nothing.
        let clock = Arc::new(ManualClock::at(Timestamp::parse("2099-01-31T12:00:00Z").unwrap()));
        Self {
            place,
            name: fresh_name(),
            clock,
        }
    }

    pub(crate) fn memory() -> Self {
        Self::at(Place::Memory(EmbeddedStore::memory().unwrap()))
    }

    pub(crate) fn file() -> Self {
        Self::at(Place::File(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn http() -> Self {
        Self::at(Place::Endpoint(dynamodb_endpoint().to_owned()))
    }

    pub(crate) fn ministack() -> Self {
        Self::at(Place::Endpoint(MiniStack::shared().endpoint()))
    }

    pub(crate) fn faulty(weather: Weather) -> Self {
        let store = EmbeddedStore::memory().unwrap();
        let connection = Connection::to(store.clone()).in_weather(weather);
        Self::at(Place::Faulty(store, connection))
    }

    /// The URL of a stage that has one.
    pub(crate) fn endpoint(&self) -> &str {
        match &self.place {
            Place::Endpoint(url) => url,
            _ => panic!("this stage has no endpoint"),
        }
    }

    /// The faults of a stage that has some.
    pub(crate) fn faults(&self) -> &Connection {
        match &self.place {
            Place::Faulty(_, connection) => connection,
            _ => panic!("this stage has no faults"),
        }
    }

    /// A limiter on the stage's table, with a cache of its own. More settings can follow.
    pub(crate) fn builder(&self) -> RateLimiterBuilder {
        self.anonymous().principal("tester")
    }

    /// The same, of somebody who does not say who they are.
    pub(crate) fn anonymous(&self) -> RateLimiterBuilder {
        let builder = match &self.place {
            Place::Memory(store) => RateLimiter::embedded_in(store).name(&self.name),
            Place::File(folder) => {
                RateLimiter::embedded_at(folder.path().join("limiter.db")).name(&self.name)
            }
            Place::Endpoint(url) => remote(&self.name, url),
            Place::Faulty(_, connection) => {
                remote(&self.name, "http://faulty.invalid").http_client(connection.clone())
            }
        };
        builder.clock(self.clock.clone()).create_table(true)
    }

    pub(crate) async fn limiter(&self) -> RateLimiter {
        self.builder().await.unwrap()
    }

    pub(crate) async fn repository(&self) -> Repository {
        self.builder().build_repository().await.unwrap()
    }

    /// A repository that takes the table as it is, or as missing.
    pub(crate) async fn repository_without_setup(&self) -> Repository {
        let builder = self.builder().create_table(false);
        builder.build_repository().await.unwrap()
    }

    /// A repository on the table of a stage with faults, past them.
    pub(crate) async fn beside(&self) -> Repository {
        let Place::Faulty(store, _) = &self.place else {
            panic!("this stage has no faults");
        };
        RateLimiter::embedded_in(store)
            .name(&self.name)
            .clock(self.clock.clone())
            .build_repository()
            .await
            .unwrap()
    }

    /// An SDK client on the same store, for items that others have written.
    pub(crate) async fn client(&self) -> Client {
        let config = match &self.place {
            Place::File(folder) => {
                let store = EmbeddedStore::file(folder.path().join("limiter.db")).await;
                store.unwrap().sdk_config()
            }
            Place::Endpoint(url) => aws_sdk_dynamodb::Config::builder()
                .behavior_version(BehaviorVersion::v2026_01_12())
                .region(Region::new("us-east-1"))
                .credentials_provider(credentials())
                .endpoint_url(url),
            Place::Memory(store) | Place::Faulty(store, _) => store.sdk_config(),
        };
        Client::from_conf(config.build())
    }

    /// Writes items as somebody else would.
    pub(crate) async fn put(&self, items: impl IntoIterator<Item = Item>) {
        let client = self.client().await;
        for item in items {
            client
                .put_item()
                .table_name(&self.name)
                .set_item(Some(to_sdk(item)))
                .send()
                .await
                .unwrap();
        }
    }

    /// The item under a key, as anybody would see it.
    pub(crate) async fn item(&self, pk: &str, sk: &str) -> Option<HashMap<String, AttributeValue>> {
        let (pk, sk) = (AttributeValue::S(pk.to_owned()), AttributeValue::S(sk.to_owned()));
        let client = self.client().await;
        client
            .get_item()
            .table_name(&self.name)
            .key("PK", pk)
            .key("SK", sk)
            .consistent_read(true)
            .send()
            .await
            .unwrap()
            .item
    }
}

fn credentials() -> Credentials {
    Credentials::new("test", "test", None, None, "tests")
}

fn remote(name: &str, url: &str) -> RateLimiterBuilder {
    RateLimiter::builder(name)
        .endpoint_url(url)
        .region("us-east-1")
        .credentials(credentials())
        .admin_time_budget(Duration::from_mins(1))
        .time_budget(Duration::from_secs(20))
}

pub(crate) fn to_sdk(item: Item) -> HashMap<String, AttributeValue> {
    use zae_limiter_schema::AttributeValue as Plain;
    fn convert(value: Plain) -> AttributeValue {
        match value {
            Plain::S(text) => AttributeValue::S(text),
            Plain::N(digits) => AttributeValue::N(digits),
            Plain::Bool(flag) => AttributeValue::Bool(flag),
            Plain::Null(null) => AttributeValue::Null(null),
            Plain::Ss(set) => AttributeValue::Ss(set),
            Plain::L(list) => AttributeValue::L(list.into_iter().map(convert).collect()),
            Plain::M(map) => {
                AttributeValue::M(map.into_iter().map(|(name, one)| (name, convert(one))).collect())
            }
            other => panic!("no test writes {other:?}"),
        }
    }
    item.into_inner()
        .into_iter()
        .map(|(name, one)| (name, convert(one)))
        .collect()
}

pub(crate) fn rpm(capacity: u64) -> Limit {
    Limit::per_minute("rpm", capacity).unwrap()
}

pub(crate) fn tpm(capacity: u64) -> Limit {
    Limit::per_minute("tpm", capacity).unwrap()
}

/// The parent `acme`, the entity `key-1` whose calls are charged to it too, and limits for both.
pub(crate) async fn create_key_of_acme(limiter: &RateLimiter) {
    let stored = limiter.repository();
    for entity in [
        NewEntity::new("acme"),
        NewEntity::new("key-1").parent("acme").cascade(true),
    ] {
        stored.create_entity(entity).await.unwrap();
    }
    stored.set_system_defaults([rpm(60)]).await.unwrap();
}

/// The resources that entities have configurations for, by the registry.
pub(crate) async fn configured_resources(repository: &Repository) -> Vec<String> {
    repository.list_resources_with_entity_configs().await.unwrap()
}

/// The events about an entity, the latest first.
pub(crate) async fn events_about(repository: &Repository, entity: &str) -> Vec<AuditEvent> {
    let subject = AuditSubject::Entity(entity.parse().unwrap());
    let events = repository.list_audit_events(&subject, &page(100)).await;
    events.unwrap().items
}

pub(crate) fn page(size: usize) -> PageRequest {
    PageRequest::new(size)
}

/// Every item of a list, and the sizes of the pages it came in.
pub(crate) async fn all_pages<T, Fetched>(
    size: usize,
    fetch: impl Fn(PageRequest) -> Fetched,
) -> (Vec<T>, Vec<usize>)
where
    Fetched: Future<Output = zae_limiter::Result<zae_limiter::pagination::Page<T>>>,
{
    let (mut items, mut sizes) = (vec![], vec![]);
    let mut request = page(size);
    loop {
        let got = fetch(request).await.unwrap();
        sizes.push(got.items.len());
        items.extend(got.items);
        match got.next {
            // As text, as a command line would pass it on.
            Some(cursor) => request = page(size).after(cursor.to_string().parse().unwrap()),
            None => return (items, sizes),
        }
    }
}
