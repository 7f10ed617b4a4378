//! The status of a stack.

use std::collections::BTreeMap;

use serde::Serialize;
use zae_limiter_template::Template;

use crate::deployed::Described;
use crate::owner::Owner;
use crate::situation::Situation;
use crate::{Error, Stack};

/// The health of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// The last operation succeeded.
    Healthy,
    /// An operation is running.
    InProgress,
    /// The last operation failed.
    Failed,
}

impl Health {
    pub(crate) fn of(stack: &Described) -> Self {
        match stack.situation() {
            Situation::Settled => Self::Healthy,
            Situation::Busy | Situation::CleaningUp | Situation::Review => Self::InProgress,
            _ => Self::Failed,
        }
    }
}

/// The status of a stack, without comparing it with anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The stack's name.
    pub name: String,
    /// The stack's ARN.
    pub stack_id: String,
    /// Its account.
    pub account: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Who created it.
    pub owner: Owner,
    /// CloudFormation's status, such as `UPDATE_COMPLETE`.
    pub status: String,
    /// Why it has that status, where CloudFormation says.
    pub reason: Option<String>,
    /// Its health.
    pub health: Health,
    /// The release that deployed it, if this project did.
    pub version: Option<String>,
    /// When it was created, as RFC 3339.
    pub created: String,
    /// When it was last updated.
    pub updated: Option<String>,
    /// Its outputs.
    pub outputs: BTreeMap<String, String>,
    /// Logical ids of the resources that stay when it is deleted.
    pub retained: Vec<String>,
}

impl Stack {
    /// The stack's status; an error if it does not exist.
    pub async fn existing_status(&self) -> Result<Status, Error> {
        match self.status().await? {
            Some(status) => Ok(status),
            None => Err(self.missing().await),
        }
    }

    /// The stack's status, whoever created it; `None` if it does not exist.
    pub async fn status(&self) -> Result<Option<Status>, Error> {
        let Some(deployed) = self.observe(&self.reading()).await? else {
            return Ok(None);
        };
        let template = deployed.template.as_ref();
        let stack = &deployed.stack;
        let place = stack.place();
        Ok(Some(Status {
            name: stack.name.clone(),
            account: place.as_ref().map(|place| place.account.clone()),
            region: place.map(|place| place.region),
            stack_id: stack.id.clone(),
            owner: deployed.owner(),
            status: stack.status.clone(),
            reason: stack.reason.clone(),
            health: Health::of(stack),
            version: template
                .and_then(|template| template.version())
                .map(str::to_owned),
            created: stack.created.clone(),
            updated: stack.updated.clone(),
            outputs: stack.outputs.clone(),
            retained: template
                .into_iter()
                .flat_map(Template::retained)
                .map(str::to_owned)
                .collect(),
        }))
    }
}
