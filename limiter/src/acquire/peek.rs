//! Looking without taking.

use zae_limiter_schema::bucket::{Attributes, Batch, Decoded, Evaluation};

use super::charge::Charge;
use crate::Result;
use crate::status::LimitStatus;

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

    pub(super) async fn look(charges: &[Charge]) -> Result<Self> {
        let mut statuses = Vec::new();
        for charge in charges {
            let shared = charge.queue.shared();
            let found = shared.store.read_bucket(charge.queue.key(), false).await?;
            let decoded = found.as_ref().map(Attributes::decode).transpose()?;
            let now = shared.moment().now;
            let evaluation = match &decoded {
                Some(Decoded::Bucket(image)) if charge.config.matches(image) => {
                    Evaluation::live(image, &charge.config, now)
                }
                Some(Decoded::Bucket(image)) => Evaluation::parameters(image, &charge.config, now),
                Some(Decoded::Stub) | None => Evaluation::create(&charge.config, now),
            };
            statuses.extend(charge.statuses_on(&evaluation, &Batch::default()));
        }
        Ok(Self { statuses })
    }
}
