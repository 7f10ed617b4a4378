//! The bucket that holds the archive.

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use zae_limiter_function::CallError;

use crate::Object;

/// The archive as the archiver sees it: it writes objects and does nothing else.
pub trait Store {
    /// Writes the object, replacing one with the same key.
    fn put(&self, object: &Object) -> impl Future<Output = Result<(), CallError>>;
}

/// A bucket in S3.
#[derive(Debug, Clone)]
pub struct S3 {
    client: Client,
    bucket: String,
}

impl S3 {
    /// The bucket of that name.
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            bucket: bucket.into(),
        }
    }
}

impl Store for S3 {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
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
