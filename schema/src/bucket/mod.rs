//! Buckets: how they fill and empty, and the one kind of write that changes them.
//!
//! A bucket is one item with all limits of an entity on a resource. Each limit has a level in millitokens (`tk`), and all
//! of them share the time of their last refill (`rf`). What has come back since then is computed when it is needed
//! ([`TokenBucket`]), exactly: the remainder of the division is kept (`rr`).
//!
//! Besides rates there are quotas and limits on calls in flight; [`LimitState`] is what all kinds have in common.
//!
//! Every change is one conditional update ([`BucketWrite`]) that is exact for a stated range of the item's state: a stale
//! image can make it fail, never make it wrong. A write has a [`WriteKind`] and a row per limit, of whatever kind. A rate is *open* where refill and credits fit under the burst (the level is added to) or *full* where they do not (the
//! level is set). [`Evaluation`] chooses kind and rows from the last image seen; [`Statement`] is the write as conditions and
//! actions on attributes, which the client compiles to an `UpdateItem` and [`Attributes::apply`] interprets.
//!
//! Numbers that come from a table are bounded when they are read (levels to ±10²⁴, parameters to 10¹⁸ and periods to
//! 10¹² ms), so that no arithmetic here overflows 128 bits.

mod attributes;
mod batch;
mod config;
mod decode;
mod etag;
mod evaluation;
mod image;
mod kinds;
mod params;
mod plan;
mod reset;
mod retry_after;
mod sharing;
mod size;
mod slot;
mod statement;
mod token_bucket;
mod ttl;
mod write;

pub use attributes::{Attr, Attributes, Field, PermitField, QuotaField, Refused, Scalar};
pub use batch::{Batch, Demand, PermitMoves};
pub use config::BucketConfig;
pub use decode::Decoded;
pub use etag::{Etag, Fingerprint, Incarnation};
pub use evaluation::Evaluation;
pub use image::Image;
pub use kinds::{
    ConcurrencyImage, ConcurrencyRow, ConcurrencyState, Epoch, Held, LimitOnItem, LimitState, Presence,
    QuotaForm, QuotaImage, QuotaParams, QuotaRow, QuotaState, RateImage, RateRow, RateState, Remainder, Row,
    RowForm, TopUpRow,
};
pub use params::Params;
pub use reset::ResetLimits;
pub use retry_after::{Outlook, Reset, RetryAfter};
pub use sharing::Sharing;
pub use size::{WRITE_UNIT_BYTES, estimated_bytes};
pub use slot::{ClientTag, LegacyClient, Slot, SlotBefore, SlotIndex};
pub use statement::{Action, Condition, Statement};
pub use token_bucket::{Pending, Shortfall, TokenBucket};
pub use ttl::TtlRule;
pub use write::{BucketKey, BucketWrite, EtagClause, Expiry, ParentLink, RefillClause, Relaxed, WriteKind};
