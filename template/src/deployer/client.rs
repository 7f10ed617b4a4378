//! The policies of users of the table, with ARNs instead of references.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zae_limiter_schema::StackName;

use super::Place;
use crate::model::ids;
use crate::options::StackOptions;
use crate::render::resolve;
use crate::resources::ids::PolicyKind;
use crate::resources::policy_document;

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
    let table = format!(
        "arn:{}:dynamodb:{}:{}:table/{name}",
        place.partition, place.region, place.account
    );
    let known = BTreeMap::from([
        ("AWS::AccountId".to_owned(), place.account.clone()),
        ("AWS::Partition".to_owned(), place.partition.clone()),
        ("AWS::Region".to_owned(), place.region.clone()),
        ("AWS::URLSuffix".to_owned(), place.url_suffix().to_owned()),
        (ids::TABLE.to_string(), name.to_string()),
        (format!("{}.Arn", ids::TABLE), table),
    ]);
    resolve(name.as_str(), &known, &json!(policy_document(policy, options)))
}

impl Place {
    /// The domain of the partition's services.
    fn url_suffix(&self) -> &'static str {
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
