//! Buckets.

use serde::Serialize;

use super::iam::PolicyDocument;
use super::{Construct, Handle, Keep, Text};

/// A private bucket with a generated name.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Bucket {
    /// How objects are encrypted.
    pub bucket_encryption: Encryption,
    /// Whether object versions are kept.
    pub versioning_configuration: Versioning,
    /// Blocks public access.
    pub public_access_block_configuration: PublicAccessBlock,
    /// Who owns the objects.
    pub ownership_controls: Ownership,
    /// The lifecycle of objects.
    pub lifecycle_configuration: Lifecycle,
    /// Whether objects can be locked; can only be set at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_lock_enabled: Option<bool>,
    /// How long new objects are locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_lock_configuration: Option<ObjectLock>,
}

impl Construct for Bucket {
    const TYPE: &'static str = "AWS::S3::Bucket";
    const KEEP: Keep = Keep::Retain;
}

impl Handle<Bucket> {
    /// The bucket's name.
    pub fn name(&self) -> Text {
        self.reference()
    }

    /// The bucket's ARN.
    pub fn arn(&self) -> Text {
        self.attribute("Arn")
    }
}

/// How objects are encrypted.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Encryption {
    /// One rule.
    pub server_side_encryption_configuration: Vec<EncryptionRule>,
}

/// A rule of encryption.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct EncryptionRule {
    /// The default of requests that do not name an encryption.
    pub server_side_encryption_by_default: EncryptionDefault,
    /// Whether objects share a data key, for fewer calls to KMS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_key_enabled: Option<bool>,
}

/// Algorithm and key.
#[derive(Debug, Clone, Serialize)]
pub struct EncryptionDefault {
    /// `AES256` or `aws:kms`.
    #[serde(rename = "SSEAlgorithm")]
    pub algorithm: &'static str,
    /// A customer managed key.
    #[serde(rename = "KMSMasterKeyID", skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
}

/// Whether object versions are kept.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Versioning {
    /// `Enabled`.
    pub status: &'static str,
}

/// Blocks every kind of public access.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(clippy::struct_excessive_bools, reason = "S3 has these four switches")]
pub struct PublicAccessBlock {
    /// Refuse public ACLs.
    pub block_public_acls: bool,
    /// Refuse public policies.
    pub block_public_policy: bool,
    /// Ignore public ACLs.
    pub ignore_public_acls: bool,
    /// Limit public policies to the account and AWS services.
    pub restrict_public_buckets: bool,
}

/// Who owns the objects.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Ownership {
    /// One rule.
    pub rules: Vec<OwnershipRule>,
}

/// The bucket's owner owns every object.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OwnershipRule {
    /// `BucketOwnerEnforced`.
    pub object_ownership: &'static str,
}

/// The lifecycle of objects.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Lifecycle {
    /// The rules.
    pub rules: Vec<LifecycleRule>,
}

/// One rule of a lifecycle.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct LifecycleRule {
    /// Its name.
    pub id: &'static str,
    /// `Enabled`.
    pub status: &'static str,
    /// The prefix of the objects; all objects if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<&'static str>,
    /// Transitions to cheaper storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<Transition>,
    /// Expiry of noncurrent versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noncurrent_version_expiration: Option<NoncurrentExpiration>,
    /// Expiry of incomplete uploads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_incomplete_multipart_upload: Option<AbortUpload>,
}

/// A transition to cheaper storage.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Transition {
    /// The storage class.
    pub storage_class: &'static str,
    /// Days until then.
    pub transition_in_days: u32,
}

/// Expiry of noncurrent versions.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NoncurrentExpiration {
    /// Days until then.
    pub noncurrent_days: u32,
}

/// Expiry of incomplete uploads.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AbortUpload {
    /// Days until then.
    pub days_after_initiation: u32,
}

/// How long new objects are locked.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ObjectLock {
    /// `Enabled`.
    pub object_lock_enabled: &'static str,
    /// The rule for new objects.
    pub rule: ObjectLockRule,
}

/// The rule for new objects.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ObjectLockRule {
    /// Mode and days.
    pub default_retention: Retention,
}

/// Mode and days of a lock.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Retention {
    /// `GOVERNANCE` or `COMPLIANCE`.
    pub mode: &'static str,
    /// How many days.
    pub days: u32,
}

/// The policy of a bucket.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct BucketPolicy {
    /// The bucket's name.
    pub bucket: Text,
    /// The policy document.
    pub policy_document: PolicyDocument,
}

impl Construct for BucketPolicy {
    const TYPE: &'static str = "AWS::S3::BucketPolicy";
    // A bucket that is retained keeps its policy.
    const KEEP: Keep = Keep::Retain;
}
