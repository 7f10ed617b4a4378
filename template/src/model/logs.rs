//! Log groups.

use serde::Serialize;

use super::{Construct, Handle, Keep, Text};

/// A log group with a retention period.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct LogGroup {
    /// Name of the group.
    pub log_group_name: Text,
    /// Days until log events expire.
    pub retention_in_days: u32,
    /// A customer managed key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<Text>,
}

impl Construct for LogGroup {
    const TYPE: &'static str = "AWS::Logs::LogGroup";
    const KEEP: Keep = Keep::Delete;
}

impl Handle<LogGroup> {
    /// The group's name.
    pub fn name(&self) -> Text {
        self.reference()
    }

    /// The ARN of the group and its streams.
    pub fn arn(&self) -> Text {
        self.attribute("Arn")
    }
}
