//! Role and policy names, which depend on the name of the stack.

use zae_limiter_schema::StackName;

use super::mistake::{InvalidOptions, Mistake};
use super::{NameFormat, StackOptions};
use crate::model::{Pseudo, Text};
use crate::resources::LambdaFunction;
use crate::resources::ids::{PolicyKind, RoleKind};

/// The longest role name.
const ROLE: usize = 64;
/// The longest managed policy name.
const POLICY: usize = 128;
/// One of the longest region names; a name must fit in every region.
const REGION: &str = "us-isof-south-1";

impl StackOptions {
    /// Checks that every name made for a stack of this name fits AWS's limits, and reports each one that does not.
    pub fn check_name(&self, name: &StackName) -> Result<(), InvalidOptions> {
        let roles = RoleKind::ALL
            .into_iter()
            .filter(|role| self.makes(*role))
            .map(|role| {
                (
                    role.component(),
                    "role_name_format",
                    self.role_name_format(),
                    ROLE,
                )
            });
        let policies = PolicyKind::ALL.map(|policy| {
            (
                policy.component(),
                "policy_name_format",
                self.policy_name_format(),
                POLICY,
            )
        });
        let mut mistakes = Vec::new();
        for (component, field, format, longest) in roles.chain(policies) {
            let region = if self.regional_iam_names() {
                format!("-{REGION}")
            } else {
                String::new()
            };
            let inner = format!("{name}{region}-{component}");
            let made = format.map_or_else(|| inner.clone(), |format| format.apply(&inner));
            if made.len() > longest && self.create_iam() {
                let rule = format!(
                    "gives stack {name:?} the name {made:?}, which must have at most {longest} characters"
                );
                let given = format.map_or_else(
                    || "unset".to_owned(),
                    |format| format!("{:?}", format.apply("{}")),
                );
                mistakes.push(Mistake::new(field, given, rule));
            }
        }
        InvalidOptions::unless_empty(mistakes)
    }

    fn makes(&self, role: RoleKind) -> bool {
        let runs = |function: LambdaFunction, given: bool| self.has(function) && !given;
        self.create_iam()
            && match role {
                RoleKind::Aggregator => {
                    runs(LambdaFunction::Aggregator, self.aggregator_role_arn().is_some())
                }
                RoleKind::Archiver => runs(LambdaFunction::Archiver, self.archiver_role_arn().is_some()),
                RoleKind::App | RoleKind::Admin | RoleKind::Read => self.create_iam_roles(),
            }
    }

    /// The name of a role of the stack.
    pub(crate) fn role_name(&self, stack: &Text, role: RoleKind) -> Text {
        self.iam_name(stack, role.component(), self.role_name_format())
    }

    /// The name of a managed policy of the stack.
    pub(crate) fn policy_name(&self, stack: &Text, policy: PolicyKind) -> Text {
        self.iam_name(stack, policy.component(), self.policy_name_format())
    }

    pub(crate) fn iam_name(&self, stack: &Text, component: &str, format: Option<&NameFormat>) -> Text {
        let NameFormat { before, after } = format.cloned().unwrap_or_default();
        let start = Text::from(before).then(stack.clone());
        let start = if self.regional_iam_names() {
            start.then("-").then(Pseudo::Region)
        } else {
            start
        };
        start.then(format!("-{component}{after}"))
    }
}
