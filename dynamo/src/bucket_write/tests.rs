#![allow(clippy::unwrap_used, clippy::panic)]

mod draw;
mod engine;
mod errors;
mod interpreter;
mod pinned;

use aws_sdk_dynamodb::Client;
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite, Statement};

use crate::script::table;
use crate::{CapacityMeter, EmbeddedStore, Table, Update, Updated, to_sdk_item, to_sdk_key};

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
        let table = table(Client::from_conf(
            store.sdk_config().interceptor(meter.clone()).build(),
        ));
        runtime.block_on(table.create()).unwrap();
        Self {
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

    fn send(&self, statement: &Statement) -> crate::Result<Updated<Attributes>> {
        let update = Update::of_statement(key().key(), statement);
        self.runtime.block_on(self.table.update_bucket(update))
    }

    /// The item after the statement, or nothing and the item that refused it.
    fn apply(&self, statement: &Statement) -> Result<Attributes, Option<Attributes>> {
        outcome(self.send(statement))
    }

    fn write(&self, write: &BucketWrite) -> Result<Attributes, Option<Attributes>> {
        outcome(self.runtime.block_on(self.table.write_bucket(write)))
    }
}

fn outcome(sent: crate::Result<Updated<Attributes>>) -> Result<Attributes, Option<Attributes>> {
    match sent.unwrap() {
        Updated::Done(bucket) => Ok(bucket),
        Updated::ConditionFailed(bucket) => Err(bucket),
    }
}
