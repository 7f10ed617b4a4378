//! Uploading archives.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use zae_limiter_template::deployer::Place;
use zae_limiter_template::{CodeBucket, LambdaFunction, StackOptions};

use super::{Archive, CodeError, Loaded};
use crate::Error;
use crate::cloud::Cloud;
use crate::cloud::failure::Failure;
use crate::events::{Event, Observer};
use crate::fingerprint::hex;

/// Attempts while another request for the same bucket or object is in progress.
const ATTEMPTS: u32 = 6;

/// Uploads missing archives. Creates the default bucket if it does not exist.
pub(crate) async fn publish(
    cloud: &Cloud,
    options: &StackOptions,
    loaded: &Loaded,
    place: &Place,
    observer: &dyn Observer,
) -> Result<(), Error> {
    if loaded.archives.is_empty() {
        return Ok(());
    }
    let bucket = CodeBucket::of(options);
    let name = bucket.name(&place.account, &place.region);
    ensure_bucket(cloud, &bucket, &name, place, observer).await?;
    for (function, archive) in &loaded.archives {
        upload(cloud, &name, &place.account, *function, archive, observer).await?;
    }
    Ok(())
}

/// Stores a template that is too long for a request, in the bucket with the functions' archives, and returns its URL.
pub(crate) async fn store_template(
    cloud: &Cloud,
    options: &StackOptions,
    body: String,
    place: &Place,
    observer: &dyn Observer,
) -> Result<String, Error> {
    let bucket = CodeBucket::of(options);
    let name = bucket.name(&place.account, &place.region);
    ensure_bucket(cloud, &bucket, &name, place, observer).await?;
    let hash = Sha256::digest(&body);
    let (key, checksum) = (format!("templates/{}.json", hex(&hash)), STANDARD.encode(hash));
    let owner = place.account.as_str();
    if cloud.stored(&name, &key, Some(owner)).await?.is_none() {
        cloud
            .store(
                (&name, &key),
                owner,
                body.into_bytes(),
                &checksum,
                true,
                "application/json",
            )
            .await?;
    }
    let suffix = if place.partition == "aws-cn" {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    };
    // The form that the AWS command line uses, and the only one that local clouds read.
    Ok(format!("https://s3.{}.{suffix}/{name}/{key}", place.region))
}

/// The bucket's owner controls the functions' code, so it must be the caller's account.
async fn ensure_bucket(
    cloud: &Cloud,
    bucket: &CodeBucket,
    name: &str,
    place: &Place,
    observer: &dyn Observer,
) -> Result<(), Error> {
    let ours = *bucket == CodeBucket::Artifacts;
    match cloud.head_bucket(name, Some(&place.account)).await {
        Ok(()) if ours => {
            // Its creation may have been interrupted before public access was blocked.
            match cloud.keeps_versions(name, &place.account).await {
                Ok(false) => Ok(cloud.harden_bucket(name, place).await?),
                _ => Ok(()),
            }
        }
        Ok(()) => Ok(()),
        Err(failure) if failure.absent() && ours => create_bucket(cloud, name, place, observer).await,
        Err(failure) if failure.absent() => Err(CodeError::BucketMissing {
            bucket: name.to_owned(),
        }
        .into()),
        Err(failure) if failure.denied() || failure.status() == Some(403) => Err(taken(name, place)),
        Err(failure) => Err(failure.into()),
    }
}

fn taken(name: &str, place: &Place) -> Error {
    let (bucket, account) = (name.to_owned(), place.account.clone());
    CodeError::BucketTaken { bucket, account }.into()
}

async fn create_bucket(
    cloud: &Cloud,
    name: &str,
    place: &Place,
    observer: &dyn Observer,
) -> Result<(), Error> {
    for attempt in 1.. {
        match cloud.create_bucket(name, &place.region).await {
            Ok(()) => observer.observe(&Event::BucketCreated {
                bucket: name.to_owned(),
            }),
            Err(failure) if failure.is("BucketAlreadyOwnedByYou") => {}
            Err(failure) if failure.is("BucketAlreadyExists") => return Err(taken(name, place)),
            Err(failure) if failure.is("OperationAborted") && attempt < ATTEMPTS => {
                tokio::time::sleep(Duration::from_secs(u64::from(attempt))).await;
                continue;
            }
            Err(failure) => return Err(failure.into()),
        }
        break;
    }
    cloud.harden_bucket(name, place).await?;
    Ok(())
}

async fn upload(
    cloud: &Cloud,
    bucket: &str,
    owner: &str,
    function: LambdaFunction,
    archive: &Archive,
    observer: &dyn Observer,
) -> Result<(), Error> {
    let (key, checksum) = (archive.key(), archive.checksum());
    for attempt in 1.. {
        // An object without a checksum cannot be verified: overwrite it.
        let overwrite = match cloud.stored(bucket, &key, Some(owner)).await? {
            None => false,
            Some(stored) => match stored.sha256 {
                Some(known) if known == checksum => return Ok(()),
                Some(_) => {
                    let bucket = bucket.to_owned();
                    return Err(CodeError::ArtifactDiffers { bucket, key }.into());
                }
                None => true,
            },
        };
        let content = archive.bytes().await?;
        let stored = cloud.store(
            (bucket, &key),
            owner,
            content.to_vec(),
            &checksum,
            overwrite,
            "application/zip",
        );
        match stored.await {
            Ok(()) => {
                let bytes = content.len();
                observer.observe(&Event::Uploaded { function, key, bytes });
                break;
            }
            // Another process is uploading the same archive: check what it stored.
            Err(failure) if conflicts(&failure) && attempt < ATTEMPTS => {
                tokio::time::sleep(Duration::from_millis(200 * u64::from(attempt))).await;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(())
}

fn conflicts(failure: &Failure) -> bool {
    matches!(failure.status(), Some(409 | 412))
        || failure.is("PreconditionFailed")
        || failure.is("ConditionalRequestConflict")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use aws_sdk_s3::Client;
    use aws_sdk_s3::config::Credentials;
    use aws_sdk_s3::error::ErrorMetadata;
    use aws_sdk_s3::operation::get_bucket_versioning::GetBucketVersioningOutput;
    use aws_sdk_s3::operation::head_bucket::HeadBucketOutput;
    use aws_sdk_s3::operation::head_object::HeadObjectError;
    use aws_sdk_s3::operation::put_object::PutObjectOutput;
    use aws_sdk_s3::types::BucketVersioningStatus;
    use aws_smithy_mocks::{MockResponseInterceptor, RuleMode, create_mock_http_client, mock};
    use zae_limiter_template::Template;

    use super::*;
    use crate::Clients;
    use crate::desired::{Desired, LONGEST_STORED};

    fn cloud() -> Cloud {
        let bucket = mock!(Client::head_bucket)
            .match_requests(|input| input.expected_bucket_owner() == Some("123456789012"))
            .then_output(|| HeadBucketOutput::builder().build());
        let versions = mock!(Client::get_bucket_versioning).then_output(|| {
            let enabled = BucketVersioningStatus::Enabled;
            GetBucketVersioningOutput::builder().status(enabled).build()
        });
        let absent = mock!(Client::head_object)
            .then_error(|| HeadObjectError::generic(ErrorMetadata::builder().code("NotFound").build()));
        let put = mock!(Client::put_object)
            .match_requests(|input| {
                input.key().is_some_and(|key| key.starts_with("templates/"))
                    && input.expected_bucket_owner() == Some("123456789012")
                    && input.checksum_sha256().is_some()
            })
            .then_output(|| PutObjectOutput::builder().build());
        let responses = [&bucket, &versions, &absent, &put];
        let responses = responses.into_iter().fold(
            MockResponseInterceptor::new().rule_mode(RuleMode::MatchAny),
            MockResponseInterceptor::with_rule,
        );
        let s3 = aws_sdk_s3::Config::builder()
            .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
            .region(aws_sdk_s3::config::Region::new("eu-west-1"))
            .credentials_provider(Credentials::from_keys("key", "secret", None))
            .http_client(create_mock_http_client())
            .interceptor(responses)
            .build();
        let s3 = Client::from_conf(s3);
        let aws = aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::latest())
            .build();
        Cloud {
            clients: Clients {
                s3,
                ..Clients::new(&aws)
            },
            service_role: None,
        }
    }

    async fn url(partition: &str) -> String {
        let place = Place {
            partition: partition.to_owned(),
            region: "eu-west-1".to_owned(),
            account: "123456789012".to_owned(),
        };
        let body = "x".repeat(51_201);
        let observer = |_: &Event| {};
        store_template(&cloud(), &StackOptions::default(), body, &place, &observer)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_long_template_is_stored_in_the_bucket_of_the_archives() {
        let start =
            "https://s3.eu-west-1.amazonaws.com/zae-limiter-artifacts-123456789012-eu-west-1/templates/";
        let stored = url("aws").await;
        assert!(stored.starts_with(start), "{stored}");
        assert!(url("aws-cn").await.contains("s3.eu-west-1.amazonaws.com.cn/"));
    }

    #[test]
    fn a_template_that_cloudformation_cannot_read_is_refused() {
        let text = serde_json::json!({ "Description": "x".repeat(LONGEST_STORED) });
        let refused = Desired::new(&Template::from_value(text), &BTreeMap::new()).unwrap_err();
        assert!(matches!(refused, Error::TemplateTooLong { .. }), "{refused}");
    }
}
