//! The policies of the table's users and of the functions, with ARNs instead of references.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zae_limiter_schema::StackName;

use super::Place;
use super::provisioning::generated_bucket;
use crate::model::ids;
use crate::options::StackOptions;
use crate::render::resolve;
use crate::resources::ids::PolicyKind;
use crate::resources::{LambdaFunction, function_policy_document, policy_document};

/// What one of the stack's managed policies permits, written out for an account and region: for a table without managed
/// policies, or a role of another tool.
///
/// ```
/// use zae_limiter_template::deployer::{Place, client_policy};
/// use zae_limiter_template::{PolicyKind, StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let policy = client_policy(PolicyKind::Acquire, &StackName::parse("limiter")?, &place, &StackOptions::default());
/// let table = "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter";
/// assert_eq!(policy["Statement"][0]["Resource"], serde_json::json!([table]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn client_policy(policy: PolicyKind, name: &StackName, place: &Place, options: &StackOptions) -> Value {
    let document = json!(policy_document(policy, options));
    resolve(name.as_str(), &known(name, place), &document)
}

/// What the role of a function needs, written out for an account and region: for `aggregator_role_arn` and
/// `archiver_role_arn`, and for a stack with `create_iam: false`.
///
/// ```
/// use zae_limiter_template::deployer::{Place, function_policy};
/// use zae_limiter_template::{LambdaFunction, StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let policy = function_policy(LambdaFunction::Aggregator, &StackName::parse("limiter")?, &place, &StackOptions::default());
/// let stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter/stream/*";
/// assert_eq!(policy["Statement"][1]["Resource"], serde_json::json!([stream]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn function_policy(
    function: LambdaFunction,
    name: &StackName,
    place: &Place,
    options: &StackOptions,
) -> Value {
    let ids = function.ids();
    let queue = format!("{name}-{function}-dlq");
    let log_group = format!("log-group:/aws/lambda/{}:*", function.name_in(name));
    let arn = |service, resource: &str| {
        place
            .arn(service, resource)
            .as_plain()
            .unwrap_or_default()
            .to_owned()
    };
    let archive = generated_bucket(name, &ids::ARCHIVE_BUCKET);
    let mut known = known(name, place);
    known.extend([
        (
            format!("{}.StreamArn", ids::TABLE),
            arn("dynamodb", &format!("table/{name}/stream/*")),
        ),
        (format!("{}.Arn", ids.queue), arn("sqs", &queue)),
        (format!("{}.Arn", ids.log_group), arn("logs", &log_group)),
        (
            format!("{}.Arn", ids::ARCHIVE_BUCKET),
            format!("arn:{}:s3:::{archive}", place.partition),
        ),
    ]);
    let document = json!(function_policy_document(function, options));
    resolve(name.as_str(), &known, &document)
}

/// The values of references in the policies of a stack.
fn known(name: &StackName, place: &Place) -> BTreeMap<String, String> {
    let table = format!(
        "arn:{}:dynamodb:{}:{}:table/{name}",
        place.partition, place.region, place.account
    );
    BTreeMap::from([
        ("AWS::AccountId".to_owned(), place.account.clone()),
        ("AWS::Partition".to_owned(), place.partition.clone()),
        ("AWS::Region".to_owned(), place.region.clone()),
        ("AWS::URLSuffix".to_owned(), place.url_suffix().to_owned()),
        (ids::TABLE.to_string(), name.to_string()),
        (format!("{}.Arn", ids::TABLE), table),
    ])
}

impl Place {
    /// The domain of the partition's services, such as `amazonaws.com`.
    pub fn url_suffix(&self) -> &'static str {
        match self.partition.as_str() {
            "aws-cn" => "amazonaws.com.cn",
            "aws-iso" => "c2s.ic.gov",
            "aws-iso-b" => "sc2s.sgov.gov",
            "aws-iso-e" => "cloud.adc-e.uk",
            "aws-iso-f" => "csp.hci.ic.gov",
            "aws-eusc" => "amazonaws.eu",
            _ => "amazonaws.com",
        }
    }
}
