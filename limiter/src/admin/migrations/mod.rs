//! Bringing a table of an older format up to date.
//!
//! A migration looks through the table page by page and turns each group of old items into its new item in one
//! transaction. It can be stopped at any point and run again: what is done is not there to be found any more.

mod buckets;
mod configs;
mod legacy;

use std::fmt;

use zae_limiter_dynamo::{CallError, key_of};
use zae_limiter_schema::{Item, Version};

use crate::store::Pending;
use crate::{Error, Repository, Result};

/// How to migrate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "nothing is migrated until this is passed to migrate"]
pub struct Migrate {
    dry_run: bool,
    from: Option<Version>,
}

impl Migrate {
    /// Runs what the table's version record says is missing.
    pub fn pending() -> Self {
        Self::default()
    }

    /// Only counts what would be done.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Takes the table to be of this version, whatever its record says.
    pub fn from(mut self, version: Version) -> Self {
        self.from = Some(version);
        self
    }
}

/// What a run of migrations did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MigrationReport {
    /// Each migration that was run, in order.
    pub steps: Vec<MigrationStep>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// What one migration did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationStep {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The version it leads to.
    pub version: Version,
    /// Old items found.
    pub found: u64,
    /// New items written.
    pub written: u64,
    /// Old items deleted.
    pub removed: u64,
    /// Old items that could not be used, and why. They are left alone, with all others of their level or bucket.
    pub problems: Vec<String>,
}

/// Counts of one migration.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    found: u64,
    written: u64,
    removed: u64,
    problems: Vec<String>,
}

/// A change of the table's format.
trait Migration: Sync {
    fn version(&self) -> Version;
    fn name(&self) -> &'static str;
    fn description(&self) -> &'static str;
    /// What sort keys of old items start with.
    fn prefix(&self) -> &'static str;
    /// True for an old item, of those with the prefix.
    fn concerns(&self, sort_key: &str) -> bool;
    /// Turns the old items of one partition into new ones.
    fn convert<'a>(
        &'a self,
        repository: &'a Repository,
        old: Vec<Item>,
        dry_run: bool,
    ) -> Pending<'a, Counts>;
}

/// All migrations, in order of the versions they lead to.
const REGISTRY: [&dyn Migration; 2] = [&configs::CompositeConfigs, &buckets::CompositeBuckets];

fn composite_version() -> Version {
    Version {
        major: 0,
        minor: 8,
        patch: 0,
        pre: None,
    }
}

/// How many pages of a table without a version record are looked through for old items.
const MOST_PAGES: usize = 20;

/// What a look at a table without a version record has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing of an older format.
    Current,
    /// Items of an older format.
    Old,
    /// Neither: the table is too large to look through, or it may not be scanned.
    Unsure,
}

impl Repository {
    /// Looks for items of an older format.
    pub(crate) async fn look_for_old_items(&self) -> Result<Look> {
        let table = self.table();
        for migration in REGISTRY {
            let mut start = None;
            for page in 1.. {
                let found = match table.scan_prefix_page(migration.prefix(), start).await {
                    Err(error) if matches!(error.cause(), Some(CallError::Denied(_))) => {
                        return Ok(Look::Unsure);
                    }
                    found => found?,
                };
                let mut keys = found.items.iter().filter_map(key_of);
                if keys.any(|key| migration.concerns(&key.sk)) {
                    return Ok(Look::Old);
                }
                start = found.next;
                if start.is_none() {
                    break;
                }
                if page == MOST_PAGES {
                    return Ok(Look::Unsure);
                }
            }
        }
        Ok(Look::Current)
    }

    /// Brings the table up to date and writes its version record. Resumable, and harmless to repeat.
    ///
    /// ```
    /// use zae_limiter::{Migrate, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// let plan = repository.migrate(Migrate::pending().dry_run()).await?;
    /// assert!(plan.steps.is_empty(), "a new table is up to date");
    /// # Ok(()) }
    /// ```
    pub async fn migrate(&self, how: Migrate) -> Result<MigrationReport> {
        let mut report = MigrationReport {
            steps: vec![],
            dry_run: how.dry_run,
        };
        let from = match how.from {
            Some(version) => Some(version),
            None => self
                .version()
                .await?
                .and_then(|record| record.schema_version.parse().ok()),
        };
        for migration in REGISTRY {
            if from
                .as_ref()
                .is_some_and(|from| from.release() >= migration.version().release())
            {
                continue;
            }
            report.steps.push(self.run(migration, how.dry_run).await?);
        }
        if !how.dry_run && !report.steps.is_empty() {
            self.inner.cache.invalidate_all();
            if report.steps.iter().all(|step| step.problems.is_empty()) {
                self.write_version().await?;
            }
        }
        Ok(report)
    }

    async fn run(&self, migration: &dyn Migration, dry_run: bool) -> Result<MigrationStep> {
        let mut total = Counts::default();
        let mut partition: Vec<Item> = vec![];
        let mut start = None;
        loop {
            let page = self
                .inner
                .table
                .scan_prefix_page(migration.prefix(), start)
                .await?;
            for item in page.items {
                let Some(key) = key_of(&item).filter(|key| migration.concerns(&key.sk)) else {
                    continue;
                };
                // A scan brings the items of a partition one after the other.
                let same = partition
                    .last()
                    .and_then(key_of)
                    .is_none_or(|last| last.pk == key.pk);
                if !same {
                    total.add(
                        migration
                            .convert(self, std::mem::take(&mut partition), dry_run)
                            .await?,
                    );
                }
                partition.push(item);
            }
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        if !partition.is_empty() {
            total.add(migration.convert(self, partition, dry_run).await?);
        }
        Ok(MigrationStep {
            name: migration.name(),
            description: migration.description(),
            version: migration.version(),
            found: total.found,
            written: total.written,
            removed: total.removed,
            problems: total.problems,
        })
    }
}

impl Counts {
    /// Counts what became of one group of old items. What is wrong with one of them does not stop the others.
    fn note(&mut self, what: &impl fmt::Display, removed: u64, written: Result<Option<bool>>) -> Result<()> {
        match written {
            Ok(Some(written)) => {
                self.written += u64::from(written);
                self.removed += removed;
            }
            Ok(None) => self
                .problems
                .push(format!("{what} was changed meanwhile; run the migration again")),
            Err(error @ (Error::Malformed(_) | Error::Invalid { .. } | Error::Refused { .. })) => {
                self.problems.push(format!("{what}: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn add(&mut self, other: Self) {
        self.found += other.found;
        self.written += other.written;
        self.removed += other.removed;
        self.problems.extend(other.problems);
    }
}
