//! What counting dead letters needs.

use zae_limiter_schema::StackName;
use zae_limiter_schema::keys::prefix;

use super::{Place, ensure_policy, table};
use crate::model::iam::{Condition, PolicyDocument, Statement, actions};
use crate::options::StackOptions;
use crate::resources::{LambdaFunction, send_events};

/// What `zae-limiter usage redrive` needs: it finds the aggregator of the stack or of the Terraform module, reads its settings, takes its
/// dead letters and counts them.
///
/// ```
/// use zae_limiter_template::deployer::{Place, redrive_policy};
/// use zae_limiter_template::{StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let policy = redrive_policy(&StackName::parse("limiter")?, &place, &StackOptions::default());
/// assert!(serde_json::to_string(&policy)?.contains("arn:aws:sqs:eu-west-1:123456789012:limiter-aggregator-dlq"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn redrive_policy(name: &StackName, place: &Place, options: &StackOptions) -> PolicyDocument {
    let mut document = ensure_policy(name, place);
    let entities = format!("{}*", prefix::ENTITY);
    document.statements.extend([
        // A table without a stack: its tags name Terraform, and the readers of its stream are the functions.
        Statement::allow(
            "TableOfTerraform",
            actions("dynamodb", &["DescribeTable", "ListTagsOfResource"]),
            vec![table(name, place)],
        ),
        Statement::allow(
            "Readers",
            actions("lambda", &["ListEventSourceMappings"]),
            vec!["*".into()],
        ),
        Statement::allow(
            "Settings",
            actions("lambda", &["GetFunctionConfiguration"]),
            vec![place.arn(
                "lambda",
                &format!("function:{}", LambdaFunction::Aggregator.name_in(name)),
            )],
        ),
        Statement::allow(
            "DeadLetters",
            actions(
                "sqs",
                &["ChangeMessageVisibility", "DeleteMessage", "ReceiveMessage"],
            ),
            vec![place.arn("sqs", &format!("{name}-aggregator-dlq"))],
        ),
        Statement::allow(
            "Usage",
            actions("dynamodb", &["UpdateItem"]),
            vec![table(name, place)],
        )
        .when(Condition::default().all_like("dynamodb:LeadingKeys", &[&entities])),
    ]);
    if let Some(bus) = options.event_bus() {
        let bus = place.arn("events", &format!("event-bus/{bus}"));
        document.statements.push(send_events(vec![bus]));
    }
    if let Some(key) = options.kms_key_arn() {
        // The queue, the table and the settings of the function are encrypted with it.
        let use_key = actions("kms", &["Decrypt", "GenerateDataKey"]);
        let key = Statement::allow("Key", use_key, vec![key.as_str().into()]);
        document.statements.push(key);
    }
    document
}
