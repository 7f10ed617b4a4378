//! Rules for log groups.

use super::properties::of_type;
use super::{Findings, Rule};
use crate::Template;

pub(super) fn check(template: &Template, findings: &mut Findings) {
    for (id, group) in of_type(template, "AWS::Logs::LogGroup") {
        let drops = group["Properties"].get("RetentionInDays").is_some();
        findings.require(drops, Rule::LogRetention, id, "must have RetentionInDays");
    }
}
