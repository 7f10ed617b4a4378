//! Rules for queues.

use serde_json::Value;

use super::properties::{denies_plain_http, of_type};
use super::{Findings, Rule};
use crate::Template;

/// 14 days in seconds.
const RETENTION: u64 = 1_209_600;

pub(super) fn check(template: &Template, findings: &mut Findings) {
    for (id, queue) in of_type(template, "AWS::SQS::Queue") {
        let properties = &queue["Properties"];
        let encrypted = properties["SqsManagedSseEnabled"] == true || !properties["KmsMasterKeyId"].is_null();
        findings.require(
            encrypted,
            Rule::QueueEncrypted,
            id,
            "must have SqsManagedSseEnabled or KmsMasterKeyId",
        );
        let tls = denies_plain_http(template, "AWS::SQS::QueuePolicy", "Queues", id);
        findings.require(
            tls,
            Rule::QueueTls,
            id,
            "must have a queue policy that denies requests without TLS",
        );
        let kept = properties.get("MessageRetentionPeriod").and_then(Value::as_u64) == Some(RETENTION);
        findings.require(
            kept,
            Rule::QueueRetention,
            id,
            "must keep messages for 14 days (1209600 seconds)",
        );
    }
}
