//! ARNs of resources outside the template.
//!
//! A [`Handle`](super::Handle) refers to a resource inside it.

use super::{Pseudo, Text};

/// The ARN of a resource without region and account, in the stack's partition.
pub fn global(service: &str, resource: impl Into<Text>) -> Text {
    Text::from("arn:")
        .then(Pseudo::Partition)
        .then(format!(":{service}:::"))
        .then(resource)
}

/// The ARN of a resource of the stack's account that has no region.
pub fn of_account(service: &str, resource: impl Into<Text>) -> Text {
    let start = Text::from("arn:")
        .then(Pseudo::Partition)
        .then(format!(":{service}::"));
    start.then(Pseudo::AccountId).then(":").then(resource)
}

/// The ARN of a resource in the stack's account and region.
pub fn of_region(service: &str, resource: impl Into<Text>) -> Text {
    let start = Text::from("arn:")
        .then(Pseudo::Partition)
        .then(format!(":{service}:"));
    start
        .then(Pseudo::Region)
        .then(":")
        .then(Pseudo::AccountId)
        .then(":")
        .then(resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn partition_region_and_account_are_those_of_the_stack() {
        assert_eq!(
            global("s3", "b/*").to_value(),
            json!({ "Fn::Sub": "arn:${AWS::Partition}:s3:::b/*" })
        );
        assert_eq!(
            of_account("iam", "root").to_value(),
            json!({ "Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root" })
        );
        assert_eq!(
            of_region("sqs", "q").to_value(),
            json!({ "Fn::Sub": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:q" })
        );
    }
}
