//! What a client believes a bucket should be like.

use std::sync::Arc;

use super::{Etag, Fingerprint, Image, LimitState, TtlRule};
use crate::{EntityId, LimitSet, Mode};

/// The configuration of one bucket: its limits, its place in the hierarchy and when it may be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketConfig {
    limits: LimitSet,
    parent: Option<EntityId>,
    cascade: bool,
    ttl: TtlRule,
    /// No part of the fingerprint: it changes nothing on the item.
    mode: Mode,
    fingerprint: Arc<Fingerprint>,
}

impl BucketConfig {
    /// The config for a resolved configuration whose limits are enforced.
    pub fn new(limits: LimitSet, parent: Option<EntityId>, cascade: bool, ttl: TtlRule) -> Self {
        let fingerprint = Arc::new(Fingerprint::of(&limits, parent.as_ref(), cascade));
        Self {
            limits,
            parent,
            cascade,
            ttl,
            mode: Mode::Enforce,
            fingerprint,
        }
    }

    /// The limits.
    pub fn limits(&self) -> &LimitSet {
        &self.limits
    }

    /// The parent, if the entity has one.
    pub fn parent(&self) -> Option<&EntityId> {
        self.parent.as_ref()
    }

    /// Whether acquires cascade to the parent.
    pub fn cascade(&self) -> bool {
        self.cascade
    }

    /// When the bucket may be forgotten.
    pub fn ttl(&self) -> TtlRule {
        self.ttl
    }

    /// The same config with another rule of expiry.
    #[must_use]
    pub fn with_ttl(self, ttl: TtlRule) -> Self {
        Self { ttl, ..self }
    }

    /// Whether the limits are enforced.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The same config in another mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The etag of these config on an incarnation.
    pub fn etag(&self, incarnation: &str) -> Etag {
        Etag::new(&self.fingerprint, incarnation)
    }

    /// True if every limit is on the item with the same parameters.
    fn has_parameters_of(&self, image: &Image) -> bool {
        self.limits.iter().all(|limit| LimitState::is_on(image, limit))
    }

    /// True if the bucket has these parameters, parent and cascade flag already, whatever its etag says:
    /// then its etag is right and is left alone. Limits that are on their way out do not count.
    pub fn matches(&self, image: &Image) -> bool {
        image.etag.is_some()
            && image.parent.as_ref() == self.parent.as_ref()
            && image.cascade == self.cascade
            && self.has_parameters_of(image)
            // A limit that these config do not know may only be a leftover of a configuration that knew it; which of
            // the two it is, the fingerprint tells.
            && (image.limit_count() == self.limits.len()
                || self.is_on(image))
    }

    /// True if the bucket's etag says that it was last given these limits, parent and cascade flag.
    pub(super) fn is_on(&self, image: &Image) -> bool {
        image
            .etag
            .as_ref()
            .is_some_and(|etag| etag.fingerprint() == self.fingerprint.as_str())
    }
}
