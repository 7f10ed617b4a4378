//! DynamoDB in the process, with the one table of the stack.

use dynoxide::actions::scan::ScanRequest;
use dynoxide::actions::update_item::{UpdateItemRequest, UpdateItemResponse};
use serde_json::{Value, json};
use zae_limiter_schema::keys::{attribute, prefix};
use zae_limiter_schema::table::{KeyDefinition, TABLE};
use zae_limiter_schema::{AttributeValue, Item, UsageSnapshot};

/// DynamoDB with a table called `limiter`.
#[derive(Clone)]
pub struct Database(dynoxide::Database);

impl Database {
    /// The table's name.
    pub const TABLE: &'static str = "limiter";

    /// An empty table.
    pub fn new() -> Self {
        let database = dynoxide::Database::memory().unwrap();
        database
            .create_table(serde_json::from_value(create_table(Self::TABLE)).unwrap())
            .unwrap();
        Self(database)
    }

    /// Performs an update.
    pub fn update_item(&self, request: UpdateItemRequest) -> dynoxide::Result<UpdateItemResponse> {
        self.0.update_item(request)
    }

    /// Responds to a request of the SDK with a status and JSON.
    pub(crate) fn respond(&self, operation: &str, body: &[u8]) -> (u16, String) {
        assert_eq!(operation, "UpdateItem", "the functions write and do nothing else");
        let request = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}"));
        match self.update_item(request) {
            Ok(response) => (200, serde_json::to_string(&response).unwrap()),
            Err(error) => (error.status_code(), error.to_json()),
        }
    }

    /// Every item of the table.
    pub fn items(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let table_name = Self::TABLE.to_owned();
            let page = self
                .0
                .scan(ScanRequest {
                    table_name,
                    exclusive_start_key: start,
                    ..ScanRequest::default()
                })
                .unwrap();
            let found = page.items.unwrap_or_default().into_iter();
            items.extend(found.map(|item| {
                let json = serde_json::to_string(&item).unwrap();
                serde_json::from_str::<Item>(&json).unwrap()
            }));
            start = page.last_evaluated_key;
            if start.is_none() {
                return items;
            }
        }
    }

    /// Every item, which must be a snapshot.
    pub fn snapshots(&self) -> Vec<UsageSnapshot> {
        let is_snapshot = |item: &&Item| {
            let key = item.get(attribute::SK);
            matches!(key, Some(AttributeValue::S(key)) if key.starts_with(prefix::USAGE))
        };
        self.items()
            .iter()
            .filter(is_snapshot)
            .map(|item| UsageSnapshot::from_item(item).unwrap())
            .collect()
    }
}

impl Default for Database {
    fn default() -> Self {
        Self::new()
    }
}

/// The body of a `CreateTable` request for the table of a limiter, without its stream.
pub fn create_table(name: &str) -> Value {
    let keys = |key: KeyDefinition| {
        json!([
            {"AttributeName": key.partition, "KeyType": "HASH"},
            {"AttributeName": key.sort, "KeyType": "RANGE"},
        ])
    };
    let attributes = TABLE.key_attributes();
    let attributes = attributes.map(|name| json!({"AttributeName": name, "AttributeType": "S"}));
    let indexes = TABLE.indexes.map(|index| {
        json!({
            "IndexName": index.name,
            "KeySchema": keys(index.key),
            "Projection": {"ProjectionType": index.projection.as_str()},
        })
    });
    json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes.collect::<Vec<_>>(),
        "KeySchema": keys(TABLE.key),
        "GlobalSecondaryIndexes": indexes,
    })
}
