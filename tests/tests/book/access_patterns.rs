//! The access patterns of the schema page: every row is run, and names the requests that were sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use zae_limiter::audit::AuditSubject;
use zae_limiter::usage::{CapacityScope, UsageQuery, WindowKind};
use zae_limiter::{
    EmbeddedStore, EntityChange, Limit, ManualClock, NewEntity, PageRequest, RateLimiter, Repository,
    Timestamp,
};
use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_function::{Batch, Function, Invocation, Level, Queue, Report};
use zae_limiter_testing::connection::{Call, Connection};
use zae_limiter_testing::stream::bucket_changes;

use crate::book::pages;

const TABLE: &str = "limiter";
const OPERATIONS: [&str; 9] = [
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "TransactWriteItems",
    "UpdateItem",
];

/// The requests of each row.
type Sent = BTreeMap<&'static str, Vec<Call>>;

struct Bench {
    connection: Connection,
    clock: Arc<ManualClock>,
    sent: Sent,
}

impl Bench {
    fn new() -> Self {
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        Self {
            connection: Connection::to(EmbeddedStore::memory().unwrap()),
            clock: Arc::new(ManualClock::at(noon)),
            sent: Sent::new(),
        }
    }

    /// A process of its own.
    async fn limiter(&self) -> RateLimiter {
        RateLimiter::builder(TABLE)
            .region("us-east-1")
            .credentials(Credentials::from_keys("key", "secret", None))
            .http_client(self.connection.clone())
            .clock(self.clock.clone())
            .principal("tester")
            .create_table(true)
            .await
            .unwrap()
    }

    fn aws(&self) -> SdkConfig {
        let credentials = Credentials::from_keys("key", "secret", None);
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(self.connection.clone())
            .build()
    }

    /// Runs what a row is about.
    async fn row<T>(&mut self, name: &'static str, work: impl Future<Output = T>) -> T {
        self.connection.calls();
        let done = work.await;
        self.sent.entry(name).or_default().extend(self.connection.calls());
        done
    }

    async fn acquires(&mut self) {
        let limits = [Limit::per_minute("rpm", 10).unwrap()];
        let admin = self.limiter().await;
        admin
            .repository()
            .set_resource_defaults("gpt-4", limits)
            .await
            .unwrap();
        let limiter = self.limiter().await;
        let acquire = |tokens| limiter.acquire("user-1", "gpt-4").consume("rpm", tokens);
        self.row("acquire, cold", async {
            acquire(1).await.unwrap().commit().await.unwrap();
        })
        .await;
        self.row("acquire, warm", async {
            acquire(1).await.unwrap().commit().await.unwrap();
        })
        .await;
        self.clock.advance(Duration::from_secs(2));
        self.row("refusal", async { assert!(acquire(10).await.is_err()) })
            .await;
        let sent = self.sent["refusal"].len();
        self.row("refusal", async { assert!(acquire(10).await.is_err()) })
            .await;
        assert_eq!(
            self.sent["refusal"].len(),
            sent,
            "the second refusal comes from memory"
        );
    }

    async fn writes(&mut self, repository: &Repository) {
        self.row("first call of a repository", async {
            assert!(!repository.delete_limits("nobody", "gpt-4").await.unwrap());
        })
        .await;
        let limits = || [Limit::per_minute("rpm", 20).unwrap()];
        self.row("set limits", async {
            repository.set_limits("user-1", "gpt-4", limits()).await.unwrap();
            repository.set_system_defaults(limits()).await.unwrap();
        })
        .await;
        self.row("create an entity", async {
            repository.create_entity(NewEntity::new("org")).await.unwrap();
            repository
                .create_entity(NewEntity::new("user-1").parent("org"))
                .await
                .unwrap();
        })
        .await;
        self.row("update an entity", async {
            let change = EntityChange::new().name("User");
            repository.update_entity("user-1", change).await.unwrap();
        })
        .await;
    }

    async fn reads(&mut self, repository: &Repository) {
        let page = &PageRequest::new(10);
        let resource = "gpt-4".parse().unwrap();
        let subject = AuditSubject::Entity("user-1".parse().unwrap());
        self.row("get an entity", async {
            repository.get_entity("user-1").await.unwrap().unwrap()
        })
        .await;
        self.row("children of a parent", repository.list_children("org", page))
            .await
            .unwrap();
        self.row(
            "capacity of a resource",
            repository.get_resource_capacity("gpt-4", "rpm", CapacityScope::Everyone),
        )
        .await
        .unwrap();
        self.row(
            "entities with limits of their own",
            repository.list_entities_with_custom_limits(Some(&resource), page),
        )
        .await
        .unwrap();
        self.row(
            "resources with defaults",
            repository.list_resources_with_defaults(),
        )
        .await
        .unwrap();
        self.row(
            "resources with entity limits",
            repository.list_resources_with_entity_configs(),
        )
        .await
        .unwrap();
        self.row("audit events", repository.list_audit_events(&subject, page))
            .await
            .unwrap();
        self.row("version", repository.get_version()).await.unwrap();
        self.row(
            "list entities, migrate, `audit archive`",
            repository.list_entities(page),
        )
        .await
        .unwrap();
    }

    /// Counts changes of buckets, and returns one of their entities and its resource.
    async fn usage(&mut self, repository: &Repository) {
        let aws = self.aws();
        let queue = Queue::new(aws_sdk_sqs::Client::new(&aws), "https://sqs.invalid/dead");
        let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&aws), TABLE);
        let aggregator = Aggregator::new(table, queue, vec![WindowKind::Hourly], 90);
        let event = bucket_changes(1, 20, 3).streams[0].event();
        let batch: Batch = serde_json::from_str(&event).unwrap();
        let invocation = Invocation::within(Duration::from_secs(60));
        let mut report = Report::new(Level::Error, <Aggregator<DynamoDb, Queue> as Function>::METRICS);
        self.row("count usage (aggregator)", async {
            assert!(aggregator.handle(&batch, &invocation, &mut report).await.is_ok());
        })
        .await;
        let key = &self.sent["count usage (aggregator)"][0].request["Key"];
        let entity = key["PK"]["S"]
            .as_str()
            .unwrap()
            .strip_prefix("ENTITY#")
            .unwrap()
            .to_owned();
        let resource = key["SK"]["S"]
            .as_str()
            .unwrap()
            .split('#')
            .nth(2)
            .unwrap()
            .to_owned();
        for (row, query) in [
            ("usage of an entity", UsageQuery::of_entity(entity)),
            ("usage of a resource", UsageQuery::of_resource(resource)),
        ] {
            let query = query.unwrap();
            let page = PageRequest::new(10);
            let found = self
                .row(row, repository.list_usage_snapshots(&query, &page))
                .await
                .unwrap();
            assert!(!found.items.is_empty(), "{row}");
        }
    }
}

fn names(calls: &[Call], field: &str) -> BTreeSet<String> {
    let values = calls.iter().filter_map(|call| call.request[field].as_str());
    values.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_access_pattern_names_the_requests_that_are_sent() {
    let mut bench = Bench::new();
    bench.acquires().await;
    let limiter = bench.limiter().await;
    let repository = limiter.repository();
    bench.writes(repository).await;
    bench.reads(repository).await;
    bench.usage(repository).await;
    bench
        .row("delete an entity", async {
            repository.delete_entity("user-1").await.unwrap()
        })
        .await;

    let page = pages::read("docs/understand/schema.md");
    let rows = pages::rows(pages::section(&page, "Access patterns"));
    let mut wrong = vec![];
    for row in &rows[1..] {
        let Some(calls) = bench.sent.remove(row[0].as_str()) else {
            wrong.push(format!("{}: nothing runs it", row[0]));
            continue;
        };
        let spans: BTreeSet<_> = pages::code_spans(&row[1]).into_iter().collect();
        let operations: BTreeSet<_> = calls.iter().map(|call| call.operation.clone()).collect();
        let named: BTreeSet<_> = spans
            .iter()
            .filter(|span| OPERATIONS.contains(&span.as_str()))
            .cloned()
            .collect();
        let indexes: BTreeSet<_> = spans
            .iter()
            .filter(|span| span.len() == 4 && span.starts_with("GSI"))
            .cloned()
            .collect();
        if operations != named || names(&calls, "IndexName") != indexes {
            wrong.push(format!(
                "{}: sent {operations:?} {:?}",
                row[0],
                names(&calls, "IndexName")
            ));
        }
        let requests = calls
            .iter()
            .map(|call| call.request.to_string())
            .collect::<String>();
        for key in spans.iter().filter(|span| span.contains('#')) {
            let prefix = key.split('{').next().unwrap();
            if !requests.contains(&format!("\"{prefix}")) {
                wrong.push(format!("{}: no request has {key}", row[0]));
            }
        }
    }
    wrong.extend(bench.sent.into_iter().map(|(row, calls)| {
        let operations: Vec<_> = calls.iter().map(|call| call.operation.as_str()).collect();
        format!("{row}: not on the page; sends {operations:?}")
    }));
    assert!(wrong.is_empty(), "docs/understand/schema.md: {wrong:#?}");
}
