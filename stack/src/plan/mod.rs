//! A plan: what a deployment would do, as a value that can be shown, stored and applied.

mod change;
pub(crate) mod compare;
pub(crate) mod exact;
mod show;

pub use change::{Kind, OutputChange, PropertyChange, ResourceChange, TagChange};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zae_limiter_template::Template;
use zae_limiter_template::deployer::Place;

use crate::Error;
use crate::cause::Cause;
use crate::code::Loaded;
use crate::deployed::Deployed;
use crate::desired::Desired;
use crate::fingerprint::Fingerprint;
use crate::guard::Refusal;
use crate::kept;
use crate::outcome::Outcome;
use crate::preflight::Finding;

/// The version of the serialized format. Other versions are refused.
const FORMAT: u32 = 1;

/// What applying a plan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Does nothing: the stack matches.
    Nothing,
    /// Creates the stack.
    Create,
    /// Creates the stack and imports the existing table.
    Import,
    /// Deletes what a failed creation left and creates the stack.
    Recreate,
    /// Updates the stack.
    Update,
}

/// How a plan was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// By comparing templates.
    Templates,
    /// By a change set: this is exactly what CloudFormation will do.
    ChangeSet,
}

/// The state of the stack that a plan was made for.
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
/// [`Stack::plan`](crate::Stack::plan) creates it and [`Stack::apply`](crate::Stack::apply) carries it out if the stack has not
/// changed in between. Another process can apply it from its JSON form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    format: u32,
    /// The stack's name.
    pub stack: String,
    /// The account, if a check has needed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// What applying it does.
    pub action: Action,
    /// How it was computed.
    pub basis: Basis,
    /// The changes to resources.
    pub changes: Vec<ResourceChange>,
    /// The changes to outputs.
    pub outputs: Vec<OutputChange>,
    /// The changes to the tags of a stack that exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tag_changes: Vec<TagChange>,
    /// Why applying it would be refused.
    pub refusals: Vec<Refusal>,
    /// Problems that the checks before the change have found.
    pub findings: Vec<Finding>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The outcome, if there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<Outcome>,
    pub(crate) base: Option<Base>,
    pub(crate) change_set: Option<String>,
    /// SHA-256 of each archive to upload, by function.
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
        let place = deployed.and_then(|deployed| deployed.stack.place());
        let archives = loaded
            .archives
            .iter()
            .map(|(function, archive)| (function.to_string(), archive.sha256()));
        Self {
            format: FORMAT,
            stack: stack.to_owned(),
            account: place.as_ref().map(|place| place.account.clone()),
            region: place.map(|place| place.region),
            action,
            basis: Basis::Templates,
            changes: compare::resources(before, &desired.template),
            outputs: compare::outputs(before, &desired.template, stack),
            tag_changes: deployed
                .filter(|_| action == Action::Update)
                .map(|deployed| compare::tags(&kept::settable(&deployed.stack.tags), &desired.tags))
                .unwrap_or_default(),
            refusals: vec![],
            findings: vec![],
            warnings: desired.notes.clone(),
            found: None,
            base: deployed.map(Base::of),
            change_set: None,
            archives: archives.collect(),
            template: desired.template.to_value().clone(),
            tags: desired.tags.clone(),
            fingerprint: seal(&desired.template, &desired.tags),
        }
    }

    /// Sets the account and region.
    pub(crate) fn set_place(&mut self, place: &Place) {
        self.account = Some(place.account.clone());
        self.region = Some(place.region.clone());
    }

    /// Whether applying it changes anything.
    pub fn is_empty(&self) -> bool {
        self.action == Action::Nothing
    }

    /// The outcome of applying it, if there is nothing to do. Saves the calls of [`Stack::apply`](crate::Stack::apply).
    pub fn unchanged(&self) -> Option<&Outcome> {
        self.found.as_ref().filter(|_| self.is_empty())
    }

    /// Whether applying it would be refused.
    pub fn is_refused(&self) -> bool {
        !self.refusals.is_empty() || !self.findings.is_empty()
    }

    /// Whether a refusal is final: no permission allows the change.
    pub(crate) fn is_impossible(&self) -> bool {
        self.refusals.iter().any(|refusal| !refusal.can_be_allowed)
    }

    /// The changes of permissions.
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
            let reason = format!(
                "its format is {} and this release reads format {FORMAT}",
                plan.format
            );
            return Err(Error::PlanUnreadable { reason });
        }
        plan.desired()?;
        Ok(plan)
    }

    /// The planned state.
    pub(crate) fn desired(&self) -> Result<Desired, Error> {
        let template = Template::from_value(self.template.clone());
        if seal(&template, &self.tags) == self.fingerprint {
            Desired::new(&template, &self.tags)
        } else {
            let reason = "its template or tags were changed after it was made".to_owned();
            Err(Error::PlanUnreadable { reason })
        }
    }

    /// Refuses the plan because another tool deploys the stack.
    pub(crate) fn refuse_elsewhere(&mut self, reason: &str) {
        self.refusals.push(Refusal {
            what: self.stack.clone(),
            reason: format!(
                "seems to be deployed by another tool, because {reason}; change it with that tool, or take it over (`--adopt`)"
            ),
            can_be_allowed: false,
        });
    }

    /// Refuses the plan because another deployment of this release declares other options.
    pub(crate) fn refuse_other_options(&mut self, options: &[String]) {
        self.refusals.push(Refusal {
            what: self.stack.clone(),
            reason: format!(
                "was deployed with other options ({}); declare the same options in every service, or deploy these explicitly \
                 (`zae-limiter deploy`, or Mode::Apply)",
                options.join("; ")
            ),
            can_be_allowed: false,
        });
    }

    /// Refuses the plan because the same change was rolled back before.
    pub(crate) fn refuse_again(&mut self, cause: Option<&Cause>) {
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        self.refusals.push(Refusal {
            what: self.stack.clone(),
            reason: format!(
                "had this very change rolled back before{cause}; change the options, or retry it \
                 (`--retry-rolled-back`)"
            ),
            can_be_allowed: false,
        });
    }

    /// Why it cannot be applied to the deployed stack; `None` if it can.
    pub(crate) fn obsolete(&self, deployed: Option<&Deployed>) -> Option<String> {
        match (&self.base, deployed.map(Base::of)) {
            (None, Some(_)) => Some("the stack did not exist then and exists now".to_owned()),
            (Some(_), None) => Some("the stack does not exist any more".to_owned()),
            (Some(then), Some(now)) if then.stack_id != now.stack_id => {
                Some("the stack was deleted and created again".to_owned())
            }
            (Some(then), Some(now)) if *then != now => {
                Some(format!("the stack changed at {}, after the plan", now.changed_at))
            }
            _ => None,
        }
    }
}

/// An account and region in words.
pub(crate) fn describe_place(account: Option<&str>, region: &str) -> String {
    match account {
        Some(account) => format!("account {account}, region {region}"),
        None => format!("region {region}"),
    }
}

/// The fingerprint of a plan's template and tags, including the stored options.
fn seal(template: &Template, tags: &BTreeMap<String, String>) -> String {
    Fingerprint::of(template.to_value(), tags).to_string()
}
