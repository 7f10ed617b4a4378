//! A filled table, and a server on it.

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::money::Prices;
use zae_limiter::usage::WindowKind;
use zae_limiter::{
    ConfigLevel, EmbeddedStore, Lease, Limit, Mode, NewEntity, OnUnavailable, RateLimiter, Timestamp,
};
use zae_limiter_dynamo::SdkItem;
use zae_limiter_server::{BearerTokens, Server, UiOptions};
use zae_limiter_testing::connection::Connection;

use crate::client::{Response, TestServer, noon};
use crate::connection::on_connection;

/// A table, its connection and a server on it.
pub(crate) struct Stage {
    pub(crate) server: TestServer,
    pub(crate) limiter: RateLimiter,
    pub(crate) connection: Connection,
    pub(crate) store: EmbeddedStore,
}

impl Stage {
    /// A server on an empty table.
    pub(crate) async fn empty(options: UiOptions, tokens: Option<BearerTokens>) -> Self {
        let store = EmbeddedStore::memory().unwrap();
        let connection = Connection::to(store.clone());
        let clock = noon();
        let limiter = on_connection(&connection).clock(clock.clone()).await.unwrap();
        let mut builder = Server::builder(limiter.clone()).clock(clock.clone()).ui(options);
        if let Some(tokens) = tokens {
            builder = builder.tokens(tokens);
        }
        let server = builder.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Self {
            server: TestServer::running(server, clock),
            limiter,
            connection,
            store,
        }
    }

    /// A server on a filled table.
    pub(crate) async fn filled(options: UiOptions) -> Self {
        let stage = Self::empty(options, None).await;
        fill(&stage.limiter).await;
        stage.put(usage()).await;
        stage
    }

    /// Puts items past the limiter, as the aggregator does.
    pub(crate) async fn put(&self, items: impl IntoIterator<Item = SdkItem>) {
        let client = aws_sdk_dynamodb::Client::from_conf(self.store.sdk_config().build());
        for item in items {
            let put = client.put_item().table_name("limiter").set_item(Some(item));
            put.send().await.unwrap();
        }
    }

    /// The page.
    pub(crate) async fn page(&self, path: &str) -> String {
        let response = self.server.get(path).await.expect(200);
        String::from_utf8(response.body.to_vec()).unwrap()
    }

    /// The rows of a table of a page.
    pub(crate) async fn rows(&self, path: &str, table: &str) -> Vec<serde_json::Value> {
        let mark = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{mark}export={table}.json");
        let body = self.server.get(&path).await.expect(200).json();
        body["items"].as_array().unwrap().clone()
    }
}

/// The text of a response.
pub(crate) fn text(response: &Response) -> String {
    String::from_utf8(response.body.to_vec()).unwrap()
}

fn per_minute(name: &str, capacity: u64) -> Limit {
    Limit::per_minute(name, capacity).unwrap()
}

/// Limits at four levels, a project with two keys, calls, a debt.
pub(crate) async fn fill(limiter: &RateLimiter) {
    let repository = limiter.repository();
    let system = [per_minute("rpm", 60), per_minute("tpm", 6_000)];
    repository.set_system_defaults(system).await.unwrap();
    repository
        .set_resource_defaults("gpt-4", [per_minute("rpm", 500), per_minute("tpm", 60_000)])
        .await
        .unwrap();
    let model = [
        per_minute("rpm", 600),
        per_minute("tpm", 90_000).with_burst(120_000).unwrap(),
    ];
    repository.set_resource_defaults("gpt-4", model).await.unwrap();
    repository
        .set_resource_defaults("openai/embeddings", [per_minute("rpm", 3_000)])
        .await
        .unwrap();
    let project = NewEntity::new("project-1")
        .name("Search team")
        .metadata([("tier", "gold")]);
    repository.create_entity(project).await.unwrap();
    for key in ["key-1", "key-2"] {
        let key = NewEntity::new(key).parent("project-1").cascade(true);
        repository.create_entity(key).await.unwrap();
    }
    repository
        .set_limits(
            "key-2",
            "gpt-4",
            [per_minute("rpm", 30), per_minute("tpm", 3_000)],
        )
        .await
        .unwrap();
    repository
        .set_default_limits(
            "project-1",
            [per_minute("rpm", 2_000), per_minute("tpm", 400_000)],
        )
        .await
        .unwrap();
    let change = zae_limiter::ConfigChange::new().on_unavailable(OnUnavailable::Allow);
    let level = ConfigLevel::Resource("gpt-4".parse().unwrap());
    repository.set_config(&level, change).await.unwrap();

    let calls = [
        ("key-1", "gpt-4", 1, 61_250),
        ("key-1", "openai/embeddings", 40, 0),
        ("key-2", "gpt-4", 12, 2_900),
        ("user@example.com", "gpt-4", 480, 9_000),
    ];
    for (entity, resource, requests, tokens) in calls {
        let mut acquire = limiter.acquire(entity, resource).consume("rpm", requests);
        if tokens > 0 {
            acquire = acquire.consume("tpm", tokens);
        }
        acquire.await.unwrap().commit().await.unwrap();
    }
    // The response was longer than expected.
    let mut lease = limiter.acquire("key-2", "gpt-4").consume("rpm", 1).await.unwrap();
    lease.adjust("tpm", 620);
    lease.commit().await.unwrap();
    limiter.settled().await;
}

/// A model with a budget in dollars, permits and prices, and one that only testers may use. The lease holds permits.
pub(crate) async fn fill_kinds(limiter: &RateLimiter) -> Lease {
    let repository = limiter.repository();
    let limits = [
        "rpm:300",
        "usd:50000000 per month in Europe/Berlin alert at 50% 80%",
        "parallel:8 at once for 10min",
    ];
    let limits = limits.map(|text| text.parse().unwrap());
    repository.set_resource_defaults("claude", limits).await.unwrap();
    let prices = Prices::new("$3".parse().unwrap(), "$15".parse().unwrap());
    repository.set_prices("claude", prices).await.unwrap();
    let claude = ConfigLevel::Resource("claude".parse().unwrap());
    repository.set_mode(&claude, Mode::Observe).await.unwrap();
    let preview = ConfigLevel::Resource("claude-next".parse().unwrap());
    repository.set_mode(&preview, Mode::Disabled).await.unwrap();
    let tester = ConfigLevel::Entity("tester".parse().unwrap(), "claude-next".parse().unwrap());
    repository.set_mode(&tester, Mode::Enforce).await.unwrap();
    let call = limiter.acquire("team-1", "claude").consume("rpm", 12);
    let call = call.consume("usd", 41_250_000).consume("parallel", 3);
    let lease = call.await.unwrap();
    limiter.settled().await;
    lease
}

/// A usage snapshot as the aggregator writes it.
fn snapshot(entity: &str, resource: &str, kind: WindowKind, time: Timestamp, tokens: i64) -> SdkItem {
    let window = kind.window_at(time);
    let acquires = tokens / 100 + 1;
    let texts = [
        ("PK", format!("ENTITY#{entity}")),
        ("SK", format!("#USAGE#{resource}#{}", window.key())),
        ("GSI2PK", format!("RESOURCE#{resource}")),
        ("GSI2SK", format!("USAGE#{}#{entity}", window.key())),
        ("entity_id", entity.to_owned()),
        ("resource", resource.to_owned()),
        ("window", kind.to_string()),
        ("window_start", window.start().to_string()),
    ];
    let numbers = [("total_events", acquires), ("rpm", acquires), ("tpm", tokens)];
    let texts = texts.map(|(name, text)| (name.to_owned(), AttributeValue::S(text)));
    let numbers = numbers.map(|(name, number)| (name.to_owned(), AttributeValue::N(number.to_string())));
    texts.into_iter().chain(numbers).collect()
}

/// The snapshot with refusals, which are stored as text.
fn refused(mut snapshot: SdkItem, count: i64) -> SdkItem {
    snapshot.insert("_rf".to_owned(), AttributeValue::S(count.to_string()));
    snapshot
}

/// Hours of a day and days of a month, up to noon of January 31, 2026.
pub(crate) fn usage() -> Vec<SdkItem> {
    let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
    let mut items = vec![];
    for (entity, share) in [
        ("key-1", 7),
        ("key-2", 2),
        ("user@example.com", 3),
        ("project-1", 9),
    ] {
        for hours in 0..20_i64 {
            let time = noon.plus_millis(-hours * 3_600_000);
            let tokens = (20 - hours) * share * 173 % 9_000 + 1_200;
            items.push(snapshot(entity, "gpt-4", WindowKind::Hourly, time, tokens));
        }
        for days in 0..25_i64 {
            let time = noon.plus_millis(-days * 86_400_000);
            let tokens = (25 - days) * share * 3_001 % 90_000 + 20_000;
            let day = snapshot(entity, "gpt-4", WindowKind::Daily, time, tokens);
            items.push(match (entity, days) {
                ("key-2", 0) => refused(day, 37),
                ("user@example.com", 0) => refused(day, 212),
                _ => day,
            });
        }
    }
    items.push(snapshot(
        "key-1",
        "openai/embeddings",
        WindowKind::Daily,
        noon,
        8_000,
    ));
    items
}
