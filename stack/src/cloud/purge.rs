//! Purging: deleting tables and buckets that a stack retained.

use aws_sdk_s3::types::{Delete, ObjectIdentifier};

use super::Cloud;
use super::failure::Failure;

impl Cloud {
    /// Deletes a table. A missing table is not an error.
    pub(crate) async fn delete_table(&self, table: &str) -> Result<(), Failure> {
        match self
            .clients
            .dynamodb
            .delete_table()
            .table_name(table)
            .send()
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => {
                let failure = Failure::of("dynamodb:DeleteTable", table, &error);
                if failure.absent() { Ok(()) } else { Err(failure) }
            }
        }
    }

    /// Whether a bucket has object lock and objects.
    pub(crate) async fn locks_objects(&self, bucket: &str, owner: &str) -> Result<bool, Failure> {
        let call = self.clients.s3.get_object_lock_configuration();
        match call.bucket(bucket).expected_bucket_owner(owner).send().await {
            Ok(found) if found.object_lock_configuration.is_some() => {}
            Ok(_) => return Ok(false),
            Err(error) => {
                let failure = Failure::of("s3:GetBucketObjectLockConfiguration", bucket, &error);
                let none = failure.absent() || failure.is("ObjectLockConfigurationNotFoundError");
                return if none { Ok(false) } else { Err(failure) };
            }
        }
        let call = self.clients.s3.list_object_versions().bucket(bucket).max_keys(1);
        match call.expected_bucket_owner(owner).send().await {
            Ok(page) => Ok(!page.versions().is_empty()),
            Err(error) => Err(Failure::of("s3:ListBucketVersions", bucket, &error)),
        }
    }

    /// Whether a bucket has objects, old versions included.
    pub(crate) async fn has_objects(&self, bucket: &str) -> Result<bool, Failure> {
        let call = self.clients.s3.list_object_versions().bucket(bucket).max_keys(1);
        match call.send().await {
            Ok(page) => Ok(!page.versions().is_empty() || !page.delete_markers().is_empty()),
            Err(error) => Err(Failure::of("s3:ListBucketVersions", bucket, &error)),
        }
    }

    /// Deletes every version of every object and returns how many there were.
    pub(crate) async fn empty_bucket(&self, bucket: &str, owner: &str) -> Result<u64, Failure> {
        let mut deleted = 0;
        loop {
            let call = self
                .clients
                .s3
                .list_object_versions()
                .bucket(bucket)
                .expected_bucket_owner(owner);
            let page = match call.send().await {
                Ok(page) => page,
                Err(error) => {
                    let failure = Failure::of("s3:ListBucketVersions", bucket, &error);
                    return if failure.absent() {
                        Ok(deleted)
                    } else {
                        Err(failure)
                    };
                }
            };
            let versions = page
                .versions()
                .iter()
                .map(|version| (version.key(), version.version_id()));
            let markers = page
                .delete_markers()
                .iter()
                .map(|marker| (marker.key(), marker.version_id()));
            let objects = versions.chain(markers).filter_map(|(key, version)| {
                let object = ObjectIdentifier::builder().key(key?);
                object.set_version_id(version.map(str::to_owned)).build().ok()
            });
            let objects: Vec<_> = objects.collect();
            if objects.is_empty() {
                return Ok(deleted);
            }
            deleted += objects.len() as u64;
            let Ok(delete) = Delete::builder().set_objects(Some(objects)).quiet(true).build() else {
                return Ok(deleted);
            };
            let call = self
                .clients
                .s3
                .delete_objects()
                .bucket(bucket)
                .expected_bucket_owner(owner)
                .delete(delete);
            let response = call
                .send()
                .await
                .map_err(|error| Failure::of("s3:DeleteObjectVersion", bucket, &error))?;
            // Locked objects are reported as errors; without this check the loop would not end.
            if let Some(error) = response.errors().first() {
                let object = format!("{bucket}/{}", error.key().unwrap_or_default());
                return Err(Failure::told(
                    "s3:DeleteObjectVersion",
                    object,
                    error.code(),
                    error.message(),
                ));
            }
        }
    }

    /// Deletes an empty bucket. A missing bucket is not an error.
    pub(crate) async fn delete_bucket(&self, bucket: &str, owner: &str) -> Result<(), Failure> {
        match self
            .clients
            .s3
            .delete_bucket()
            .bucket(bucket)
            .expected_bucket_owner(owner)
            .send()
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => {
                let failure = Failure::of("s3:DeleteBucket", bucket, &error);
                if failure.absent() { Ok(()) } else { Err(failure) }
            }
        }
    }
}
