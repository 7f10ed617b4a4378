//! The bucket that holds the archive.

use aws_sdk_s3::primitives::ByteStream;
use zae_limiter_function::CallError;

use crate::{Object, Store};

/// A bucket in S3.
#[derive(Debug, Clone)]
pub struct S3 {
    client: aws_sdk_s3::Client,
    bucket: String,
}

impl S3 {
    /// The bucket of that name.
    pub fn new(client: aws_sdk_s3::Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            bucket: bucket.into(),
        }
    }
}

impl Store for S3 {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        // The SDK adds a checksum, which a bucket with Object Lock requires.
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(&object.key)
            .content_type(Object::CONTENT_TYPE)
            .content_encoding(Object::CONTENT_ENCODING)
            .body(ByteStream::from(object.body.clone()))
            .send()
            .await
            .map(drop)
            .map_err(|error| CallError::from(&error))
    }
}
