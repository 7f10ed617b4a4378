//! Reads what views show. Every view reads a bounded number of items, however many entities there are.

mod audit;
mod bucket;
mod entities;
mod entity;
mod limits;
mod overview;
mod resource;
mod resources;
mod usage;

use audit::trail;
pub(crate) use audit::{AuditLog, Trail, audit_log};
pub(crate) use bucket::{LiveBucket, live_bucket};
pub(crate) use entities::{EntityList, ListFrom, entity_list};
pub(crate) use entity::{EntityPage, LimitRow, entity_page};
pub(crate) use limits::{LevelLimits, LimitsTree, ResourceLevels, level_limits, limits_tree};
pub(crate) use overview::{Overview, StackReport, TableHealth, overview};
pub(crate) use resource::{ResourcePage, resource_page};
pub(crate) use resources::{KnownResources, known_resources};
pub(crate) use usage::{
    EntityUsage, UsageOfEntity, UsageOfResource, UsageOfWindow, WindowTotal, money_limit, usage_of_entity,
    usage_of_resource, usage_of_window, windows_back, windows_between,
};

use futures::StreamExt;

use super::failure::Failure;

/// What was read, or why it could not be.
pub(crate) type Loaded<T> = Result<T, Failure>;

/// How many rows a table has on one page.
pub(crate) const PAGE: usize = 50;
/// How many calls one page makes to the table at the same time.
const CONCURRENT: usize = 16;

/// The results of all, in order, with a bounded number of them under way.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let futures: Vec<F> = futures.into_iter().collect();
    futures::stream::iter(futures)
        .buffered(CONCURRENT)
        .collect()
        .await
}
