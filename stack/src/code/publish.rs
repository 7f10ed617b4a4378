//! Archives into their bucket.

use std::time::Duration;

use zae_limiter_template::deployer::Place;
use zae_limiter_template::{CodeBucket, LambdaFunction, StackOptions};

use super::{Archive, Loaded};
use crate::Error;
use crate::cloud::Cloud;
use crate::cloud::failure::Failure;
use crate::events::{Event, Observer};

/// Times that a bucket is asked for while S3 is busy with another request for the same one.
const PATIENCE: u32 = 6;

/// Uploads the archives that are not in the bucket yet, making the bucket where it is ours to make.
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
    have_bucket(cloud, &bucket, &name, place, observer).await?;
    for (function, archive) in &loaded.archives {
        upload(cloud, &name, &place.account, *function, archive, observer).await?;
    }
    Ok(())
}

/// Whoever owns the bucket decides which code the functions run, so it must be in the caller's account.
async fn have_bucket(
    cloud: &Cloud,
    bucket: &CodeBucket,
    name: &str,
    place: &Place,
    observer: &dyn Observer,
) -> Result<(), Error> {
    let ours = *bucket == CodeBucket::Artifacts;
    match cloud.head_bucket(name, Some(&place.account)).await {
        Ok(()) if ours => {
            // Whoever made it may have been interrupted before it was closed to the public.
            match cloud.keeps_versions(name, &place.account).await {
                Ok(false) => Ok(cloud.harden_bucket(name, place).await?),
                _ => Ok(()),
            }
        }
        Ok(()) => Ok(()),
        Err(failure) if failure.absent() && ours => make_bucket(cloud, name, place, observer).await,
        Err(failure) if failure.absent() => Err(Error::BucketMissing {
            bucket: name.to_owned(),
        }),
        Err(failure) if failure.denied() || failure.status() == Some(403) => Err(taken(name, place)),
        Err(failure) => Err(failure.into()),
    }
}

fn taken(name: &str, place: &Place) -> Error {
    Error::BucketTaken {
        bucket: name.to_owned(),
        account: place.account.clone(),
    }
}

async fn make_bucket(cloud: &Cloud, name: &str, place: &Place, observer: &dyn Observer) -> Result<(), Error> {
    for attempt in 1.. {
        match cloud.create_bucket(name, &place.region).await {
            Ok(()) => observer.observe(&Event::BucketCreated {
                bucket: name.to_owned(),
            }),
            Err(failure) if failure.is("BucketAlreadyOwnedByYou") => {}
            Err(failure) if failure.is("BucketAlreadyExists") => return Err(taken(name, place)),
            Err(failure) if failure.is("OperationAborted") && attempt < PATIENCE => {
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
        // An object without a checksum cannot be trusted: it is written again.
        let overwrite = match cloud.stored(bucket, &key, Some(owner)).await? {
            None => false,
            Some(stored) => match stored.sha256 {
                Some(known) if known == checksum => return Ok(()),
                Some(_) => {
                    let bucket = bucket.to_owned();
                    return Err(Error::ArtifactDiffers { bucket, key });
                }
                None => true,
            },
        };
        let body = archive.bytes.to_vec();
        let stored = cloud.store((bucket, &key), owner, body, &checksum, overwrite);
        match stored.await {
            Ok(()) => break,
            // Another process is at it, or was faster: what it writes must be the same.
            Err(failure) if met_another(&failure) && attempt < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(200 * u64::from(attempt))).await;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    observer.observe(&Event::Uploaded {
        function,
        key,
        bytes: archive.bytes.len(),
    });
    Ok(())
}

fn met_another(failure: &Failure) -> bool {
    matches!(failure.status(), Some(409 | 412))
        || failure.is("PreconditionFailed")
        || failure.is("ConditionalRequestConflict")
}
