//! What the documented policies permit to those who call.

#[path = "../../../template/tests/handlers/permits.rs"]
mod rules;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use zae_limiter_template::deployer::{Place, deployer_policy, plan_policy, purge_policy};
use zae_limiter_template::model::iam::PolicyDocument;
use zae_limiter_template::{PolicyKind, RoleArn, StackOptions, policy_document};

use super::requests::Request;

/// The service role that a deployer may pass.
pub(crate) const SERVICE_ROLE: &str = "arn:aws:iam::123456789012:role/deployer";

/// Somebody with policies, in the account of the recorded responses.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    who: &'static str,
    policies: Arc<Vec<Value>>,
}

fn place() -> Place {
    Place {
        partition: "aws".into(),
        region: super::requests::REGION.into(),
        account: super::requests::ACCOUNT.into(),
    }
}

/// The policies of somebody who deploys and purges.
fn deploying(name: &str, options: &StackOptions) -> [PolicyDocument; 2] {
    let (name, role) = (super::name(name), SERVICE_ROLE.parse::<RoleArn>().unwrap());
    let own = deployer_policy(&name, &place(), options, Some(&role));
    [own, purge_policy(&name, &place())]
}

impl Caller {
    /// Somebody who deploys and purges a stack with these options.
    pub(crate) fn deployer(name: &str, options: &StackOptions) -> Self {
        let policies = deploying(name, options).map(|policy| json!(policy));
        Self {
            who: "a deployer",
            policies: Arc::new(policies.into()),
        }
    }

    /// A pipeline that plans.
    pub(crate) fn planner(name: &str) -> Self {
        let policy = plan_policy(&super::name(name), &place());
        Self {
            who: "a planner",
            policies: Arc::new(vec![json!(policy)]),
        }
    }

    /// Fails the test unless the policies permit each part of a request: its action on its resource.
    pub(crate) fn must_be_allowed(&self, request: &Request) {
        for (action, resource, keys) in request.needs() {
            assert!(
                rules::permits(&self.policies, &action, &resource, &keys),
                "the policies of {} lack {action} on {resource}",
                self.who
            );
        }
    }
}

/// The actions that are permitted to somebody who deploys and purges.
pub(crate) fn deployers_actions() -> BTreeSet<String> {
    let policies = deploying("demo", &StackOptions::default());
    let actions = policies.iter().flat_map(PolicyDocument::allowed_actions);
    actions.map(|action| action.as_str().to_owned()).collect()
}

/// The permissions of the managed policy for readers.
pub(crate) fn readable() -> BTreeSet<String> {
    let read = policy_document(PolicyKind::Read, &StackOptions::default());
    let actions = read.allowed_actions();
    actions.iter().map(|action| action.as_str().to_owned()).collect()
}
