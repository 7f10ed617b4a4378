//! Every audit event in the table, found by a scan.
//!
//! A query would need the keys, and no other item refers to the events of a deleted entity.

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::scan::ScanError;
use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use serde_dynamo::Item;
use zae_limiter::error::{NotFound, Unavailable};
use zae_limiter::{EmbeddedStore, Error as Limiter, StackName};
use zae_limiter_dynamo::{SdkItem, from_sdk_item};
use zae_limiter_schema::keys::{attribute, prefix};

use super::CALL_TIMEOUT;
use crate::error::{Error, Result};

/// The audit events of a table, read page by page.
pub(crate) struct Events {
    client: Client,
    table: String,
    location: String,
    next: Next,
}

enum Next {
    First,
    After(SdkItem),
    End,
}

/// One page of the scan.
pub(crate) struct Page {
    /// The number of items scanned, of any kind.
    pub(super) read: u64,
    pub(crate) events: Vec<TrailItem>,
}

/// An item of the audit trail.
pub(crate) struct TrailItem {
    /// The key, for error reports.
    pub(crate) key: String,
    /// The event, or why it is not valid.
    pub(crate) event: Result<Item, String>,
}

impl Events {
    pub(super) fn of_table(aws: &SdkConfig, name: &StackName) -> Self {
        let region = aws.region().map(ToString::to_string).unwrap_or_default();
        let location = aws
            .endpoint_url()
            .map_or(region.clone(), |url| format!("{region} at {url}"));
        Self::at(Client::new(aws), name, location)
    }

    /// Those of an embedded table.
    pub(crate) fn of_store(store: &EmbeddedStore, name: &StackName) -> Self {
        let client = Client::from_conf(store.sdk_config().build());
        Self::at(client, name, store.place())
    }

    fn at(client: Client, name: &StackName, location: String) -> Self {
        Self {
            client,
            table: name.to_string(),
            location,
            next: Next::First,
        }
    }

    /// The approximate number of items in the table, or `None` if it is unknown.
    pub(super) async fn expected_items(&self) -> Option<u64> {
        // Only the progress bar uses it, so it is not worth a retry.
        let once = aws_sdk_dynamodb::Config::builder().retry_config(RetryConfig::disabled());
        let described = self.client.describe_table().table_name(&self.table).customize();
        let described = described.config_override(once).send().await;
        let count = described.ok()?.table?.item_count?;
        u64::try_from(count).ok().filter(|count| *count > 0)
    }

    /// The next page, or `None` after the last.
    pub(crate) async fn page(&mut self) -> Result<Option<Page>> {
        let start = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::After(key) => Some(key),
            Next::End => return Ok(None),
        };
        let scanned = self
            .client
            .scan()
            .table_name(&self.table)
            // Includes events that were written just before the scan.
            .consistent_read(true)
            .filter_expression("begins_with(#a0, :v0)")
            .expression_attribute_names("#a0", attribute::PK)
            .expression_attribute_values(":v0", SdkValue::S(prefix::AUDIT.to_owned()))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| self.failed(error))?;
        if let Some(key) = scanned.last_evaluated_key.filter(|key| !key.is_empty()) {
            self.next = Next::After(key);
        }
        let items = scanned.items.unwrap_or_default();
        Ok(Some(Page {
            read: u64::try_from(scanned.scanned_count).unwrap_or_default(),
            events: items.into_iter().map(trail_item).collect(),
        }))
    }

    fn failed(&self, error: SdkError<ScanError>) -> Error {
        const OPERATION: &str = "Scan";
        let (table, place) = (self.table.clone(), self.location.clone());
        let text = aws_sdk_dynamodb::error::DisplayErrorContext(&error).to_string();
        let has_response = matches!(error, SdkError::ServiceError(_));
        let limiter = match error.code() {
            Some("ResourceNotFoundException") => Limiter::NotFound(NotFound::Table { table, place }),
            Some("AccessDeniedException" | "UnrecognizedClientException" | "ExpiredTokenException") => {
                Limiter::PermissionDenied {
                    operation: OPERATION,
                    table,
                    message: error.message().unwrap_or("no reason reported").to_owned(),
                }
            }
            Some(code) if has_response && !is_retryable(code) => {
                return Error::TableCall {
                    operation: OPERATION,
                    table,
                    problem: format!("{code}: {}", error.message().unwrap_or("no reason reported")),
                    source: error.into(),
                };
            }
            _ => Limiter::Unavailable(Unavailable::NoResponse {
                operation: OPERATION,
                table,
                reason: text,
                within: CALL_TIMEOUT,
            }),
        };
        limiter.into()
    }
}

/// Whether DynamoDB asked for a retry. The client has already used up its retries.
fn is_retryable(code: &str) -> bool {
    let signs = [
        "Throttl",
        "ThroughputExceeded",
        "RequestLimitExceeded",
        "InternalServerError",
    ];
    signs.iter().any(|sign| code.contains(sign))
}

fn trail_item(item: SdkItem) -> TrailItem {
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    let key = [text(attribute::PK), text(attribute::SK)]
        .map(Option::unwrap_or_default)
        .join(" ");
    TrailItem {
        key,
        event: from_sdk_item(item).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aws_sdk_dynamodb::primitives::Blob;
    use serde_dynamo::AttributeValue;

    use super::*;

    #[test]
    fn every_attribute_type_keeps_its_value() {
        let text = |text: &str| text.to_owned();
        let inner = SdkItem::from([(text("deep"), SdkValue::N(text("12345678901234567890.10")))]);
        let item = SdkItem::from([
            (text("PK"), SdkValue::S(text("AUDIT#user-1"))),
            (text("SK"), SdkValue::S(text("#AUDIT#1"))),
            (text("m"), SdkValue::M(inner)),
            (
                text("l"),
                SdkValue::L(vec![SdkValue::Bool(true), SdkValue::Null(true)]),
            ),
            (text("b"), SdkValue::B(Blob::new([0, 255]))),
            (text("bs"), SdkValue::Bs(vec![Blob::new([1])])),
            (text("ss"), SdkValue::Ss(vec![text("a")])),
            (text("ns"), SdkValue::Ns(vec![text("1")])),
        ]);
        let found = trail_item(item);
        assert_eq!(found.key, "AUDIT#user-1 #AUDIT#1");
        let event = found.event.unwrap();
        let deep = AttributeValue::M(HashMap::from([(
            text("deep"),
            AttributeValue::N(text("12345678901234567890.10")),
        )]));
        for (name, value) in [
            ("m", deep),
            (
                "l",
                AttributeValue::L(vec![AttributeValue::Bool(true), AttributeValue::Null(true)]),
            ),
            ("b", AttributeValue::B(vec![0, 255])),
            ("bs", AttributeValue::Bs(vec![vec![1]])),
            ("ss", AttributeValue::Ss(vec![text("a")])),
            ("ns", AttributeValue::Ns(vec![text("1")])),
        ] {
            assert_eq!(event.get(name), Some(&value), "{name}");
        }
    }

    async fn put(client: &Client, pk: &str, sk: &str, filler: usize) {
        let text = |text: &str| SdkValue::S(text.to_owned());
        let sent = client
            .put_item()
            .table_name("demo")
            .item("PK", text(pk))
            .item("SK", text(sk))
            .item("filler", text(&"x".repeat(filler)));
        sent.send().await.unwrap();
    }

    #[tokio::test]
    async fn every_event_of_a_table_of_many_pages_is_found_whomever_it_is_about() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("table.db");
        let limiter = zae_limiter::RateLimiter::embedded_at(&file).name("demo");
        drop(limiter.await.unwrap());
        let aws = SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::v2026_01_12())
            .region(aws_config::Region::from_static("us-east-1"))
            .endpoint_url("http://embedded.invalid")
            .credentials_provider(aws_credential_types::provider::SharedCredentialsProvider::new(
                aws_credential_types::Credentials::from_keys("test", "test", None),
            ))
            .http_client(zae_limiter::EmbeddedStore::file(&file).await.unwrap())
            .build();
        let mut events = Events::of_table(&aws, &StackName::parse("demo").unwrap());
        let mut expected = vec![];
        for number in 0..30 {
            put(&events.client, &format!("ENTITY#user-{number}"), "#META", 100_000).await;
            let subject = ["user-1", "gone", "$RESOURCE:gpt-4", "$SYSTEM"][number % 4];
            let (pk, sk) = (format!("AUDIT#{subject}"), format!("#AUDIT#{number:02}"));
            put(&events.client, &pk, &sk, 10).await;
            expected.push(format!("{pk} {sk}"));
        }
        let (mut pages, mut read, mut keys) = (0, 0, vec![]);
        while let Some(page) = events.page().await.unwrap() {
            (pages, read) = (pages + 1, read + page.read);
            keys.extend(page.events.into_iter().map(|found| found.key));
        }
        keys.sort();
        expected.sort();
        assert_eq!(keys, expected);
        assert!(pages >= 3 && read >= 60, "{pages} pages, {read} items");
    }
}
