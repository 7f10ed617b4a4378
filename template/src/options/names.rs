//! Names of roles and policies, which depend on the name of the stack.

use zae_limiter_schema::StackName;

use super::mistake::{InvalidOptions, Mistake};
use super::{NameFormat, StackOptions};
use crate::model::{Pseudo, Text};
use crate::resources::ids::{PolicyKind, RoleKind};

/// Longest name of a role.
const ROLE: usize = 64;
/// Longest name of a managed policy.
const POLICY: usize = 128;
/// Longest name of a region so far is 14 characters; names must fit in any.
const REGION: &str = "xx-xxxxxxxxx-0";

impl StackOptions {
    /// Whether every name made for a stack of this name fits AWS's limits; every one that does not otherwise.
    pub fn check_name(&self, name: &StackName) -> Result<(), InvalidOptions> {
        let roles =
            RoleKind::ALL.map(|role| (role.component(), "role_name_format", &self.role_name_format, ROLE));
        let policies = PolicyKind::ALL.map(|policy| {
            (
                policy.component(),
                "policy_name_format",
                &self.policy_name_format,
                POLICY,
            )
        });
        let mut mistakes = Vec::new();
        for (component, field, format, longest) in roles.into_iter().chain(policies) {
            let region = if self.regional_iam_names {
                format!("-{REGION}")
            } else {
                String::new()
            };
            let inner = format!("{name}{region}-{component}");
            let made = format
                .as_ref()
                .map_or_else(|| inner.clone(), |format| format.apply(&inner));
            if made.len() > longest && self.create_iam {
                let rule = format!(
                    "gives stack {name:?} the name {made:?}, which must have at most {longest} characters"
                );
                let given = format.as_ref().map_or_else(
                    || "unset".to_owned(),
                    |format| format!("{:?}", format.apply("{}")),
                );
                mistakes.push(Mistake::new(field, given, rule));
            }
        }
        InvalidOptions::unless_empty(mistakes)
    }

    /// The name of a role of the stack.
    pub(crate) fn role_name(&self, stack: &Text, role: RoleKind) -> Text {
        self.iam_name(stack, role.component(), self.role_name_format.as_ref())
    }

    /// The name of a managed policy of the stack.
    pub(crate) fn policy_name(&self, stack: &Text, policy: PolicyKind) -> Text {
        self.iam_name(stack, policy.component(), self.policy_name_format.as_ref())
    }

    fn iam_name(&self, stack: &Text, component: &str, format: Option<&NameFormat>) -> Text {
        let NameFormat { before, after } = format.cloned().unwrap_or_default();
        let start = Text::from(before).then(stack.clone());
        let start = if self.regional_iam_names {
            start.then("-").then(Pseudo::Region)
        } else {
            start
        };
        start.then(format!("-{component}{after}"))
    }
}
