//! DynamoDB in the process, with the one table of the stack.

use dynoxide::actions::scan::ScanRequest;
use dynoxide::actions::update_item::{UpdateItemRequest, UpdateItemResponse};
use serde_json::json;
use zae_limiter_schema::{Item, UsageSnapshot};

/// DynamoDB with a table called `limiter`.
#[derive(Clone)]
pub struct Database(dynoxide::Database);

impl Database {
    /// The table's name.
    pub const TABLE: &'static str = "limiter";

    /// An empty table with the index that snapshots are in.
    pub fn new() -> Self {
        let attribute = |name| json!({"AttributeName": name, "AttributeType": "S"});
        let attributes = ["PK", "SK", "GSI2PK", "GSI2SK"].map(attribute);
        let keys = |hash, range| json!([{"AttributeName": hash, "KeyType": "HASH"}, {"AttributeName": range, "KeyType": "RANGE"}]);
        let table = json!({
            "TableName": Self::TABLE,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": attributes,
            "KeySchema": keys("PK", "SK"),
            "GlobalSecondaryIndexes": [{
                "IndexName": "GSI2",
                "KeySchema": keys("GSI2PK", "GSI2SK"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }],
        });
        let database = dynoxide::Database::memory().unwrap();
        database
            .create_table(serde_json::from_value(table).unwrap())
            .unwrap();
        Self(database)
    }

    /// Performs an update.
    pub fn update_item(&self, request: UpdateItemRequest) -> dynoxide::Result<UpdateItemResponse> {
        self.0.update_item(request)
    }

    /// Answers a request of the SDK: status and JSON.
    pub(crate) fn answer(&self, operation: &str, body: &[u8]) -> (u16, String) {
        assert_eq!(operation, "UpdateItem", "the functions write and do nothing else");
        let request = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}"));
        match self.update_item(request) {
            Ok(answer) => (200, serde_json::to_string(&answer).unwrap()),
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
        self.items()
            .iter()
            .map(|item| UsageSnapshot::from_item(item).unwrap())
            .collect()
    }
}

impl Default for Database {
    fn default() -> Self {
        Self::new()
    }
}
