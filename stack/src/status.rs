//! A stack at a glance.

use std::collections::BTreeMap;

use serde::Serialize;
use zae_limiter_template::Template;

use crate::deployed::Described;
use crate::owner::Owner;
use crate::situation::Situation;
use crate::{Error, Stack};

/// How a stack is doing.
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

/// What is known of a stack without comparing it with anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The stack's name.
    pub name: String,
    /// The stack's ARN.
    pub stack_id: String,
    /// Who made it.
    pub owner: Owner,
    /// CloudFormation's status, such as `UPDATE_COMPLETE`.
    pub status: String,
    /// Why it has that status, where CloudFormation says.
    pub reason: Option<String>,
    /// How it is doing.
    pub health: Health,
    /// The release that deployed it, if it is ours.
    pub version: Option<String>,
    /// When it was made, as RFC 3339.
    pub created: String,
    /// When it was last changed.
    pub updated: Option<String>,
    /// What it tells about itself.
    pub outputs: BTreeMap<String, String>,
    /// What stays when it is deleted, by logical id.
    pub retained: Vec<String>,
}

impl Stack {
    /// The stack as it is, whoever made it; nothing if there is none.
    pub async fn status(&self) -> Result<Option<Status>, Error> {
        let Some(deployed) = self.observe().await? else {
            return Ok(None);
        };
        let template = deployed.template.as_ref();
        let stack = &deployed.stack;
        Ok(Some(Status {
            name: stack.name.clone(),
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
