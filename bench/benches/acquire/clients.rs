//! The contestants in this process: the limiter, and the bare SDK call on the same item.

use std::net::SocketAddr;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

use zae_limiter::{Acquire, Limit, RateLimiter, RateLimiterBuilder};

/// The table, which is also the name of the limiter.
pub(crate) const TABLE: &str = "bench";
pub(crate) const RESOURCE: &str = "gpt-4";

pub(crate) fn credentials() -> Credentials {
    Credentials::new("test", "test", None, None, "bench")
}

/// A limiter on an endpoint, with two limits that nothing here exhausts.
pub(crate) fn limiter(endpoint: SocketAddr) -> RateLimiterBuilder {
    RateLimiter::builder(TABLE)
        .region("us-east-1")
        .endpoint_url(format!("http://{endpoint}"))
        .credentials(credentials())
        .default_limits(large())
}

pub(crate) fn large() -> [Limit; 2] {
    ["rpm", "tpm"].map(|name| Limit::per_minute(name, 1_000_000_000).unwrap())
}

/// A call that takes one request and this many tokens.
pub(crate) fn call(limiter: &RateLimiter, entity: &str, tokens: u64) -> Acquire {
    limiter
        .acquire(entity, RESOURCE)
        .consume("rpm", 1)
        .consume("tpm", tokens)
}

/// One admitted call.
pub(crate) async fn admitted(limiter: &RateLimiter, entity: &str) {
    let lease = call(limiter, entity, 100).await.unwrap();
    lease.commit().await.unwrap();
}

/// An SDK client as everybody makes one: what it does beside the call is what the SDK does by default.
pub(crate) fn sdk(endpoint: SocketAddr) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(format!("http://{endpoint}"))
        .credentials_provider(credentials());
    Client::from_conf(config.build())
}

/// The same debit as one statement without any bookkeeping: two conditions, four additions, the whole item in return.
pub(crate) async fn bare(client: &Client, entity: &str) {
    let number = |number: i64| AttributeValue::N(number.to_string());
    client
        .update_item()
        .table_name(TABLE)
        .key("PK", AttributeValue::S(format!("ENTITY#{entity}")))
        .key("SK", AttributeValue::S(format!("#BUCKET#{RESOURCE}")))
        .update_expression("ADD #a :r, #b :t, #c :one, #d :hundred")
        .condition_expression("#a >= :one AND #b >= :hundred")
        .expression_attribute_names("#a", "b_rpm_tk")
        .expression_attribute_names("#b", "b_tpm_tk")
        .expression_attribute_names("#c", "b_rpm_tc")
        .expression_attribute_names("#d", "b_tpm_tc")
        .expression_attribute_values(":r", number(-1_000))
        .expression_attribute_values(":t", number(-100_000))
        .expression_attribute_values(":one", number(1_000))
        .expression_attribute_values(":hundred", number(100_000))
        .return_values(ReturnValue::AllNew)
        .send()
        .await
        .unwrap();
}
