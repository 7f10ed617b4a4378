//! Roles for people and applications.

use super::context::Context;
use super::ids::RoleKind;
use crate::Error;
use crate::model::iam::{ManagedPolicy, PolicyDocument, Principal, Role, Statement};
use crate::model::{Handle, Model};

/// Adds the roles, if the stack has any; each has the managed policy of its kind.
pub(super) fn add(
    model: &mut Model,
    cx: &Context<'_>,
    policies: &[Handle<ManagedPolicy>],
) -> Result<Vec<(RoleKind, Handle<Role>)>, Error> {
    if !cx.options.create_iam_roles() {
        return Ok(vec![]);
    }
    let kinds = [
        (RoleKind::App, "For applications that acquire rate limits"),
        (RoleKind::Admin, "For administrators of the rate limiter"),
        (RoleKind::Read, "For readers of limits and usage"),
    ];
    // Policies and roles are in the same order: acquire, full, read.
    let mut added = Vec::new();
    for ((kind, description), policy) in kinds.into_iter().zip(policies) {
        let role = Role {
            role_name: cx.options.role_name(&cx.name, kind),
            description,
            assume_role_policy_document: PolicyDocument::new(vec![Statement::trust(
                "Account",
                Principal::Account,
            )]),
            permissions_boundary: cx.boundary(),
            policies: vec![],
            managed_policy_arns: vec![policy.arn()],
        };
        added.push((kind, model.add(kind.id(), &role)?));
    }
    Ok(added)
}
