//! Uploading archives.

use std::time::Duration;

use zae_limiter_template::deployer::Place;
use zae_limiter_template::{CodeBucket, LambdaFunction, StackOptions};

use super::{Archive, CodeError, Loaded};
use crate::Error;
use crate::cloud::Cloud;
use crate::cloud::failure::Failure;
use crate::events::{Event, Observer};

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
        let stored = cloud.store((bucket, &key), owner, content.to_vec(), &checksum, overwrite);
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
