//! The order of `terraform/README.md` in which a stack becomes a Terraform module while applications keep working, on a local cloud
//! that evaluates policies. `scripts/rehearse-terraform` imports what is left.

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use zae_limiter_stack::{Clients, Error, Stack, StackOptions};
use zae_limiter_template::PolicyKind;
use zae_limiter_template::deployer::{Place, client_policy};
use zae_limiter_testing::MiniStack;

use crate::support;

const NAME: &str = "moving";
const USER: &str = "application";

/// A table, the policies of applications, and nothing else.
fn options() -> StackOptions {
    StackOptions::builder()
        .enable_aggregator(false)
        .enable_audit_archival(false)
        .enable_alarms(false)
        .build()
        .unwrap()
}

/// Clients of an IAM user.
async fn user(clients: &Clients, aws: &SdkConfig) -> DynamoDb {
    clients.iam.create_user().user_name(USER).send().await.unwrap();
    let key = clients
        .iam
        .create_access_key()
        .user_name(USER)
        .send()
        .await
        .unwrap();
    let key = key.access_key.unwrap();
    let config = aws_sdk_dynamodb::config::Builder::from(aws).credentials_provider(Credentials::from_keys(
        key.access_key_id,
        key.secret_access_key,
        None,
    ));
    DynamoDb::from_conf(config.build())
}

/// Whether a write of a bucket succeeds. Anything but a denial fails the test.
async fn acquires(dynamodb: &DynamoDb) -> bool {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = dynamodb
        .update_item()
        .table_name(NAME)
        .key("PK", text("ENTITY#user-1"))
        .key("SK", text("#BUCKET#gpt-4"))
        .update_expression("ADD ev :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
    match update.send().await {
        Ok(_) => true,
        Err(error) => {
            let shown = format!("{error:?}");
            assert!(shown.contains("AccessDenied"), "{shown}");
            false
        }
    }
}

#[tokio::test]
async fn applications_keep_acquiring_while_a_stack_is_deleted_in_the_order_of_the_readme() {
    let cloud = MiniStack::start_with(&[("AUTH", "true")]);
    let aws = cloud.aws();
    let clients = Clients::new(&aws);
    let stack = Stack::with_clients(support::name(NAME), options(), clients.clone());
    let outputs = stack.ensure().await.unwrap().outputs;
    let application = user(&clients, &aws).await;
    assert!(!acquires(&application).await, "the cloud evaluates policies");
    let of_the_stack = &outputs["AcquireOnlyPolicyArn"];
    let attach = clients.iam.attach_user_policy().user_name(USER);
    attach.policy_arn(of_the_stack).send().await.unwrap();
    assert!(acquires(&application).await);

    // Out of order: the policy is attached, so the deletion is refused before anything is deleted.
    let refused = stack.delete().await.unwrap_err();
    assert!(matches!(refused, Error::NotDeletable { .. }), "{refused}");
    assert!(refused.to_string().contains(USER), "{refused}");
    assert!(acquires(&application).await);

    // 1. A policy of the application's own, then the stack's is detached.
    let place = Place {
        partition: "aws".to_owned(),
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
    };
    let own: Value = client_policy(PolicyKind::Acquire, &support::name(NAME), &place, &options());
    let put = clients
        .iam
        .put_user_policy()
        .user_name(USER)
        .policy_name("acquire");
    put.policy_document(own.to_string()).send().await.unwrap();
    let detach = clients.iam.detach_user_policy().user_name(USER);
    detach.policy_arn(of_the_stack).send().await.unwrap();
    assert!(acquires(&application).await);

    // 2. The stack is deleted, and the table stays.
    let deleted = stack.delete().await.unwrap();
    assert!(
        deleted.kept.iter().any(|kept| kept.physical_id == NAME),
        "{deleted:?}"
    );
    assert!(
        acquires(&application).await,
        "on the table that Terraform imports"
    );

    // 5. The module's policy takes over, and the one of step 1 is removed.
    let policy = clients.iam.create_policy().policy_name("moving-acq");
    let created = policy.policy_document(own.to_string()).send().await.unwrap();
    let arn = created.policy.unwrap().arn.unwrap();
    let attach = clients.iam.attach_user_policy().user_name(USER);
    attach.policy_arn(arn).send().await.unwrap();
    let remove = clients.iam.delete_user_policy().user_name(USER);
    remove.policy_name("acquire").send().await.unwrap();
    assert!(acquires(&application).await);
}
