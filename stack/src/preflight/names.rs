//! Names that must be free.

use super::{Checked, Finding, Preflight, found};
use crate::cloud::failure::Failure;

const FREE: &str = "IAM names are global: another stack or region may use it; set regional_iam_names, role_name_format or \
                    policy_name_format, or delete it";

impl Preflight<'_> {
    /// Names of roles and policies to create.
    pub(super) async fn iam_names(&self) -> Checked {
        let mut checked = Checked::default();
        for (id, name) in self.made("AWS::IAM::Role", "RoleName") {
            let taken = self.role_exists(&name).await;
            checked.add(taken.map(|taken| taken.then(|| exists(format!("role {name}"), &id, FREE))));
        }
        for (id, name) in self.made("AWS::IAM::ManagedPolicy", "ManagedPolicyName") {
            let taken = self.policy_exists(&self.policy_arn(&name)).await;
            checked.add(taken.map(|taken| taken.then(|| exists(format!("policy {name}"), &id, FREE))));
        }
        checked
    }

    async fn role_exists(&self, name: &str) -> Result<bool, Failure> {
        let response = self.cloud.clients.iam.get_role().role_name(name).send().await;
        Ok(found(response.map_err(|error| Failure::of("iam:GetRole", name, &error)))?.is_some())
    }

    /// Names of log groups to create. A function that ran without its own log group may have left one.
    pub(super) async fn log_groups(&self) -> Checked {
        let mut checked = Checked::default();
        let advice = "delete it if its logs are no longer needed";
        for (id, name) in self.made("AWS::Logs::LogGroup", "LogGroupName") {
            let taken = self.log_group_exists(&name).await;
            checked.add(taken.map(|taken| taken.then(|| exists(format!("log group {name}"), &id, advice))));
        }
        checked
    }

    async fn log_group_exists(&self, name: &str) -> Result<bool, Failure> {
        let call = self
            .cloud
            .clients
            .logs
            .describe_log_groups()
            .log_group_name_prefix(name);
        let response = call
            .send()
            .await
            .map_err(|error| Failure::of("logs:DescribeLogGroups", name, &error))?;
        // The group with exactly the prefix as its name comes first.
        let mut groups = response.log_groups().iter();
        Ok(groups.any(|group| group.log_group_name() == Some(name)))
    }
}

fn exists(what: String, id: &str, advice: &str) -> Finding {
    Finding::new(what, format!("exists, and {id} needs its name"), advice)
}
