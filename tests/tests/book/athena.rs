//! The SQL of the archive's page, run with SQLite on what the archiver writes. Athena's `CREATE EXTERNAL TABLE` is read by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use rusqlite::Connection;
use serde_json::{Map, Value};
use zae_limiter::audit::AuditSubject;
use zae_limiter::{Limit, PageRequest, RateLimiter, Timestamp};
use zae_limiter_archiver::Object;

use crate::book::{markdown, pages};

const TABLE: &str = "zae_limiter_audit";

/// The statements of the page: the table, and the queries.
fn statements() -> (String, Vec<String>) {
    let page = pages::read("docs/infra/auditing.md");
    let blocks = markdown::blocks(&page).into_iter();
    let sql = blocks.filter(|block| block.language() == "sql");
    let (create, queries): (Vec<_>, Vec<_>) = sql
        .map(|block| block.text)
        .partition(|text| text.starts_with("CREATE EXTERNAL TABLE"));
    let [create] = &create[..] else {
        panic!("{create:?}")
    };
    (create.clone(), queries)
}

/// What is between `start` and the next closing parenthesis.
fn list<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let rest = text
        .split(start)
        .nth(1)
        .unwrap_or_else(|| panic!("no {start} in {text}"));
    let columns = rest.split(')').next().unwrap().split(',');
    columns
        .map(|column| {
            let (name, kind) = column.trim().split_once(' ').unwrap();
            assert_eq!(kind.trim(), "string", "{name}");
            name.trim_matches('`')
        })
        .collect()
}

/// The audit events of a few changes of `user-1`, at this time, as objects of the archive.
async fn archived(at: Timestamp) -> Vec<Object> {
    let repository = RateLimiter::embedded().build_repository().await.unwrap();
    for capacity in [100, 200] {
        let limits = [Limit::per_minute("rpm", capacity).unwrap()];
        repository.set_limits("user-1", "gpt-4", limits).await.unwrap();
    }
    let subject = AuditSubject::Entity("user-1".parse().unwrap());
    let events = repository
        .list_audit_events(&subject, &PageRequest::new(10))
        .await
        .unwrap();
    let objects = events.items.into_iter().map(|mut event| {
        event.timestamp = at;
        Object::of(&event.to_item()).unwrap()
    });
    objects.collect()
}

/// The columns of an object: its line, with what is nested as text, and the parts of its key.
fn row(object: &Object) -> BTreeMap<String, Option<String>> {
    let mut line = String::new();
    flate2::read::GzDecoder::new(&object.body[..])
        .read_to_string(&mut line)
        .unwrap();
    let line: Map<String, Value> = serde_json::from_str(&line).unwrap();
    let mut row: BTreeMap<_, _> = line
        .into_iter()
        .map(|(name, value)| match value {
            Value::Null => (name, None),
            Value::String(text) => (name, Some(text)),
            nested => (name, Some(nested.to_string())),
        })
        .collect();
    let parts = object.key.split('/').filter_map(|part| part.split_once('='));
    row.extend(parts.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))));
    row
}

#[tokio::test]
async fn the_table_has_the_columns_of_an_event_and_the_queries_find_it() {
    let (create, queries) = statements();
    let columns = list(&create, &format!("{TABLE} (\n"));
    let partitions = list(&create, "PARTITIONED BY (");
    let objects = archived(Timestamp::parse("2026-01-15T12:00:00Z").unwrap()).await;
    assert_eq!(objects.len(), 2);
    let rows: Vec<_> = objects.iter().map(row).collect();
    let written: BTreeSet<&str> = rows[0].keys().map(String::as_str).collect();
    let declared: Vec<&str> = columns.iter().chain(&partitions).copied().collect();
    assert_eq!(declared.iter().copied().collect::<BTreeSet<_>>(), written);
    for part in partitions {
        assert!(
            create.contains(&format!("/{part}=${{{part}}}/"))
                || create.contains(&format!("{part}=${{{part}}}"))
        );
        assert!(create.contains(&format!("'projection.{part}.type'")), "{part}");
    }
    assert!(create.contains(&format!("s3://ARCHIVE_BUCKET/{}'", Object::PREFIX)));

    let database = Connection::open_in_memory().unwrap();
    let quoted: Vec<_> = declared.iter().map(|name| format!("\"{name}\"")).collect();
    let quoted = quoted.join(", ");
    database
        .execute(&format!("CREATE TABLE {TABLE} ({quoted})"), [])
        .unwrap();
    let marks = vec!["?"; declared.len()].join(", ");
    for row in &rows {
        let values = declared.iter().map(|name| row[*name].clone());
        let insert = format!("INSERT INTO {TABLE} ({quoted}) VALUES ({marks})");
        database
            .execute(&insert, rusqlite::params_from_iter(values))
            .unwrap();
    }
    assert_eq!(queries.len(), 2);
    let results: Vec<Vec<Vec<String>>> = queries.iter().map(|query| select(&database, query)).collect();
    // Both changes in order, the limits of the second one, and as many events as ids.
    assert_eq!(results[0].len(), 2, "{results:?}");
    assert!(results[0][1][3].contains("200"), "{results:?}");
    assert_eq!(results[1], [["2", "2"]], "{results:?}");
}

fn select(database: &Connection, query: &str) -> Vec<Vec<String>> {
    let mut statement = database
        .prepare(query)
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cells = (0..width).map(|index| {
            let value: rusqlite::types::Value = row.get(index)?;
            Ok(match value {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            })
        });
        cells.collect()
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}
