//! What a deployed stack keeps in spite of the options.

use std::collections::BTreeMap;

use serde_json::Value;
use zae_limiter_template::{LambdaFunction, Template};

use crate::deployed::Deployed;

/// The tag with the release of the functions' code.
const LAMBDA_VERSION: &str = "zae-limiter:lambda-version";
/// The prefix of this project's tags.
const OWN_TAGS: &str = "zae-limiter:";

/// The template with what cannot change, or does not change, in the deployed stack, and a note about each option without
/// effect.
///
/// - `StartingPosition`: CloudFormation would create a second mapping before it deletes the first, and Lambda refuses that.
/// - The release tag of each function in `same_code`: these functions keep their deployed code.
pub(crate) fn template(
    template: &Template,
    deployed: &Deployed,
    same_code: &[LambdaFunction],
) -> (Template, Vec<String>) {
    let mut value = template.to_value().clone();
    let mut notes = Vec::new();
    let old: BTreeMap<&str, &Value> = deployed.template.iter().flat_map(Template::resources).collect();
    let resources = value.get_mut("Resources").and_then(Value::as_object_mut);
    for (id, new) in resources.into_iter().flatten() {
        let Some(old) = old.get(id.as_str()) else { continue };
        notes.extend(keep_starting_position(id, old, new));
        if same_code
            .iter()
            .any(|function| function.ids().function.as_str() == id)
        {
            keep_code_version(old, new);
        }
    }
    (Template::from_value(value), notes)
}

fn keep_starting_position(id: &str, old: &Value, new: &mut Value) -> Option<String> {
    const POSITION: &str = "/Properties/StartingPosition";
    let mapping = |resource: &Value| {
        resource.get("Type").and_then(Value::as_str) == Some("AWS::Lambda::EventSourceMapping")
    };
    if !mapping(old) || !mapping(new) {
        return None;
    }
    let deployed = old.pointer(POSITION)?.clone();
    let wanted = new.pointer_mut(POSITION)?;
    if *wanted == deployed {
        return None;
    }
    let note = format!(
        "{id} keeps StartingPosition {deployed}: stream_start ({wanted}) has an effect only when the mapping is created"
    );
    *wanted = deployed;
    Some(note)
}

fn keep_code_version(old: &Value, new: &mut Value) {
    let tag = |resource: &Value| -> Option<(usize, Value)> {
        let tags = resource.pointer("/Properties/Tags")?.as_array()?;
        let at = tags.iter().position(|tag| tag["Key"] == LAMBDA_VERSION)?;
        Some((at, tags[at].clone()))
    };
    if let (Some((_, deployed)), Some((at, _))) = (tag(old), tag(new))
        && let Some(wanted) = new.pointer_mut(&format!("/Properties/Tags/{at}"))
    {
        *wanted = deployed;
    }
}

/// The stack's tags: our own, and every tag of others that is deployed.
pub(crate) fn tags(
    mut own: BTreeMap<String, String>,
    deployed: &Deployed,
    same_code: &[LambdaFunction],
) -> BTreeMap<String, String> {
    if let Some(version) = deployed.stack.tags.get(LAMBDA_VERSION)
        && !same_code.is_empty()
    {
        own.insert(LAMBDA_VERSION.to_owned(), version.clone());
    }
    let mut tags = settable(&deployed.stack.tags);
    tags.retain(|key, _| !key.starts_with(OWN_TAGS));
    tags.extend(own);
    tags
}

/// The tags without those of AWS, which only AWS can set.
pub(crate) fn settable(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tags = tags.clone();
    tags.retain(|key, _| !key.to_ascii_lowercase().starts_with("aws:"));
    tags
}
