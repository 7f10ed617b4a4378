//! The reconciler on a cloud that really does what it is told.

mod coming_to_terraform;
mod create;
mod delete;
mod exported;
mod long_templates;
mod others;
mod plans;
mod releases;
mod together;
mod update;

use crate::support::{self, ministack};
use aws_sdk_dynamodb::types::AttributeValue;
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
