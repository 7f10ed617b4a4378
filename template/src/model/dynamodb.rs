//! `DynamoDB` tables.

use serde::Serialize;

use super::{Construct, Handle, Keep, Tag, Text};

/// A table with on-demand capacity.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Table {
    /// Name of the table.
    pub table_name: Text,
    /// How reads and writes are billed.
    pub billing_mode: BillingMode,
    /// The key attributes.
    pub attribute_definitions: Vec<AttributeDefinition>,
    /// The table's own key.
    pub key_schema: Vec<KeyElement>,
    /// Indexes.
    pub global_secondary_indexes: Vec<Index>,
    /// The stream of changes.
    pub stream_specification: Stream,
    /// The attribute with an item's expiry.
    pub time_to_live_specification: TimeToLive,
    /// Continuous backups.
    pub point_in_time_recovery_specification: PointInTimeRecovery,
    /// Whether `DeleteTable` is refused.
    pub deletion_protection_enabled: bool,
    /// The storage class; `STANDARD` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_class: Option<&'static str>,
    /// The most request units per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_demand_throughput: Option<OnDemandThroughput>,
    /// A customer managed key; an AWS owned key if unset.
    #[serde(rename = "SSESpecification", skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    /// Reports on the most accessed keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contributor_insights_specification: Option<ContributorInsights>,
    /// Tags of the table.
    pub tags: Vec<Tag>,
}

impl Construct for Table {
    const TYPE: &'static str = "AWS::DynamoDB::Table";
    const KEEP: Keep = Keep::Retain;
}

impl Handle<Table> {
    /// The table's name.
    pub fn name(&self) -> Text {
        self.reference()
    }

    /// The table's ARN.
    pub fn arn(&self) -> Text {
        self.attribute("Arn")
    }

    /// The ARN of all its indexes.
    pub fn index_arns(&self) -> Text {
        self.arn().then("/index/*")
    }

    /// The ARN of its stream.
    pub fn stream_arn(&self) -> Text {
        self.attribute("StreamArn")
    }
}

/// How a table's capacity is billed.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BillingMode {
    /// Per request.
    PayPerRequest,
}

/// A key attribute and its type.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttributeDefinition {
    /// Name of the attribute.
    pub attribute_name: String,
    /// `S`, `N` or `B`.
    pub attribute_type: &'static str,
}

impl AttributeDefinition {
    /// An attribute that holds text.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            attribute_name: name.into(),
            attribute_type: "S",
        }
    }
}

/// One attribute of a key.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct KeyElement {
    /// Name of the attribute.
    pub attribute_name: String,
    /// Its role in the key.
    pub key_type: KeyType,
}

/// A key of a partition key and a sort key.
pub fn key(partition: impl Into<String>, sort: impl Into<String>) -> Vec<KeyElement> {
    vec![
        KeyElement {
            attribute_name: partition.into(),
            key_type: KeyType::Hash,
        },
        KeyElement {
            attribute_name: sort.into(),
            key_type: KeyType::Range,
        },
    ]
}

/// Role of an attribute in a key.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum KeyType {
    /// Partition key.
    Hash,
    /// Sort key.
    Range,
}

/// A global secondary index.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Index {
    /// Name of the index.
    pub index_name: &'static str,
    /// Its key.
    pub key_schema: Vec<KeyElement>,
    /// What it copies from the table.
    pub projection: Projection,
    /// The most request units per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_demand_throughput: Option<OnDemandThroughput>,
}

/// The most request units per second of a table or an index.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OnDemandThroughput {
    /// Of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_read_request_units: Option<u32>,
    /// Of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_write_request_units: Option<u32>,
}

/// What an index copies from the table.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Projection {
    /// Which attributes.
    pub projection_type: ProjectionType,
}

/// Which attributes an index copies.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProjectionType {
    /// All attributes.
    All,
    /// The keys of the table and of the index.
    KeysOnly,
}

/// The stream of a table's changes.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Stream {
    /// What each record carries.
    pub stream_view_type: StreamView,
}

/// What a stream record carries.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StreamView {
    /// The item before and after the change.
    NewAndOldImages,
}

/// Expiry of items.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TimeToLive {
    /// The attribute with the time, in seconds since 1970.
    pub attribute_name: String,
    /// On or off.
    pub enabled: bool,
}

/// Continuous backups.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PointInTimeRecovery {
    /// On or off.
    pub point_in_time_recovery_enabled: bool,
    /// How many days back; 35 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_period_in_days: Option<u32>,
}

/// Encryption with a customer managed key.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Encryption {
    /// On.
    #[serde(rename = "SSEEnabled")]
    pub enabled: bool,
    /// `KMS`.
    #[serde(rename = "SSEType")]
    pub kind: &'static str,
    /// The key.
    #[serde(rename = "KMSMasterKeyId")]
    pub key: Text,
}

/// Reports on the most accessed keys.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContributorInsights {
    /// On or off.
    pub enabled: bool,
}
