//! ARNs of things that are not in the template.
//!
//! Resources of the template are referred to by their [`Handle`](super::Handle)s.

use super::{Pseudo, Text};

/// Something of a service in the stack's partition, named without region and account.
pub fn global(service: &str, resource: impl Into<Text>) -> Text {
    Text::from("arn:")
        .then(Pseudo::Partition)
        .then(format!(":{service}:::"))
        .then(resource)
}

/// Something of a service in the stack's account that belongs to no region.
pub fn of_account(service: &str, resource: impl Into<Text>) -> Text {
    let start = Text::from("arn:")
        .then(Pseudo::Partition)
        .then(format!(":{service}::"));
    start.then(Pseudo::AccountId).then(":").then(resource)
}

/// Something of a service in the stack's account and region.
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
