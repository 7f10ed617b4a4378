//! IAM policies and the roles that have them.

use super::Cloud;
use super::failure::Failure;

impl Cloud {
    /// The ARNs of the managed policies that are attached to a role.
    pub(crate) async fn policies_of(&self, role: &str) -> Result<Vec<String>, Failure> {
        let (mut all, mut marker) = (Vec::new(), None);
        loop {
            let call = self.clients.iam.list_attached_role_policies();
            let page = call.role_name(role).set_marker(marker).send().await;
            let page = page.map_err(|error| Failure::of("iam:ListAttachedRolePolicies", role, &error))?;
            let arns = page.attached_policies().iter();
            all.extend(arns.filter_map(|policy| policy.policy_arn().map(str::to_owned)));
            marker = page.marker;
            if marker.is_none() {
                return Ok(all);
            }
        }
    }

    /// The roles, users and groups that a managed policy is attached to: their kind and name.
    pub(crate) async fn attached_to(&self, policy: &str) -> Result<Vec<(&'static str, String)>, Failure> {
        let (mut all, mut marker) = (Vec::new(), None);
        loop {
            let call = self.clients.iam.list_entities_for_policy();
            let page = call.policy_arn(policy).set_marker(marker).send().await;
            let page = page.map_err(|error| Failure::of("iam:ListEntitiesForPolicy", policy, &error))?;
            let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
            all.extend(
                page.policy_roles()
                    .iter()
                    .map(|role| ("role", name(role.role_name()))),
            );
            all.extend(
                page.policy_users()
                    .iter()
                    .map(|user| ("user", name(user.user_name()))),
            );
            all.extend(
                page.policy_groups()
                    .iter()
                    .map(|group| ("group", name(group.group_name()))),
            );
            marker = page.marker;
            if marker.is_none() {
                return Ok(all);
            }
        }
    }
}
