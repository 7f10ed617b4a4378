//! The tags of the stack.

use std::collections::BTreeMap;

use zae_limiter_schema::{StackName, VersionRecord};

use crate::VERSION;
use crate::model::Tag;
use crate::options::StackOptions;

const MANAGED_BY: &str = "ManagedBy";
const OWN_PREFIX: &str = "zae-limiter:";
const LAMBDA_VERSION: &str = "zae-limiter:lambda-version";
/// A tag of the table only.
const APPLICATION: &str = "Application";

/// AWS allows 50 tags on a resource; the stack sets six and the table one.
pub(crate) const MAX_USER_TAGS: usize = 50 - 6 - 1;

/// Whether the stack sets a tag of this key itself.
pub(crate) fn is_ours(key: &str) -> bool {
    key == MANAGED_BY || key == APPLICATION || key.starts_with(OWN_PREFIX)
}

/// The tags of the stack, which CloudFormation propagates to its resources: the user's, and those that `zae-limiter list` uses
/// to find stacks.
///
/// ```
/// use zae_limiter_template::{StackName, StackOptions, stack_tags};
///
/// let tags = stack_tags(&StackName::parse("limiter")?, &StackOptions::default());
/// assert!(tags.iter().any(|tag| tag.key == "ManagedBy" && tag.value == "zae-limiter"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn stack_tags(name: &StackName, options: &StackOptions) -> Vec<Tag> {
    let own = [
        Tag::new(MANAGED_BY, "zae-limiter"),
        Tag::new("zae-limiter:name", name.as_str()),
        Tag::new("zae-limiter:version", VERSION),
        Tag::new("zae-limiter:schema-version", VersionRecord::SCHEMA_VERSION),
        lambda_version(),
        Tag::new("zae-limiter:type", "limiter"),
    ];
    let users = options.tags().iter().map(|(key, value)| Tag::new(key, value));
    own.into_iter().chain(users).collect()
}

/// The user's tags among the tags of a stack: all but ours and those of AWS.
pub fn tags_of_user(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let users = |key: &str| !is_ours(key) && !key.to_ascii_lowercase().starts_with("aws:");
    let pairs = tags.iter().filter(|(key, _)| users(key));
    pairs.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The tag with the release of a function's code.
pub(super) fn lambda_version() -> Tag {
    Tag::new(LAMBDA_VERSION, VERSION)
}
