//! The bucket with the functions' archives. Every call states the expected owner.

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, ChecksumMode, CreateBucketConfiguration,
    PublicAccessBlockConfiguration, ServerSideEncryption, ServerSideEncryptionByDefault,
    ServerSideEncryptionConfiguration, ServerSideEncryptionRule, VersioningConfiguration,
};
use zae_limiter_template::deployer::Place;

use super::Cloud;
use super::failure::Failure;

/// The region without a location constraint.
const FIRST_REGION: &str = "us-east-1";

/// A stored object.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// Its SHA-256 in base64, if S3 has it.
    pub(crate) sha256: Option<String>,
}

impl Cloud {
    pub(crate) async fn head_bucket(&self, bucket: &str, owner: Option<&str>) -> Result<(), Failure> {
        let call = self
            .clients
            .s3
            .head_bucket()
            .bucket(bucket)
            .set_expected_bucket_owner(owner.map(str::to_owned));
        call.send()
            .await
            .map_err(|error| Failure::of("s3:ListBucket", bucket, &error))?;
        Ok(())
    }

    pub(crate) async fn create_bucket(&self, bucket: &str, region: &str) -> Result<(), Failure> {
        let call = self
            .clients
            .s3
            .create_bucket()
            .bucket(bucket)
            .set_create_bucket_configuration(location(region));
        call.send()
            .await
            .map_err(|error| Failure::of("s3:CreateBucket", bucket, &error))?;
        Ok(())
    }

    /// Blocks public access, and enables encryption, TLS only and versioning. Versioning comes last: it marks a bucket that is
    /// complete.
    pub(crate) async fn harden_bucket(&self, bucket: &str, place: &Place) -> Result<(), Failure> {
        let s3 = &self.clients.s3;
        let owner = place.account.as_str();
        let closed = PublicAccessBlockConfiguration::builder();
        let closed = closed.block_public_acls(true).ignore_public_acls(true);
        let closed = closed
            .block_public_policy(true)
            .restrict_public_buckets(true)
            .build();
        let call = s3
            .put_public_access_block()
            .bucket(bucket)
            .expected_bucket_owner(owner);
        let done = call.public_access_block_configuration(closed).send().await;
        done.map_err(|error| Failure::of("s3:PutBucketPublicAccessBlock", bucket, &error))?;

        if let Some(encryption) = encryption() {
            let call = s3
                .put_bucket_encryption()
                .bucket(bucket)
                .expected_bucket_owner(owner);
            let done = call.server_side_encryption_configuration(encryption).send().await;
            done.map_err(|error| Failure::of("s3:PutEncryptionConfiguration", bucket, &error))?;
        }

        let call = s3.put_bucket_policy().bucket(bucket).expected_bucket_owner(owner);
        let done = call.policy(tls_only(bucket, &place.partition)).send().await;
        done.map_err(|error| Failure::of("s3:PutBucketPolicy", bucket, &error))?;

        let versions = VersioningConfiguration::builder()
            .status(BucketVersioningStatus::Enabled)
            .build();
        let call = s3
            .put_bucket_versioning()
            .bucket(bucket)
            .expected_bucket_owner(owner);
        let done = call.versioning_configuration(versions).send().await;
        done.map_err(|error| Failure::of("s3:PutBucketVersioning", bucket, &error))?;
        Ok(())
    }

    pub(crate) async fn keeps_versions(&self, bucket: &str, owner: &str) -> Result<bool, Failure> {
        let call = self
            .clients
            .s3
            .get_bucket_versioning()
            .bucket(bucket)
            .expected_bucket_owner(owner);
        let found = call
            .send()
            .await
            .map_err(|error| Failure::of("s3:GetBucketVersioning", bucket, &error))?;
        Ok(found.status == Some(BucketVersioningStatus::Enabled))
    }

    pub(crate) async fn stored(
        &self,
        bucket: &str,
        key: &str,
        owner: Option<&str>,
    ) -> Result<Option<Stored>, Failure> {
        let call = self
            .clients
            .s3
            .head_object()
            .bucket(bucket)
            .key(key)
            .checksum_mode(ChecksumMode::Enabled);
        match call
            .set_expected_bucket_owner(owner.map(str::to_owned))
            .send()
            .await
        {
            Ok(found) => Ok(Some(Stored {
                sha256: found.checksum_sha256,
            })),
            Err(error) => {
                let failure = Failure::of("s3:GetObject", format!("{bucket}/{key}"), &error);
                if failure.absent() { Ok(None) } else { Err(failure) }
            }
        }
    }

    /// Stores an object, verified by S3 with its SHA-256. Without `overwrite`, only if the key is free.
    pub(crate) async fn store(
        &self,
        (bucket, key): (&str, &str),
        owner: &str,
        body: Vec<u8>,
        sha256: &str,
        overwrite: bool,
        content_type: &str,
    ) -> Result<(), Failure> {
        let call = self
            .clients
            .s3
            .put_object()
            .bucket(bucket)
            .key(key)
            .expected_bucket_owner(owner);
        let call = call
            .checksum_sha256(sha256)
            .set_if_none_match((!overwrite).then(|| "*".to_owned()));
        let done = call
            .content_type(content_type)
            .body(ByteStream::from(body))
            .send()
            .await;
        done.map_err(|error| Failure::of("s3:PutObject", format!("{bucket}/{key}"), &error))?;
        Ok(())
    }
}

/// The location constraint, for regions that need one.
fn location(region: &str) -> Option<CreateBucketConfiguration> {
    (region != FIRST_REGION).then(|| {
        let constraint = BucketLocationConstraint::from(region);
        let location = CreateBucketConfiguration::builder();
        location.location_constraint(constraint).build()
    })
}

fn encryption() -> Option<ServerSideEncryptionConfiguration> {
    let default = ServerSideEncryptionByDefault::builder()
        .sse_algorithm(ServerSideEncryption::Aes256)
        .build()
        .ok()?;
    let rule = ServerSideEncryptionRule::builder()
        .apply_server_side_encryption_by_default(default)
        .build();
    ServerSideEncryptionConfiguration::builder()
        .rules(rule)
        .build()
        .ok()
}

fn tls_only(bucket: &str, partition: &str) -> String {
    let arn = format!("arn:{partition}:s3:::{bucket}");
    let deny = serde_json::json!({
        "Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
        "Resource": [arn, format!("{arn}/*")],
        "Condition": { "Bool": { "aws:SecureTransport": "false" } },
    });
    serde_json::json!({ "Version": "2012-10-17", "Statement": [deny] }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_names_its_region_except_in_the_first() {
        assert_eq!(location("us-east-1"), None);
        let elsewhere = location("eu-central-1");
        let named = elsewhere
            .as_ref()
            .and_then(|location| location.location_constraint());
        assert_eq!(named.map(BucketLocationConstraint::as_str), Some("eu-central-1"));
    }
}
