//! Sending bucket writes, and reading the buckets that come back.

use aws_sdk_dynamodb::types::{AttributeValue as SdkValue, ReturnValue};
use zae_limiter_schema::bucket::{Attributes, BucketWrite, Scalar};
use zae_limiter_schema::keys::attribute::{PK, SK};

use crate::convert::from_sdk_value;
use crate::{CallError, Result, SdkItem, Table, Update, Updated, update_once};

impl Table {
    /// Sends a bucket write once, without a timeout, and returns the bucket. The caller decides whether to send it again.
    pub async fn write_bucket(&self, write: &BucketWrite) -> Result<Updated<Attributes>> {
        self.update_bucket(write.into()).await
    }

    async fn update_bucket(&self, update: Update) -> Result<Updated<Attributes>> {
        let sent = update_once(&self.client, self.name.as_str(), update, ReturnValue::AllNew).await;
        let read = sent.and_then(|updated| match updated {
            Updated::Done(item) => Ok(Updated::Done(bucket(item)?)),
            Updated::ConditionFailed(item) => Ok(Updated::ConditionFailed(item.map(bucket).transpose()?)),
        });
        read.map_err(|cause| self.failed("UpdateItem", cause))
    }
}

/// The attributes of a bucket, without its key.
fn bucket(item: SdkItem) -> Result<Attributes, CallError> {
    item.into_iter()
        .filter(|(name, _)| name != PK && name != SK)
        .map(|(name, value)| scalar(&name, value).map(|value| (name, value)))
        .collect()
}

fn scalar(name: &str, value: SdkValue) -> Result<Scalar, CallError> {
    Ok(match value {
        SdkValue::N(digits) => Scalar::from_digits(&digits),
        SdkValue::S(text) => Scalar::Text(text.into()),
        SdkValue::Bool(flag) => Scalar::Flag(flag),
        // The write may have been carried out, so this is no plain failure.
        other => Scalar::Other(
            from_sdk_value(name, other)
                .map_err(|error| CallError::Unavailable(format!("unreadable response: {error}")))?,
        ),
    })
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
