//! `audit archive` on a local cloud, compared with the real archiver.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use serde_json::{Value, json};

use crate::local::Cloud;
use crate::tool::{Bench, RunResult, result};

/// How long the stream and the archiver may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// A bucket that no archiver writes to.
const BY_HAND: &str = "by-hand";

fn on(cloud: &Cloud, arguments: &[&str]) -> RunResult {
    result(cloud.on(&[arguments, &["-n", "demo"]].concat()))
}

/// `audit archive`, with the line that tells the end.
fn archive(cloud: &Cloud, arguments: &[&str], code: i32) -> (Value, RunResult) {
    let result = on(
        cloud,
        &[&["audit", "archive", "--output", "json"], arguments].concat(),
    )
    .expect_exit(code);
    let last = result.stdout.lines().last().unwrap_or("null").to_owned();
    (serde_json::from_str(&last).unwrap(), result)
}

struct Clients {
    s3: aws_sdk_s3::Client,
    dynamodb: aws_sdk_dynamodb::Client,
}

impl Clients {
    fn of(cloud: &Cloud) -> Self {
        let url = format!("http://127.0.0.1:{}", cloud.port);
        let credentials = Credentials::new("test", "test", None, None, "test");
        let region = Region::from_static("us-east-1");
        let s3 = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&url)
            .region(region.clone())
            .credentials_provider(credentials.clone())
            .force_path_style(true);
        let dynamodb = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(url)
            .region(region)
            .credentials_provider(credentials);
        Self {
            s3: aws_sdk_s3::Client::from_conf(s3.build()),
            dynamodb: aws_sdk_dynamodb::Client::from_conf(dynamodb.build()),
        }
    }

    /// Every object of a bucket.
    async fn objects(&self, bucket: &str) -> BTreeMap<String, Vec<u8>> {
        let listed = self.s3.list_objects_v2().bucket(bucket).send().await.unwrap();
        assert_ne!(listed.is_truncated(), Some(true));
        let mut objects = BTreeMap::new();
        for object in listed.contents() {
            let key = object.key().unwrap();
            let got = self.s3.get_object().bucket(bucket).key(key).send().await.unwrap();
            assert_eq!(got.content_type(), Some("application/x-ndjson"));
            assert_eq!(got.content_encoding(), Some("gzip"));
            let bytes = got.body.collect().await.unwrap().into_bytes();
            objects.insert(key.to_owned(), bytes.to_vec());
        }
        objects
    }

    /// An event with everything that a version to come may write.
    async fn put_event(&self, id: &str, timestamp: &str) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let number = |digits: &str| AttributeValue::N(digits.to_owned());
        let details = [
            ("tags", AttributeValue::Ss(vec!["b".to_owned(), "a".to_owned()])),
            ("sizes", AttributeValue::Ns(vec!["20".to_owned(), "3".to_owned()])),
            ("raw", AttributeValue::B(Blob::new([0, 200, 255]))),
            ("exact", number("12345678901234567890123456789")),
            ("none", AttributeValue::Null(true)),
            (
                "list",
                AttributeValue::L(vec![text("ü \"quoted\""), AttributeValue::Bool(false)]),
            ),
        ];
        let details = details.map(|(name, value)| (name.to_owned(), value));
        let item = [
            ("PK", text("AUDIT#user-1")),
            ("SK", text(&format!("#AUDIT#{id}"))),
            ("event_id", text(id)),
            ("timestamp", text(timestamp)),
            ("action", text("limits_set")),
            ("entity_id", text("user-1")),
            ("principal", AttributeValue::Null(true)),
            ("details", AttributeValue::M(details.into())),
            ("ttl", number("1999999999")),
        ];
        let item = item.map(|(name, value)| (name.to_owned(), value));
        let put = self
            .dynamodb
            .put_item()
            .table_name("demo")
            .set_item(Some(item.into()));
        put.send().await.unwrap();
    }
}

/// One cloud for all of it: each step is the ground of the next.
#[tokio::test]
async fn older_events_are_archived_as_the_archiver_would_archive_them() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let clients = Clients::of(&cloud);
    on(
        &cloud,
        &["deploy", "--no-aggregator", "--no-audit-archival", "--yes"],
    )
    .expect_exit(0);
    let events = changes(&cloud, &clients).await;
    without_an_archive_the_error_says_how_to_enable_it(&cloud);
    archiving_twice_gives_the_same_objects(&cloud, &clients, &events).await;
    an_endpoint_of_s3_alone_has_buckets_in_its_path(&cloud);
    the_archiver_writes_the_same_bytes(&cloud, &clients).await;
    invalid_events_are_left_out_and_reported(&cloud, &clients).await;
}

/// Changes of an entity that is deleted again, a resource and the system, and an event of January. Returns their ids.
async fn changes(cloud: &Cloud, clients: &Clients) -> BTreeSet<String> {
    on(cloud, &["entity", "create", "user-1"]).expect_exit(0);
    on(cloud, &["entity", "set-limits", "user-1", "-l", "rpm:10"]).expect_exit(0);
    on(cloud, &["entity", "delete", "user-1", "--yes"]).expect_exit(0);
    on(cloud, &["resource", "set-defaults", "gpt-4", "-l", "rpm:10"]).expect_exit(0);
    on(cloud, &["system", "set-defaults", "-l", "rpm:10"]).expect_exit(0);
    clients
        .put_event("01KGA0VC000000000000000001", "2026-01-31T23:59:59Z")
        .await;
    let mut ids = BTreeSet::new();
    for subject in ["user-1", "$RESOURCE:gpt-4", "$SYSTEM"] {
        let listed = on(cloud, &["audit", "list", "-e", subject, "--output", "json"]).expect_exit(0);
        let listed = listed.json();
        let events = listed["events"].as_array().unwrap().iter();
        ids.extend(events.map(|event| event["event_id"].as_str().unwrap().to_owned()));
    }
    assert!(ids.len() >= 6, "{ids:?}");
    ids
}

fn without_an_archive_the_error_says_how_to_enable_it(cloud: &Cloud) {
    let told = on(cloud, &["audit", "archive", "--since", "1d", "--output", "json"]).expect_exit(1);
    assert_eq!(told.error()["error"], "archive_missing");
    assert!(told.stderr.contains("--enable-audit-archival"), "{told:?}");
    let arguments = [
        "audit", "archive", "--since", "1d", "--output", "json", "-n", "nobody",
    ];
    let told = result(cloud.on(&arguments)).expect_exit(1);
    assert_eq!(told.error()["error"], "stack_missing");
    let (_, told) = archive(cloud, &["--since", "1d", "--bucket", "not-there"], 1);
    assert_eq!(told.error()["error"], "denied");
    assert!(told.stderr.contains("not-there/audit/*"), "{told:?}");
    let arguments = [
        "audit", "archive", "--since", "1d", "--bucket", BY_HAND, "--output", "json", "-n", "nobody",
    ];
    let told = result(cloud.on(&arguments)).expect_exit(1);
    assert_eq!(told.error()["error"], "table_missing", "{told:?}");
}

/// A bucket in a host name does not resolve there.
fn an_endpoint_of_s3_alone_has_buckets_in_its_path(cloud: &Cloud) {
    let url = format!("http://127.0.0.1:{}", cloud.port);
    let mut command = cloud.on(&[
        "audit",
        "archive",
        "-n",
        "demo",
        "--since",
        "2026-01-01",
        "--bucket",
        BY_HAND,
    ]);
    command
        .env_remove("AWS_ENDPOINT_URL")
        .env("AWS_ENDPOINT_URL_DYNAMODB", &url)
        .env("AWS_ENDPOINT_URL_S3", &url);
    result(command).expect_exit(0);
}

async fn archiving_twice_gives_the_same_objects(cloud: &Cloud, clients: &Clients, events: &BTreeSet<String>) {
    clients.s3.create_bucket().bucket(BY_HAND).send().await.unwrap();
    let whole = ["--since", "2026-01-01", "--bucket", BY_HAND];
    let (dry, _) = archive(cloud, &[&whole[..], &["--dry-run"]].concat(), 0);
    assert_eq!(
        (
            dry["events"].clone(),
            dry["archived"].clone(),
            dry["dry_run"].clone()
        ),
        (json!(events.len()), json!(0), json!(true))
    );
    assert!(clients.objects(BY_HAND).await.is_empty());

    let january = [
        "--since",
        "2026-01-31",
        "--until",
        "2026-02-01",
        "--bucket",
        BY_HAND,
        "--concurrency",
        "1",
    ];
    let (done, result) = archive(cloud, &january, 0);
    assert_eq!((&done["event"], &done["archived"]), (&json!("done"), &json!(1)));
    assert!(result.stdout.contains(r#""event":"progress""#), "{result:?}");
    let object = "audit/year=2026/month=01/day=31/01KGA0VC000000000000000001.jsonl.gz";
    assert_eq!(
        clients.objects(BY_HAND).await.into_keys().collect::<Vec<_>>(),
        [object]
    );

    let (done, _) = archive(cloud, &whole, 0);
    assert_eq!(done["archived"], json!(events.len()));
    let first = clients.objects(BY_HAND).await;
    let ids = |key: &String| {
        key.rsplit('/')
            .next()?
            .strip_suffix(".jsonl.gz")
            .map(str::to_owned)
    };
    assert_eq!(&first.keys().filter_map(ids).collect::<BTreeSet<_>>(), events);
    assert!(first.contains_key(object), "{:?}", first.keys());

    let text = on(cloud, &[&["audit", "archive"], &whole[..]].concat()).expect_exit(0);
    assert!(
        text.stdout.contains(BY_HAND) && text.stdout.contains("Archived"),
        "{text:?}"
    );
    assert!(
        text.stderr.contains("items read"),
        "timed lines where there is no terminal: {text:?}"
    );
    assert_eq!(clients.objects(BY_HAND).await, first, "the same bytes again");
}

async fn the_archiver_writes_the_same_bytes(cloud: &Cloud, clients: &Clients) {
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/dev-functions");
    assert!(functions.is_dir(), "run make dev-functions");
    let functions = functions.to_str().unwrap();
    on(
        cloud,
        &[
            "deploy",
            "--no-aggregator",
            "--enable-audit-archival",
            "--code-directory",
            functions,
            "--yes",
        ],
    )
    .expect_exit(0);
    let status = on(cloud, &["status", "--output", "json"]).expect_exit(0).json();
    let bucket = status["stack"]["outputs"]["AuditArchiveBucketName"]
        .as_str()
        .unwrap()
        .to_owned();

    on(cloud, &["resource", "set-defaults", "gpt-5", "-l", "rpm:10"]).expect_exit(0);
    clients
        .put_event("01KGA0VC000000000000000002", "2026-02-28T00:00:00Z")
        .await;
    let listed = on(
        cloud,
        &["audit", "list", "-e", "$RESOURCE:gpt-5", "--output", "json"],
    )
    .expect_exit(0);
    let awaited = [
        listed.json()["events"][0]["event_id"]
            .as_str()
            .unwrap()
            .to_owned(),
        "01KGA0VC000000000000000002".to_owned(),
    ];
    let deadline = Instant::now() + PATIENCE;
    let by_archiver = loop {
        let objects = clients.objects(&bucket).await;
        if awaited
            .iter()
            .all(|id| objects.keys().any(|key| key.contains(id)))
        {
            break objects;
        }
        assert!(
            Instant::now() < deadline,
            "{:?} lacks some of {awaited:?}",
            objects.keys()
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    };

    let (done, _) = archive(cloud, &["--since", "2026-01-01"], 0);
    assert_eq!(done["bucket"], json!(bucket));
    archive(cloud, &["--since", "2026-01-01", "--bucket", BY_HAND], 0);
    let by_command = clients.objects(BY_HAND).await;
    for (key, bytes) in &by_archiver {
        assert_eq!(by_command.get(key), Some(bytes), "{key} is the same from both");
    }
    assert_eq!(clients.objects(&bucket).await, by_command);
}

async fn invalid_events_are_left_out_and_reported(cloud: &Cloud, clients: &Clients) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = clients
        .dynamodb
        .put_item()
        .table_name("demo")
        .item("PK", text("AUDIT#user-1"))
        .item("SK", text("#AUDIT#nameless"));
    put.send().await.unwrap();
    let before = clients.objects(BY_HAND).await;
    let (done, _) = archive(cloud, &["--since", "2026-01-01", "--bucket", BY_HAND], 1);
    assert_eq!(
        (&done["left_out"], &done["archived"]),
        (&json!(1), &json!(before.len()))
    );
    assert_eq!(done["problems"][0]["item"], "AUDIT#user-1 #AUDIT#nameless");
    assert!(
        done["problems"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("event_id"),
        "{done}"
    );
    assert_eq!(clients.objects(BY_HAND).await, before);
}

#[test]
fn an_unavailable_table_is_reported_as_unavailable() {
    let cloud = Cloud::new();
    let arguments = [
        "audit", "archive", "--since", "1d", "--bucket", BY_HAND, "--output", "json",
    ];
    let told = result(cloud.on(&arguments)).expect_exit(69);
    assert_eq!(told.error()["error"], "unavailable");
    assert!(told.stderr.contains("--endpoint-url"), "{told:?}");
}

#[test]
fn invalid_time_ranges_are_rejected() {
    let bench = Bench::new();
    let archive = |arguments: &[&str]| {
        bench
            .run(&[&["audit", "archive"], arguments].concat())
            .expect_exit(2)
    };
    assert!(archive(&[]).stderr.contains("--since"));
    assert!(
        archive(&["--since", "yesterday"])
            .stderr
            .contains("an age such as 24h")
    );
    assert!(
        archive(&["--since", "2026-02-01", "--until", "2026-01-01"])
            .stderr
            .contains("--until")
    );
    archive(&["--since", "1d", "--concurrency", "0"]);
    assert!(
        archive(&["--since", "1d"]).stderr.contains("--embedded"),
        "the archive is no file"
    );
}
