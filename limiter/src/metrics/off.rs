//! Without the feature nothing is recorded, and none of this leaves code behind.

use zae_limiter_schema::Resource;
use zae_limiter_schema::bucket::BucketWrite;

use crate::bucket::Buckets;
use crate::store::WriteOutcome;
use crate::{Clock, Error, Lease};

#[derive(Debug, Default)]
pub(crate) struct Metrics;

/// The start of an acquire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer;

#[allow(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape of the recording twin"
)]
impl Metrics {
    #[inline]
    pub(crate) fn timer(&self, _: &dyn Clock) -> Timer {
        Timer
    }

    #[inline]
    pub(crate) fn acquired(&self, _: &Buckets, _: &Resource, _: Result<&Lease, &Error>, _: Timer) {}

    #[inline]
    pub(crate) fn wrote(&self, _: &BucketWrite, _: &WriteOutcome) {}

    #[inline]
    pub(crate) fn retried(&self) {}
}
