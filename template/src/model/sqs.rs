//! Queues.

use serde::Serialize;

use super::iam::PolicyDocument;
use super::{Construct, Handle, Keep, Text};

/// A queue.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Queue {
    /// Name of the queue.
    pub queue_name: Text,
    /// Seconds until a message expires.
    pub message_retention_period: u32,
    /// Seconds that a received message is hidden from other readers.
    pub visibility_timeout: u32,
    /// How messages are encrypted.
    #[serde(flatten)]
    pub encryption: QueueEncryption,
}

/// How a queue's messages are encrypted.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum QueueEncryption {
    /// With a key that SQS manages.
    Managed {
        /// Always true.
        #[serde(rename = "SqsManagedSseEnabled")]
        enabled: bool,
    },
    /// With a customer managed key.
    Key {
        /// The key.
        #[serde(rename = "KmsMasterKeyId")]
        key: Text,
    },
}

impl Construct for Queue {
    const TYPE: &'static str = "AWS::SQS::Queue";
    const KEEP: Keep = Keep::Delete;
}

impl Handle<Queue> {
    /// The URL that messages are sent to.
    pub fn url(&self) -> Text {
        self.reference()
    }

    /// The queue's ARN.
    pub fn arn(&self) -> Text {
        self.attribute("Arn")
    }

    /// The queue's name.
    pub fn name(&self) -> Text {
        self.attribute("QueueName")
    }
}

/// The policy of queues.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct QueuePolicy {
    /// The queues' URLs.
    pub queues: Vec<Text>,
    /// The policy document.
    pub policy_document: PolicyDocument,
}

impl Construct for QueuePolicy {
    const TYPE: &'static str = "AWS::SQS::QueuePolicy";
}
