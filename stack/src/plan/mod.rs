//! A plan: what would be done, as a value that can be looked at, stored, and applied as it is.

mod change;
pub(crate) mod compare;
pub(crate) mod exact;
mod show;

pub use change::{Kind, OutputChange, PropertyChange, ResourceChange};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zae_limiter_template::Template;

use crate::Error;
use crate::cause::Cause;
use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::fingerprint::Fingerprint;
use crate::guard::Refusal;
use crate::outcome::Outcome;
use crate::preflight::Finding;

/// The form of serialised plans. A plan of another form is refused.
const FORMAT: u32 = 1;

/// What applying a plan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing: the stack is as it should be.
    Nothing,
    /// Makes the stack.
    Create,
    /// Makes the stack around a table that is there already.
    Import,
    /// Deletes what a failed creation left and makes the stack.
    Recreate,
    /// Changes the stack.
    Update,
}

/// How a plan came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// By comparing templates.
    Templates,
    /// By a change set, which knows what CloudFormation will do.
    ChangeSet,
}

/// The stack that a plan was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    pub(crate) stack_id: String,
    pub(crate) changed_at: String,
    /// Of the deployed template.
    pub(crate) fingerprint: String,
}

impl Base {
    pub(crate) fn of(deployed: &Deployed) -> Self {
        let template = deployed
            .template
            .as_ref()
            .map_or(Value::Null, Template::what_deploys);
        Self {
            stack_id: deployed.stack.id.clone(),
            changed_at: deployed.stack.changed_at().to_owned(),
            fingerprint: Fingerprint::of(&template, &deployed.stack.tags)
                .as_str()
                .to_owned(),
        }
    }
}

/// What a deployment would do.
///
/// [`Stack::plan`](crate::Stack::plan) makes one and [`Stack::apply`](crate::Stack::apply) does what it says, if the stack has
/// not changed in between. Serialised as JSON, it can go from one process to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    format: u32,
    /// The stack's name.
    pub stack: String,
    /// What it does.
    pub action: Action,
    /// How it was found out.
    pub basis: Basis,
    /// What happens to each resource.
    pub changes: Vec<ResourceChange>,
    /// What happens to the outputs.
    pub outputs: Vec<OutputChange>,
    /// What applying it would be refused for.
    pub refusals: Vec<Refusal>,
    /// What the checks before the change have found.
    pub findings: Vec<Finding>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// The stack as it is, where there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<Outcome>,
    pub(crate) base: Option<Base>,
    pub(crate) change_set: Option<String>,
    /// SHA-256 of each archive that is uploaded, by function.
    pub(crate) archives: BTreeMap<String, String>,
    template: Value,
    tags: BTreeMap<String, String>,
    fingerprint: String,
}

impl Plan {
    pub(crate) fn new(
        stack: &str,
        action: Action,
        deployed: Option<&Deployed>,
        desired: &Desired,
        loaded: &Loaded,
    ) -> Self {
        // What a failed creation left is deleted first.
        let before = deployed
            .filter(|_| action != Action::Recreate)
            .and_then(|deployed| deployed.template.as_ref());
        let archives = loaded
            .archives
            .iter()
            .map(|(function, archive)| (function.to_string(), archive.sha256()));
        Self {
            format: FORMAT,
            stack: stack.to_owned(),
            action,
            basis: Basis::Templates,
            changes: compare::resources(before, &desired.template),
            outputs: compare::outputs(before, &desired.template, stack),
            refusals: vec![],
            findings: vec![],
            warnings: vec![],
            found: None,
            base: deployed.map(Base::of),
            change_set: None,
            archives: archives.collect(),
            template: desired.template.to_value().clone(),
            tags: desired.tags.clone(),
            fingerprint: seal(&desired.template, &desired.tags),
        }
    }

    /// Whether applying it changes anything.
    pub fn is_empty(&self) -> bool {
        self.action == Action::Nothing
    }

    /// What applying it right now would answer, if there is nothing to do: whoever has just planned need not ask AWS again.
    pub fn unchanged(&self) -> Option<&Outcome> {
        self.found.as_ref().filter(|_| self.is_empty())
    }

    /// Whether applying it would be refused.
    pub fn is_refused(&self) -> bool {
        !self.refusals.is_empty() || !self.findings.is_empty()
    }

    /// The changes of who may do what.
    pub fn iam_changes(&self) -> impl Iterator<Item = &ResourceChange> {
        self.changes.iter().filter(|change| change.is_iam())
    }

    /// As JSON, for [`Plan::from_json`].
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads a plan back.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let plan: Self = serde_json::from_str(text).map_err(|error| Error::PlanUnreadable {
            reason: error.to_string(),
        })?;
        if plan.format != FORMAT {
            let reason = format!("it has form {} and this release reads form {FORMAT}", plan.format);
            return Err(Error::PlanUnreadable { reason });
        }
        plan.desired()?;
        Ok(plan)
    }

    /// The desired state as it was planned.
    pub(crate) fn desired(&self) -> Result<Desired, Error> {
        let unreadable = |reason: String| Error::PlanUnreadable { reason };
        let template =
            Template::parse(&self.template.to_string()).map_err(|error| unreadable(error.to_string()))?;
        if seal(&template, &self.tags) == self.fingerprint {
            Desired::new(template, self.tags.clone())
        } else {
            Err(unreadable(
                "its template or tags were changed after it was made".to_owned(),
            ))
        }
    }

    /// Says that it cannot be done again because it was rolled back, unless somebody asks for another try.
    pub(crate) fn refuse_again(&mut self, cause: Option<&Cause>) {
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        self.refusals.push(Refusal {
            what: self.stack.clone(),
            reason: format!(
                "had this very change rolled back before{cause}; change the options, or ask for another try \
                 (`--retry-rolled-back`)"
            ),
            can_be_allowed: false,
        });
    }

    /// Why it cannot be applied to what is deployed now, if it cannot.
    pub(crate) fn obsolete(&self, deployed: Option<&Deployed>) -> Option<String> {
        match (&self.base, deployed.map(Base::of)) {
            (None, Some(_)) => Some("the stack did not exist then and exists now".to_owned()),
            (Some(_), None) => Some("the stack does not exist any more".to_owned()),
            (Some(then), Some(now)) if then.stack_id != now.stack_id => {
                Some("the stack was deleted and made again".to_owned())
            }
            (Some(then), Some(now)) if *then != now => {
                Some(format!("the stack changed at {}, after the plan", now.changed_at))
            }
            _ => None,
        }
    }
}

/// What a plan's template and tags are recognised by, the stored options included.
fn seal(template: &Template, tags: &BTreeMap<String, String>) -> String {
    Fingerprint::of(template.to_value(), tags).to_string()
}
