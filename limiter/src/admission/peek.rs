//! Looking without taking.

use zae_limiter_schema::bucket::{Attributes, Batch, Decoded, Footing};

use super::level::Level;
use super::status::LimitStatus;
use crate::Result;

/// How the limits of a call stand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peek {
    /// Every limit, the entity's own first, then its parents'.
    pub statuses: Vec<LimitStatus>,
}

impl Peek {
    /// True if the call would be admitted now.
    pub fn would_pass(&self) -> bool {
        self.statuses.iter().all(|status| !status.exceeded)
    }

    pub(super) async fn look(levels: &[Level]) -> Result<Self> {
        let mut statuses = Vec::new();
        for level in levels {
            let hub = level.lane.hub();
            let found = hub.backend.read_bucket(level.lane.key(), false).await?;
            let decoded = found.as_ref().map(Attributes::decode).transpose()?;
            let now = hub.moment().now;
            let footing = match &decoded {
                Some(Decoded::Bucket(image)) if level.terms.match_image(image) => {
                    Footing::live(image, &level.terms, now)
                }
                Some(Decoded::Bucket(image)) => Footing::parameters(image, &level.terms, now),
                Some(Decoded::Stub) | None => Footing::create(&level.terms, now),
            };
            statuses.extend(level.statuses_on(&footing, &Batch::default()));
        }
        Ok(Self { statuses })
    }
}
