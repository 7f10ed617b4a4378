//! The reconciler on a cloud that really does what it is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "local_cloud/create.rs"]
mod create;
#[path = "local_cloud/delete.rs"]
mod delete;
#[path = "local_cloud/exported.rs"]
mod exported;
#[path = "local_cloud/others.rs"]
mod others;
#[path = "local_cloud/plans.rs"]
mod plans;
#[path = "local_cloud/releases.rs"]
mod releases;
#[path = "local_cloud/together.rs"]
mod together;
#[path = "local_cloud/update.rs"]
mod update;

use aws_sdk_dynamodb::types::AttributeValue;
use support::ministack;
use zae_limiter_stack::{Stack, StackOptions};

/// A stack with its functions' code at hand.
fn stack(name: &str, options: &StackOptions) -> Stack {
    Stack::with_clients(support::name(name), options.clone(), ministack::clients()).code(support::code())
}

/// The deployed template.
async fn template(name: &str) -> serde_json::Value {
    let found = ministack::clients()
        .cloudformation
        .get_template()
        .stack_name(name)
        .send()
        .await
        .unwrap();
    serde_json::from_str(found.template_body().unwrap()).unwrap()
}

/// Something to lose.
async fn put_item(table: &str) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let call = ministack::clients()
        .dynamodb
        .put_item()
        .table_name(table)
        .item("PK", text("ENTITY#a"));
    call.item("SK", text("#META")).send().await.unwrap();
}

async fn has_item(table: &str) -> bool {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let call = ministack::clients()
        .dynamodb
        .get_item()
        .table_name(table)
        .key("PK", text("ENTITY#a"));
    call.key("SK", text("#META")).send().await.unwrap().item.is_some()
}
