//! What the builder hands to the limiter.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use zae_limiter_dynamo::CapacityMeter;
use zae_limiter_schema::bucket::TtlRule;
use zae_limiter_schema::{ConfigRecord, Resource};

/// Settings of the acquire path.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a method of the builder")]
pub(crate) struct Settings {
    /// How long an acquire may take in all.
    pub(crate) time_budget: Duration,
    /// How long an adjustment or refund is retried.
    pub(crate) settle_budget: Duration,
    /// How long a refusal is remembered.
    pub(crate) refusal_cache_ttl: Duration,
    /// The time to live of a bucket on default limits, in refill times; 0 is no expiry.
    pub(crate) ttl_multiplier: u32,
    /// The number of processes that share the limits during an outage.
    pub(crate) processes: Option<NonZeroU32>,
    /// Refuses tables of another version, where nothing is stored about it.
    pub(crate) strict_version: bool,
    /// Replaces the code of deployed functions, where nothing is stored about it.
    #[cfg(feature = "stack")]
    pub(crate) auto_update: bool,
    /// Whether refused acquires are counted in the table.
    pub(crate) count_refusals: bool,
    /// Whether this process counts the usage of its embedded table.
    pub(crate) count_usage: bool,
    /// Counts what it consumes of the table.
    pub(crate) meter: Option<CapacityMeter>,
    /// Where tokens are taken in chunks.
    pub(crate) chunks: ChunkScope,
    /// This many buckets are kept in memory; beyond that idle ones are forgotten.
    pub(crate) buckets: usize,
}

/// The resources on whose buckets tokens are taken in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkScope {
    /// These; none unless set.
    Resources(BTreeSet<String>),
    /// All.
    Everywhere,
}

impl Default for ChunkScope {
    fn default() -> Self {
        Self::Resources(BTreeSet::new())
    }
}

impl ChunkScope {
    pub(crate) fn allows(&self, resource: &Resource) -> bool {
        match self {
            Self::Resources(names) => names.contains(resource.as_str()),
            Self::Everywhere => true,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time_budget: Duration::from_secs(1),
            settle_budget: Duration::from_secs(30),
            refusal_cache_ttl: Duration::from_secs(1),
            ttl_multiplier: TtlRule::DEFAULT_MULTIPLIER,
            processes: None,
            strict_version: true,
            #[cfg(feature = "stack")]
            auto_update: true,
            count_refusals: true,
            count_usage: false,
            meter: None,
            chunks: ChunkScope::default(),
            buckets: 10_000,
        }
    }
}

impl Settings {
    /// What the system configuration says about tables of another version, or else this.
    pub(crate) fn is_strict(&self, system: Option<&ConfigRecord>) -> bool {
        let stored = system.and_then(|config| config.system.strict_version);
        stored.unwrap_or(self.strict_version)
    }
}
