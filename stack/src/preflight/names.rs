//! Names that must be free.

use super::{Checked, Finding, Preflight, found};
use crate::cloud::failure::Failure;

const FREE: &str = "names in IAM are global: another stack or region may have it; set regional_iam_names, role_name_format or \
                    policy_name_format, or delete it";

impl Preflight<'_> {
    /// Roles and policies that will be made.
    pub(super) async fn iam_names(&self) -> Checked {
        let mut findings = Vec::new();
        for (id, name) in self.added("AWS::IAM::Role", "RoleName") {
            let answer = self.cloud.clients.iam.get_role().role_name(&name).send().await;
            if found(answer.map_err(|error| Failure::of("iam:GetRole", &name, &error)))?.is_some() {
                findings.push(Finding::new(
                    format!("role {name}"),
                    format!("exists, and {id} would have its name"),
                    FREE,
                ));
            }
        }
        for (id, name) in self.added("AWS::IAM::ManagedPolicy", "ManagedPolicyName") {
            if self.policy_exists(&self.policy_arn(&name)).await? {
                findings.push(Finding::new(
                    format!("policy {name}"),
                    format!("exists, and {id} would have its name"),
                    FREE,
                ));
            }
        }
        Ok(findings)
    }

    /// Log groups that will be made. A function that ran without one of its own may have left one.
    pub(super) async fn log_groups(&self) -> Checked {
        let mut findings = Vec::new();
        for (id, name) in self.added("AWS::Logs::LogGroup", "LogGroupName") {
            let call = self
                .cloud
                .clients
                .logs
                .describe_log_groups()
                .log_group_name_prefix(&name);
            let answer = call
                .send()
                .await
                .map_err(|error| Failure::of("logs:DescribeLogGroups", &name, &error))?;
            // The group with exactly the prefix as its name comes first.
            if answer
                .log_groups()
                .iter()
                .any(|group| group.log_group_name() == Some(&name))
            {
                let advice = "delete it if its logs are not needed any more";
                findings.push(Finding::new(
                    format!("log group {name}"),
                    format!("exists, and {id} would have its name"),
                    advice,
                ));
            }
        }
        Ok(findings)
    }
}
