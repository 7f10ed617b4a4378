//! What is stored and managed: entities, configuration, audit events, usage, versions and the table itself.

mod audit;
mod bucket_change;
mod buckets;
mod capacity;
mod change;
pub(crate) mod compatibility;
mod config;
mod config_write;
mod deletion;
mod entities;
mod entity_change;
mod entity_search;
mod limit_count;
mod metadata;
pub(crate) mod migrations;
mod new_entity;
mod observed;
mod paging;
mod parents;
mod principal;
mod refresh;
mod registry;
mod repository;
mod setting;
mod usage;
#[cfg(feature = "usage")]
mod usage_counter;
mod usage_query;
mod versions;

#[cfg(test)]
pub(crate) use bucket_change::{ChangeStore, Committed, Found, Plan, TopUpRequest, change_once};
pub use bucket_change::{LimitReset, ResetReport, TopUp, TopUpReport};
pub use buckets::{BucketLimit, BucketLimitKind, BucketState, BucketWriter};
pub use capacity::{CapacityScope, EntityCapacity, ResourceCapacity};
pub use change::ConfigChange;
pub use config::SetLimits;
pub(crate) use config_write::config_write;
pub use entity_change::EntityChange;
pub use entity_search::EntitySearch;
pub use limit_count::MAX_LIMITS;
pub(crate) use limit_count::MAX_LIMITS_OF_WRITE;
pub(crate) use limit_count::{check_limit_count, limit_set};
pub use new_entity::NewEntity;
pub use observed::{Observed, ObservedEntity};
pub use refresh::RefreshedBuckets;
pub(crate) use registry::{count_entity_configs, enter_resource};
pub use repository::Repository;
pub(crate) use repository::Setup;
pub use usage_query::{UsageQuery, UsageSummary};
