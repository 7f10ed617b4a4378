//! What [`Stack::ensure`](crate::Stack::ensure) may do.

use serde_json::{Map, Value};
use zae_limiter_template::{Template, VERSION};

use crate::deployed::Deployed;
use crate::plan::{Plan, PropertyChange, ResourceChange};

/// What [`Stack::ensure`](crate::Stack::ensure) may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mode {
    /// Creates the stack and makes every change. The default of a [`Stack`](crate::Stack).
    #[default]
    Apply,
    /// Creates the stack, and changes it if this process may deploy and no other deployment of the same release declares
    /// other options. A process without the permission to deploy observes. The default of an application's
    /// `ensure_infrastructure()`.
    Auto,
    /// Changes nothing. Differences are warnings in the outcome.
    Observe,
    /// Changes nothing. Differences are an [error](crate::Error::Differs).
    RequireExact,
}

/// Each difference between the deployed stack and a plan for it.
pub(crate) fn differences(plan: &Plan, deployed: &Deployed) -> Vec<String> {
    let version = deployed.template.as_ref().and_then(Template::version);
    let release = version.filter(|version| *version != VERSION);
    let mut all: Vec<_> = release
        .map(|release| format!("it was deployed by release {release}, and this is release {VERSION}"))
        .into_iter()
        .collect();
    all.extend(plan.changes.iter().map(change));
    all.extend(
        plan.outputs
            .iter()
            .map(|output| format!("output {} differs", output.name)),
    );
    if all.is_empty() {
        all.push("its tags or metadata differ".to_owned());
    }
    all
}

fn change(change: &ResourceChange) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), ToString::to_string);
    let shown = |property: &PropertyChange| {
        let (before, after) = (text(property.before.as_ref()), text(property.after.as_ref()));
        format!("{} is {before}, should be {after}", property.path)
    };
    let id = &change.logical_id;
    match change.kind {
        crate::Kind::Add => format!("{id} is missing"),
        crate::Kind::Remove => format!("{id} should not exist"),
        _ => {
            let properties: Vec<_> = change.properties.iter().map(shown).collect();
            format!("{id}: {}", properties.join(", "))
        }
    }
}

/// The options in which two deployments of the same release differ, each with both values.
pub(crate) fn other_options(deployed: Option<&Template>, declared: &Template) -> Vec<String> {
    let same_release = |deployed: &&Template| deployed.version() == declared.version();
    let stored = |template: &Template| -> Option<Map<String, Value>> {
        let text = template
            .to_value()
            .pointer("/Metadata/zae-limiter/options")?
            .as_str()?;
        serde_json::from_str(text).ok()
    };
    let Some((before, after)) = deployed
        .filter(same_release)
        .and_then(stored)
        .zip(stored(declared))
    else {
        return vec![];
    };
    let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let text = |value: Option<&Value>| value.map_or_else(|| "unset".to_owned(), ToString::to_string);
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| {
            format!(
                "{name} is {}, here {}",
                text(before.get(name)),
                text(after.get(name))
            )
        })
        .collect()
}
