//! Roles for people and applications.

use super::context::Context;
use super::ids::RoleKind;
use super::policies;
use crate::Error;
use crate::model::iam::{ManagedPolicy, PolicyDocument, Principal, Role, Statement};
use crate::model::{Handle, Model};

/// Adds the roles, if the stack has any; each has the managed policy of its kind.
pub(super) fn add(
    model: &mut Model,
    cx: &Context<'_>,
    managed: &[Handle<ManagedPolicy>],
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
    for ((kind, description), policy) in kinds.into_iter().zip(managed) {
        let mut trusted = vec![Statement::trust("Account", Principal::Account)];
        let others = cx.options.trusted_accounts();
        if kind == RoleKind::App && !others.is_empty() {
            let others = others.iter().map(ToString::to_string).collect();
            trusted.push(Statement::trust("OtherAccounts", Principal::Accounts(others)));
        }
        let role = Role {
            role_name: cx.options.role_name(&cx.name, kind),
            path: policies::path(cx.options),
            description,
            assume_role_policy_document: PolicyDocument::new(trusted),
            permissions_boundary: cx.boundary(),
            policies: vec![],
            managed_policy_arns: vec![policy.arn()],
        };
        added.push((kind, model.add(kind.id(), &role)?));
    }
    Ok(added)
}
