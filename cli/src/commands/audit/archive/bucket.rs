//! The bucket that events are archived to.

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use zae_limiter::stack::needs_path_style;
use zae_limiter_archiver::{CallError, Object, Store};

/// A bucket of any kind that the SDK knows, such as an access point, with the SDK's retries. The archiver has a smaller client
/// for the bucket of its stack.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    client: Client,
    name: String,
}

impl Bucket {
    pub(super) fn new(aws: &SdkConfig, name: &str) -> Self {
        let config = aws_sdk_s3::config::Builder::from(aws).force_path_style(needs_path_style(aws));
        Self {
            client: Client::from_conf(config.build()),
            name: name.to_owned(),
        }
    }
}

impl Store for Bucket {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        self.client
            .put_object()
            .bucket(&self.name)
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
