//! The changes of an embedded table, in order, for readers that each have a place of their own.
//!
//! The engine records every change of a table with a stream, and deletes none. What all readers have read is deleted here.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{EmbeddedStore, dispatch};
use crate::{Error, Result};

/// The most changes of one read.
const MOST: u32 = 1_000;
/// The changes that are kept for readers. Beyond that the oldest are deleted, whether they are read or not.
const KEPT: u32 = 100_000;
/// The seconds for which changes are kept for a reader that reads nothing. DynamoDB keeps them as long.
const RETENTION: u32 = 24 * 60 * 60;
/// The engine never reuses a sequence number, so that the stream of a table has one label for ever.
const LABEL: &str = "embedded";

/// The changes of an embedded table, for one reader. Clones have the same place.
#[derive(Debug, Clone)]
pub struct EmbeddedStream {
    store: EmbeddedStore,
    table: String,
    reader: &'static str,
}

/// Some changes, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The event that Lambda would deliver with them.
    event: String,
    /// Where they are in the stream.
    places: Vec<i64>,
}

impl Changes {
    /// The event that Lambda would deliver, as JSON.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl EmbeddedStore {
    /// The changes of a table, for a reader with this name. From now on they are recorded, unless they are already.
    ///
    /// A reader begins with the oldest change that is kept: those that another reader has not read, at most the latest
    /// 100,000. A process that has the file open already records changes once it opens the file again.
    pub async fn stream(&self, table: &str, reader: &'static str) -> Result<EmbeddedStream> {
        let stream = EmbeddedStream {
            store: self.clone(),
            table: table.to_owned(),
            reader,
        };
        let opened = stream.clone();
        self.off_the_runtime(move || opened.open()).await?;
        Ok(stream)
    }
}

impl EmbeddedStream {
    fn open(&self) -> Result<()> {
        self.record_changes()?;
        self.store.with_connection(|connection| {
            connection.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS _zae_readers (
                     table_name TEXT NOT NULL, reader TEXT NOT NULL, place INTEGER NOT NULL, read_at INTEGER NOT NULL,
                     PRIMARY KEY (table_name, reader));
                 -- The engine looks for the latest number before every write.
                 CREATE INDEX IF NOT EXISTS _zae_sequence
                     ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
                 CREATE TRIGGER IF NOT EXISTS _zae_bound AFTER INSERT ON _stream_records WHEN NEW.id % 1000 = 0
                     BEGIN DELETE FROM _stream_records WHERE id <= NEW.id - {KEPT}; END;"
            ))?;
            connection.execute(
                "INSERT OR IGNORE INTO _zae_readers VALUES (?1, ?2, 0, unixepoch())",
                params![self.table, self.reader],
            )
        })?;
        Ok(())
    }

    /// Gives the table a stream, unless it has one.
    fn record_changes(&self) -> Result<()> {
        let enabled: Option<bool> = self.store.with_connection(|connection| {
            let sql = "SELECT stream_enabled FROM _tables WHERE table_name = ?1";
            connection
                .query_row(sql, [&self.table], |row| row.get(0))
                .optional()
        })?;
        if enabled == Some(true) {
            return Ok(());
        }
        let request = json!({
            "TableName": self.table,
            "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
        });
        let _turn = self.store.turn();
        dispatch::dispatch(
            &self.store.database,
            "UpdateTable",
            request.to_string().as_bytes(),
        )
        .map(drop)
        .map_err(|error| self.store.failed(&error.to_string()))
    }

    /// The next changes, at most 1,000; none if the reader has read all.
    pub async fn next(&self) -> Result<Changes> {
        let stream = self.clone();
        self.store.off_the_runtime(move || stream.read()).await
    }

    fn read(&self) -> Result<Changes> {
        let rows = self.store.with_connection(|connection| {
            let mut select = connection.prepare(
                "SELECT id, event_id, event_name, keys_json, old_image, new_image, sequence_number, created_at
                 FROM _stream_records
                 WHERE table_name = ?1 AND id > (SELECT place FROM _zae_readers WHERE table_name = ?1 AND reader = ?2)
                 ORDER BY id LIMIT ?3",
            )?;
            let rows = select.query_map(params![self.table, self.reader, MOST], |row| {
                Ok(Row {
                    id: row.get(0)?,
                    event_id: row.get(1)?,
                    event_name: row.get(2)?,
                    keys: row.get(3)?,
                    old_image: row.get(4)?,
                    new_image: row.get(5)?,
                    sequence_number: row.get(6)?,
                    created_at: row.get(7)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let arn = format!(
            "arn:aws:dynamodb:embedded:000000000000:table/{}/stream/{LABEL}",
            self.table
        );
        let places = rows.iter().map(|row| row.id).collect();
        let records = rows.into_iter().map(|row| row.record(&arn));
        let records = records.collect::<serde_json::Result<Vec<_>>>();
        let event = records.and_then(|records| serde_json::to_string(&Event { records }));
        Ok(Changes {
            event: event.map_err(|error| self.store.failed(&error.to_string()))?,
            places,
        })
    }

    /// Moves the place of the reader behind the first `count` of these changes. Changes that all readers have read are
    /// deleted.
    pub async fn read_through(&self, changes: &Changes, count: usize) -> Result<()> {
        let last = count.checked_sub(1).and_then(|last| changes.places.get(last));
        let Some(&place) = last else { return Ok(()) };
        let stream = self.clone();
        self.store.off_the_runtime(move || stream.move_to(place)).await
    }

    fn move_to(&self, place: i64) -> Result<()> {
        self.store.with_connection(|connection| {
            connection.execute(
                "UPDATE _zae_readers SET place = max(place, ?3), read_at = unixepoch()
                 WHERE table_name = ?1 AND reader = ?2",
                params![self.table, self.reader, place],
            )?;
            // The last record stays: the engine numbers the next one after it.
            connection.execute(
                "DELETE FROM _stream_records WHERE table_name = ?1 AND id < (
                     SELECT min(place) FROM _zae_readers WHERE table_name = ?1 AND read_at > unixepoch() - ?2)",
                params![self.table, RETENTION],
            )
        })?;
        Ok(())
    }
}

/// A recorded change as the engine stores it.
struct Row {
    id: i64,
    event_id: Option<String>,
    event_name: String,
    keys: String,
    old_image: Option<String>,
    new_image: Option<String>,
    sequence_number: String,
    created_at: i64,
}

#[derive(Serialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

/// A record as Lambda delivers it.
#[derive(Serialize)]
struct Record {
    #[serde(rename = "eventID")]
    event_id: String,
    #[serde(rename = "eventName")]
    event_name: String,
    #[serde(rename = "eventSource")]
    event_source: &'static str,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: String,
    #[serde(rename = "awsRegion")]
    aws_region: &'static str,
    dynamodb: Change,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Change {
    approximate_creation_date_time: i64,
    keys: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_image: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_image: Option<Box<RawValue>>,
    sequence_number: String,
    size_bytes: usize,
    stream_view_type: &'static str,
}

impl Row {
    fn record(self, arn: &str) -> serde_json::Result<Record> {
        let length = |image: &Option<String>| image.as_ref().map_or(0, String::len);
        let size_bytes = self.keys.len() + length(&self.old_image) + length(&self.new_image);
        Ok(Record {
            event_id: self.event_id.unwrap_or_else(|| self.sequence_number.clone()),
            event_name: self.event_name,
            event_source: "aws:dynamodb",
            event_source_arn: arn.to_owned(),
            aws_region: "embedded",
            dynamodb: Change {
                approximate_creation_date_time: self.created_at,
                keys: RawValue::from_string(self.keys)?,
                old_image: self.old_image.map(RawValue::from_string).transpose()?,
                new_image: self.new_image.map(RawValue::from_string).transpose()?,
                sequence_number: self.sequence_number,
                size_bytes,
                stream_view_type: "NEW_AND_OLD_IMAGES",
            },
        })
    }
}

impl EmbeddedStore {
    /// Runs what waits for a file on another thread than the asynchronous ones.
    async fn off_the_runtime<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.file.is_none() {
            return work();
        }
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(self.failed(&error.to_string())))
    }

    /// A second connection to the database, for what the engine has no call for.
    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let _turn = self.turn();
        let connection = Connection::open(&self.address).and_then(|connection| {
            connection.busy_timeout(super::file::PATIENCE)?;
            work(&connection)
        });
        connection.map_err(|error| match &self.file {
            Some(path) if super::file::is_busy(&error) => Error::FileHeld { path: path.clone() },
            _ => self.failed(&error.to_string()),
        })
    }

    fn failed(&self, reason: &str) -> Error {
        Error::Store {
            place: self.place(),
            reason: format!("cannot provide its changes: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::types::AttributeValue;
    use serde_json::Value;

    use super::*;

    const CREATE: &str = r#"{"TableName": "table", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}]}"#;

    fn with_table(store: &EmbeddedStore) {
        dispatch::dispatch(&store.database, "CreateTable", CREATE.as_bytes()).unwrap();
    }

    async fn put(store: &EmbeddedStore, key: &str, number: u32) {
        let client = Client::from_conf(store.sdk_config().build());
        let put = client
            .put_item()
            .table_name("table")
            .item("PK", AttributeValue::S(key.to_owned()));
        let put = put.item("n", AttributeValue::N(number.to_string()));
        put.send().await.unwrap();
    }

    /// The new numbers.
    fn numbers(changes: &Changes) -> Vec<String> {
        let event: Value = serde_json::from_str(changes.event()).unwrap();
        let records = event["Records"].as_array().unwrap().iter();
        let number = |record: &Value| {
            record["dynamodb"]["NewImage"]["n"]["N"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        records.map(number).collect()
    }

    fn recorded(store: &EmbeddedStore) -> u32 {
        let count = "SELECT count(*) FROM _stream_records";
        store
            .with_connection(|connection| connection.query_row(count, [], |row| row.get(0)))
            .unwrap()
    }

    async fn reads_its_changes_in_order(store: EmbeddedStore) {
        with_table(&store);
        put(&store, "before", 0).await;
        let one = store.stream("table", "one").await.unwrap();
        assert!(one.next().await.unwrap().is_empty());
        for number in 1..=3 {
            put(&store, "a", number).await;
        }
        let changes = one.next().await.unwrap();
        assert_eq!(numbers(&changes), ["1", "2", "3"]);
        let event: Value = serde_json::from_str(changes.event()).unwrap();
        let [first, second] = [0, 1].map(|index| &event["Records"][index]);
        assert_eq!(
            (&first["eventName"], &second["eventName"]),
            (&"INSERT".into(), &"MODIFY".into())
        );
        assert_eq!(first["dynamodb"]["OldImage"], Value::Null);
        assert_eq!(second["dynamodb"]["OldImage"], first["dynamodb"]["NewImage"]);
        assert!(
            first["eventSourceARN"]
                .as_str()
                .unwrap()
                .ends_with(":table/table/stream/embedded")
        );

        one.read_through(&changes, 0).await.unwrap();
        assert_eq!(one.next().await.unwrap().len(), 3, "nothing was read");
        one.read_through(&changes, 2).await.unwrap();
        assert_eq!(numbers(&one.next().await.unwrap()), ["3"]);
        let again = store.stream("table", "one").await.unwrap();
        assert_eq!(
            numbers(&again.next().await.unwrap()),
            ["3"],
            "the place is stored"
        );
    }

    #[tokio::test]
    async fn a_reader_in_memory_reads_changes_in_order_from_its_place() {
        reads_its_changes_in_order(EmbeddedStore::memory().unwrap()).await;
    }

    #[tokio::test]
    async fn a_reader_of_a_file_reads_changes_in_order_from_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::file(folder.path().join("f.db")).await.unwrap();
        reads_its_changes_in_order(store).await;
    }

    #[tokio::test]
    async fn changes_are_deleted_when_every_reader_has_read_them_but_for_the_last() {
        let store = EmbeddedStore::memory().unwrap();
        with_table(&store);
        let one = store.stream("table", "one").await.unwrap();
        let two = store.stream("table", "two").await.unwrap();
        for number in 0..5 {
            put(&store, "a", number).await;
        }
        let changes = one.next().await.unwrap();
        one.read_through(&changes, 5).await.unwrap();
        assert_eq!(recorded(&store), 5, "the other reader has read none");
        two.read_through(&changes, 4).await.unwrap();
        assert_eq!(recorded(&store), 2);
        two.read_through(&changes, 5).await.unwrap();
        assert_eq!(recorded(&store), 1);
        put(&store, "a", 9).await;
        assert_eq!(numbers(&one.next().await.unwrap()), ["9"]);
    }

    #[tokio::test]
    async fn a_reader_that_read_nothing_for_a_day_holds_nothing_back() {
        let store = EmbeddedStore::memory().unwrap();
        with_table(&store);
        let one = store.stream("table", "one").await.unwrap();
        store.stream("table", "gone").await.unwrap();
        let yesterday = "UPDATE _zae_readers SET read_at = unixepoch() - 90000 WHERE reader = 'gone'";
        store
            .with_connection(|connection| connection.execute(yesterday, []))
            .unwrap();
        for number in 0..5 {
            put(&store, "a", number).await;
        }
        let changes = one.next().await.unwrap();
        one.read_through(&changes, 5).await.unwrap();
        assert_eq!(recorded(&store), 1);
    }

    #[tokio::test]
    async fn changes_that_nobody_reads_are_bounded() {
        let store = EmbeddedStore::memory().unwrap();
        with_table(&store);
        store.stream("table", "one").await.unwrap();
        put(&store, "a", 1).await;
        // As if there had been many changes since.
        let later = format!("UPDATE _stream_records SET id = {}", KEPT - 1);
        store
            .with_connection(|connection| connection.execute(&later, []))
            .unwrap();
        put(&store, "a", 2).await;
        assert_eq!(recorded(&store), 2);
        let later = format!(
            "UPDATE sqlite_sequence SET seq = {} WHERE name = '_stream_records'",
            2 * KEPT - 1
        );
        store
            .with_connection(|connection| connection.execute(&later, []))
            .unwrap();
        put(&store, "a", 3).await;
        assert_eq!(recorded(&store), 1, "the oldest are deleted");
    }

    #[tokio::test]
    async fn the_search_for_the_latest_number_uses_the_index() {
        let store = EmbeddedStore::memory().unwrap();
        with_table(&store);
        store.stream("table", "one").await.unwrap();
        let explain = "EXPLAIN QUERY PLAN SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 \
                       FROM _stream_records WHERE table_name = 'table'";
        let plan: String = store
            .with_connection(|connection| connection.query_row(explain, [], |row| row.get(3)))
            .unwrap();
        assert!(plan.contains("_zae_sequence"), "{plan}");
    }
}
