//! Finding stacks in an account and region.

use aws_config::SdkConfig;
use serde::Serialize;

use crate::cloud::Cloud;
use crate::deployed::Described;
use crate::owner::{Owner, PEER_PREFIX, tagged};
use crate::patience::{Deadline, READING, patiently};
use crate::status::Health;
use crate::{Clients, Error, Stack};

/// A stack found by its tags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discovered {
    /// The stack's name.
    pub stack_name: String,
    /// The name in its `zae-limiter:name` tag.
    pub user_name: String,
    /// Its account.
    pub account: String,
    /// Its region.
    pub region: String,
    /// Whether this project or zae-limiter for Python created it.
    pub owner: Owner,
    /// CloudFormation's status.
    pub status: String,
    /// Its health.
    pub health: Health,
    /// When it was created, as RFC 3339.
    pub created: String,
    /// When it was last updated.
    pub updated: Option<String>,
    /// The release that deployed it.
    pub version: Option<String>,
    /// The release of its functions.
    pub lambda_version: Option<String>,
    /// The version of its table's format.
    pub schema_version: Option<String>,
}

impl Stack {
    /// Finds every stack of this project and of zae-limiter for Python in the account and region of this configuration.
    pub async fn discover(aws: &SdkConfig) -> Result<Vec<Discovered>, Error> {
        Self::discover_with(Clients::new(aws)).await
    }

    /// [`discover`](Stack::discover) with these clients.
    pub async fn discover_with(clients: Clients) -> Result<Vec<Discovered>, Error> {
        let cloud = Cloud {
            clients,
            service_role: None,
        };
        let deadline = Deadline::after(READING);
        let stacks = patiently(&deadline, || cloud.describe_all()).await?;
        let ours = stacks
            .iter()
            .filter(|stack| tagged(&stack.tags) || stack.name.starts_with(PEER_PREFIX));
        let mut found: Vec<_> = ours
            .filter(|stack| stack.status != "DELETE_COMPLETE")
            .map(Discovered::of)
            .collect();
        found.sort_by(|a, b| (&a.user_name, &a.stack_name).cmp(&(&b.user_name, &b.stack_name)));
        Ok(found)
    }
}

impl Discovered {
    fn of(stack: &Described) -> Self {
        let tag = |key: &str| stack.tags.get(&format!("zae-limiter:{key}")).cloned();
        let owner = match Owner::by_marks(&stack.parameters, &stack.tags) {
            Owner::Foreign => Owner::Peer,
            known => known,
        };
        let (account, region) = stack
            .place()
            .map_or_else(Default::default, |place| (place.account, place.region));
        let plain = stack
            .name
            .strip_prefix(PEER_PREFIX)
            .unwrap_or(&stack.name)
            .to_owned();
        Self {
            stack_name: stack.name.clone(),
            user_name: tag("name").unwrap_or(plain),
            account,
            region,
            owner,
            status: stack.status.clone(),
            health: Health::of(stack),
            created: stack.created.clone(),
            updated: stack.updated.clone(),
            version: tag("version"),
            lambda_version: tag("lambda-version"),
            schema_version: tag("schema-version"),
        }
    }
}
