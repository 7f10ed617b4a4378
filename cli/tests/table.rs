//! Items that other programs leave in the table of a bench.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::EmbeddedStore;
use zae_limiter::usage::Window;

use crate::tool::Bench;

/// The attributes of an item.
pub(crate) type Item = Vec<(&'static str, AttributeValue)>;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Writes items beside the command.
pub(crate) fn put(bench: &Bench, items: impl IntoIterator<Item = Item>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = EmbeddedStore::file(bench.path("table.db")).await.unwrap();
        let client = Client::from_conf(store.sdk_config().build());
        for item in items {
            let item = item.into_iter().map(|(name, value)| (name.to_owned(), value));
            let put = client.put_item().table_name("limiter");
            put.set_item(Some(item.collect())).send().await.unwrap();
        }
    });
}

/// What an aggregator has counted for an entity on gpt-4 in a window.
pub(crate) fn snapshot(
    entity: &str,
    window: &Window,
    acquires: i64,
    tokens: &[(&'static str, i64)],
    refusals: i64,
) -> Item {
    let mut item = vec![
        ("PK", text(format!("ENTITY#{entity}"))),
        ("SK", text(format!("#USAGE#gpt-4#{}", window.key()))),
        ("entity_id", text(entity)),
        ("resource", text("gpt-4")),
        ("window", text(window.kind().to_string())),
        ("window_start", text(window.start().to_string())),
        ("total_events", number(acquires)),
        ("_rf", text(refusals.to_string())),
        ("GSI2PK", text("RESOURCE#gpt-4")),
        ("GSI2SK", text(format!("USAGE#{}#{entity}", window.key()))),
    ];
    item.extend(tokens.iter().map(|(limit, tokens)| (*limit, number(*tokens))));
    item
}
