//! Roles and permission boundaries in the options.

use zae_limiter_template::{LambdaFunction, PermissionBoundary, RoleArn};

use super::trust::lambda_may_assume;
use super::{Checked, Finding, Found, Preflight, found};
use crate::cloud::failure::Failure;

impl Preflight<'_> {
    /// The permission boundary must exist.
    pub(super) async fn boundary(&self) -> Found {
        let Some(boundary) = self
            .options
            .permission_boundary()
            .filter(|_| self.options.create_iam())
        else {
            return Ok(vec![]);
        };
        let arn = match boundary {
            PermissionBoundary::Arn(arn) => arn.clone(),
            PermissionBoundary::Name(name) => self.policy_arn(name),
        };
        let advice = "create the policy, or change permission_boundary";
        let missing = Finding::new(format!("permission boundary {arn}"), "does not exist", advice);
        Ok(if self.policy_exists(&arn).await? {
            vec![]
        } else {
            vec![missing]
        })
    }

    /// External roles must exist in this account and trust Lambda.
    pub(super) async fn external_roles(&self) -> Checked {
        let mut checked = Checked::default();
        for function in self.options.functions() {
            let role = match function {
                LambdaFunction::Aggregator => self.options.aggregator_role_arn(),
                LambdaFunction::Archiver => self.options.archiver_role_arn(),
            };
            if let Some(role) = role {
                checked.add(self.external_role(function, role).await);
            }
        }
        checked
    }

    async fn external_role(
        &self,
        function: LambdaFunction,
        role: &RoleArn,
    ) -> Result<Option<Finding>, Failure> {
        let what = format!("role {role}");
        let option = format!("change {function}_role_arn");
        if role.as_str().split(':').nth(4) != Some(&self.place.account) {
            let problem = format!(
                "is not in account {}, where a function's role must be",
                self.place.account
            );
            return Ok(Some(Finding::new(what, problem, option)));
        }
        let name = role.as_str().rsplit('/').next().unwrap_or_default();
        let response = self.cloud.clients.iam.get_role().role_name(name).send().await;
        let response = found(response.map_err(|error| Failure::of("iam:GetRole", role.as_str(), &error)))?;
        let Some(role) = response.and_then(|response| response.role) else {
            return Ok(Some(Finding::new(
                what,
                "does not exist",
                format!("create it, or {option}"),
            )));
        };
        let trusted = role.assume_role_policy_document().is_some_and(lambda_may_assume);
        let advice = "allow sts:AssumeRole to lambda.amazonaws.com in its trust policy";
        Ok((!trusted).then(|| Finding::new(what, "cannot be assumed by Lambda", advice)))
    }

    pub(super) fn policy_arn(&self, name: &str) -> String {
        format!(
            "arn:{}:iam::{}:policy/{name}",
            self.place.partition, self.place.account
        )
    }

    pub(super) async fn policy_exists(&self, arn: &str) -> Result<bool, Failure> {
        let response = self.cloud.clients.iam.get_policy().policy_arn(arn).send().await;
        Ok(found(response.map_err(|error| Failure::of("iam:GetPolicy", arn, &error)))?.is_some())
    }
}
