//! Advice for known failures.

use crate::cloud::failure::refused;

/// SQS blocks the name of a deleted queue for this long.
pub(crate) const QUEUE_NAME_BLOCKED: std::time::Duration = std::time::Duration::from_secs(60);

pub(super) fn queue_was_deleted_just_now(reason: &str) -> bool {
    reason.contains("QueueDeletedRecently") || reason.contains("wait 60 seconds after deleting a queue")
}

/// Advice for a failure, if it is known.
pub(super) fn on(resource_type: &str, reason: &str) -> Option<String> {
    if let Some((action, resource)) = refused(reason) {
        return Some(format!(
            "allow {action} on {resource} for the deployer or CloudFormation's service role"
        ));
    }
    let exists = reason.contains("already exists") || reason.contains("AlreadyExists");
    let advice = match resource_type {
        "AWS::IAM::Role" | "AWS::IAM::ManagedPolicy" if exists => {
            "IAM names are global, and a stack of this name in another region or an older deployment uses it: set \
             regional_iam_names, or role_name_format and policy_name_format, or delete the old one"
        }
        "AWS::DynamoDB::Table" if exists => "deploy again: a table that fits is imported",
        "AWS::Logs::LogGroup" if exists => {
            "an older deployment left the log group behind: delete it and deploy again"
        }
        _ if exists => "a resource of this name exists: delete it, or choose another name for the stack",
        "AWS::SQS::Queue" if queue_was_deleted_just_now(reason) => {
            "SQS blocks the name of a deleted queue for 60 seconds: wait and deploy again"
        }
        "AWS::Lambda::Function" if reason.contains("NoSuchKey") || reason.contains("NoSuchBucket") => {
            "the function's archive is not where the template says: deploy with the archives"
        }
        "AWS::Lambda::Function" if reason.contains("UnreservedConcurrentExecution") => {
            "the account's unreserved concurrency is too low: lower lambda_reserved_concurrency or unset it"
        }
        "AWS::Lambda::EventSourceMapping" if reason.contains("Cannot access stream") => {
            "the function's role must be allowed to read the stream: attach the policy that the template would create \
             to the external role"
        }
        "AWS::DynamoDB::Table"
            if reason.contains("deletion protection") || reason.contains("protected against deletion") =>
        {
            "deletion protection is on: set enable_deletion_protection to false and deploy that first"
        }
        "AWS::DynamoDB::Table"
            if reason.contains("LimitExceeded") || reason.contains("Subscriber limit exceeded") =>
        {
            "DynamoDB limits concurrent changes of tables and indexes: wait and deploy again"
        }
        _ if reason.contains("is in use by") && reason.contains("xport") => {
            "other stacks import this output: change them first"
        }
        _ if reason.contains("Rate exceeded") || reason.contains("Throttling") => {
            "AWS throttled the request: wait and deploy again"
        }
        _ if reason.contains("permissions boundary") || reason.contains("permission boundary") => {
            "the account requires a permissions boundary on roles: set permission_boundary"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_failures_come_with_advice() {
        let cases = [
            (
                "AWS::IAM::ManagedPolicy",
                "Resource of type 'AWS::IAM::ManagedPolicy' with identifier 'x' already exists.",
                "regional_iam_names",
            ),
            (
                "AWS::Logs::LogGroup",
                "Resource handler returned message: \"... already exists\" (HandlerErrorCode: AlreadyExists)",
                "delete it",
            ),
            (
                "AWS::SQS::Queue",
                "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
                "60 seconds",
            ),
            (
                "AWS::Lambda::Function",
                "Error occurred while GetObject. S3 Error Code: NoSuchKey.",
                "archives",
            ),
            (
                "AWS::Lambda::EventSourceMapping",
                "Cannot access stream arn:aws:dynamodb:…",
                "external role",
            ),
            (
                "AWS::CloudFormation::Stack",
                "Export demo-TableArn cannot be deleted as it is in use by app",
                "change them first",
            ),
            (
                "AWS::IAM::Role",
                "User: arn:x is not authorized to perform: iam:CreateRole on resource: arn:aws:iam::1:role/demo-aggr",
                "allow iam:CreateRole",
            ),
            (
                "AWS::DynamoDB::Table",
                "Rate exceeded (Service: DynamoDb)",
                "wait",
            ),
        ];
        for (resource_type, reason, expected) in cases {
            let advice = on(resource_type, reason).unwrap_or_default();
            assert!(advice.contains(expected), "{reason}: {advice:?}");
        }
        assert_eq!(on("AWS::SQS::Queue", "Internal failure"), None);
    }
}
