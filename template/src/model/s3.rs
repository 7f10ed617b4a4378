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
    /// Whether older versions are kept.
    pub versioning_configuration: Versioning,
    /// Closed to the public.
    pub public_access_block_configuration: PublicAccessBlock,
    /// Whose the objects are.
    pub ownership_controls: Ownership,
    /// What happens to objects with time.
    pub lifecycle_configuration: Lifecycle,
    /// Whether objects can be locked; only at creation.
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
    /// What counts where a request says nothing.
    pub server_side_encryption_by_default: EncryptionDefault,
    /// One data key for many objects: fewer calls to the key service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_key_enabled: Option<bool>,
}

/// Algorithm and key.
#[derive(Debug, Clone, Serialize)]
pub struct EncryptionDefault {
    /// `AES256` or `aws:kms`.
    #[serde(rename = "SSEAlgorithm")]
    pub algorithm: &'static str,
    /// A customer's key.
    #[serde(rename = "KMSMasterKeyID", skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
}

/// Whether older versions are kept.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Versioning {
    /// `Enabled`.
    pub status: &'static str,
}

/// Closed to the public, in every way there is.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(clippy::struct_excessive_bools, reason = "S3 has these four switches")]
pub struct PublicAccessBlock {
    /// Refuse public ACLs.
    pub block_public_acls: bool,
    /// Refuse public policies.
    pub block_public_policy: bool,
    /// Take no notice of public ACLs.
    pub ignore_public_acls: bool,
    /// Only the account and AWS services, where a policy is public.
    pub restrict_public_buckets: bool,
}

/// Whose the objects are.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Ownership {
    /// One rule.
    pub rules: Vec<OwnershipRule>,
}

/// The bucket's owner owns everything in it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OwnershipRule {
    /// `BucketOwnerEnforced`.
    pub object_ownership: &'static str,
}

/// What happens to objects with time.
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
    /// Which objects; all where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<&'static str>,
    /// Moves to cheaper storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<Transition>,
    /// End of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noncurrent_version_expiration: Option<NoncurrentExpiration>,
    /// End of uploads that were never finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_incomplete_multipart_upload: Option<AbortUpload>,
}

/// A move to cheaper storage.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Transition {
    /// Where to.
    pub storage_class: &'static str,
    /// After how many days.
    pub transition_in_days: u32,
}

/// End of older versions.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NoncurrentExpiration {
    /// After how many days.
    pub noncurrent_days: u32,
}

/// End of unfinished uploads.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AbortUpload {
    /// After how many days.
    pub days_after_initiation: u32,
}

/// How long new objects are locked.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ObjectLock {
    /// `Enabled`.
    pub object_lock_enabled: &'static str,
    /// What counts for new objects.
    pub rule: ObjectLockRule,
}

/// What counts for new objects.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ObjectLockRule {
    /// Mode and time.
    pub default_retention: Retention,
}

/// Mode and time of a lock.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Retention {
    /// `GOVERNANCE` or `COMPLIANCE`.
    pub mode: &'static str,
    /// For how many days.
    pub days: u32,
}

/// Who may do what with a bucket, from the bucket's side.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct BucketPolicy {
    /// The bucket's name.
    pub bucket: Text,
    /// What is allowed and denied.
    pub policy_document: PolicyDocument,
}

impl Construct for BucketPolicy {
    const TYPE: &'static str = "AWS::S3::BucketPolicy";
}
