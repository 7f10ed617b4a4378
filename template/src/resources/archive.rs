//! The archive bucket of audit events.

use super::context::Context;
use super::ids;
use crate::Error;
use crate::model::iam::{Condition, PolicyDocument, Statement, actions};
use crate::model::s3::{
    AbortUpload, Bucket, BucketPolicy, Encryption, EncryptionDefault, EncryptionRule, Lifecycle,
    LifecycleRule, NoncurrentExpiration, ObjectLock, ObjectLockRule, Ownership, OwnershipRule,
    PublicAccessBlock, Retention, Transition, Versioning,
};
use crate::model::{Handle, Model, Text, arn as arns};
use crate::options::{ObjectLockMode, StackOptions};

/// The archive: a bucket of the stack, or an existing one.
pub(super) struct Archive {
    pub(super) name: Text,
    pub(super) arn: Text,
}

/// Adds the bucket, unless one is given.
pub(super) fn add(model: &mut Model, cx: &Context<'_>) -> Result<Archive, Error> {
    if let Some(given) = cx.options.archive_bucket() {
        return Ok(Archive {
            name: given.as_str().into(),
            arn: arn(cx.options),
        });
    }
    let bucket = model.add(ids::ARCHIVE_BUCKET, &bucket(cx.options))?;
    let resources = vec![bucket.arn(), bucket.arn().then("/*")];
    let tls = Statement::deny_anyone("TlsOnly", actions("s3", &["*"]), resources);
    let policy_document = PolicyDocument::new(vec![
        tls.when(Condition::default().is("aws:SecureTransport", false)),
    ]);
    model.add(
        ids::ARCHIVE_BUCKET_POLICY,
        &BucketPolicy {
            bucket: bucket.name(),
            policy_document,
        },
    )?;
    Ok(Archive {
        name: bucket.name(),
        arn: bucket.arn(),
    })
}

/// The bucket's ARN.
pub(super) fn arn(options: &StackOptions) -> Text {
    match options.archive_bucket() {
        Some(given) => arns::global("s3", given.as_str()),
        None => Handle::<Bucket>::new(ids::ARCHIVE_BUCKET).arn(),
    }
}

fn bucket(options: &StackOptions) -> Bucket {
    let lock = options.audit_archive_object_lock_days().map(|days| ObjectLock {
        object_lock_enabled: "Enabled",
        rule: ObjectLockRule {
            default_retention: Retention {
                mode: match options.audit_archive_object_lock_mode() {
                    ObjectLockMode::Governance => "GOVERNANCE",
                    ObjectLockMode::Compliance => "COMPLIANCE",
                },
                days,
            },
        },
    });
    Bucket {
        bucket_encryption: encryption(options),
        versioning_configuration: Versioning { status: "Enabled" },
        public_access_block_configuration: PublicAccessBlock {
            block_public_acls: true,
            block_public_policy: true,
            ignore_public_acls: true,
            restrict_public_buckets: true,
        },
        ownership_controls: Ownership {
            rules: vec![OwnershipRule {
                object_ownership: "BucketOwnerEnforced",
            }],
        },
        lifecycle_configuration: lifecycle(options.audit_archive_glacier_days()),
        object_lock_enabled: lock.map(|_| true),
        object_lock_configuration: lock,
    }
}

fn encryption(options: &StackOptions) -> Encryption {
    let rule = match options.kms_key_arn() {
        Some(key) => EncryptionRule {
            server_side_encryption_by_default: EncryptionDefault {
                algorithm: "aws:kms",
                key: Some(key.as_str().into()),
            },
            bucket_key_enabled: Some(true),
        },
        None => EncryptionRule {
            server_side_encryption_by_default: EncryptionDefault {
                algorithm: "AES256",
                key: None,
            },
            bucket_key_enabled: None,
        },
    };
    Encryption {
        server_side_encryption_configuration: vec![rule],
    }
}

fn lifecycle(glacier_days: u32) -> Lifecycle {
    let archive = LifecycleRule {
        id: "archive",
        status: "Enabled",
        prefix: Some("audit/"),
        transitions: vec![Transition {
            storage_class: "GLACIER_IR",
            transition_in_days: glacier_days,
        }],
        ..LifecycleRule::default()
    };
    let tidy = LifecycleRule {
        id: "tidy",
        status: "Enabled",
        noncurrent_version_expiration: Some(NoncurrentExpiration { noncurrent_days: 30 }),
        abort_incomplete_multipart_upload: Some(AbortUpload {
            days_after_initiation: 7,
        }),
        ..LifecycleRule::default()
    };
    Lifecycle {
        rules: vec![archive, tidy],
    }
}
