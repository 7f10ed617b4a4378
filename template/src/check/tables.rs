//! Rules for tables.

use zae_limiter_schema::keys::attribute;

use super::properties::of_type;
use super::{Findings, Rule};
use crate::Template;
use crate::model::ids;

pub(super) fn check(template: &Template, findings: &mut Findings) {
    for kind in ["AWS::DynamoDB::Table", "AWS::S3::Bucket"] {
        for (id, resource) in of_type(template, kind) {
            let deletion = &resource["DeletionPolicy"];
            let kept = *deletion == "Retain" || *deletion == "RetainExceptOnCreate";
            let problem = "must have DeletionPolicy RetainExceptOnCreate and UpdateReplacePolicy Retain";
            findings.require(
                kept && resource["UpdateReplacePolicy"] == "Retain",
                Rule::DataKept,
                id,
                problem,
            );
        }
    }
    for (id, table) in of_type(template, "AWS::DynamoDB::Table") {
        let properties = &table["Properties"];
        let backups = properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] == true;
        findings.require(
            backups,
            Rule::TableBackups,
            id,
            "must have PointInTimeRecoveryEnabled",
        );
        if id == ids::TABLE.as_str() {
            let expiry = &properties["TimeToLiveSpecification"];
            let by_ttl = expiry["AttributeName"] == attribute::TTL && expiry["Enabled"] == true;
            findings.require(
                by_ttl,
                Rule::TableExpiry,
                id,
                "must have TimeToLiveSpecification on ttl",
            );
            let images = properties["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES";
            findings.require(
                images,
                Rule::TableStream,
                id,
                "must have a stream with NEW_AND_OLD_IMAGES",
            );
        }
    }
}
