//! Migrations: bring a table of an older format up to date.
//!
//! Before schema 0.8.0 each limit was an item of its own, at every level of configuration and in every bucket. Such
//! tables can be large, and a migration can be stopped at any time. So a migration scans for old items page by page, and
//! turns those of one level or bucket into their new item in one transaction: it writes the new item and deletes the old
//! ones. What is done is not found again. Running a stopped migration again resumes it, and a further run does nothing.
//!
//! - `#LIMIT#` items become the `#CONFIG` item of their level, with its registry entry. Limits of single resources at
//!   system level, from the first design, become defaults of those resources.
//! - Buckets of single limits become one bucket. Its refill time is the latest of theirs; the others are refilled up to
//!   it with their remainders, so no tokens are gained or lost. A bucket that was used between read and write is left for
//!   the next run.
//! - An item that already has the new form is newer. It stays, and the old items are deleted.
//! - A malformed old item is reported, and left alone with all others of its level or bucket: in the next run, half of
//!   them would look like the whole. Two items of one limit with different values count as malformed.
//! - The version record is updated only if nothing was left over. Until then clients refuse the table, unless
//!   `strict_version` is off.
//! - A dry run reads and counts the same and writes nothing.
//!
//! A table without a version record gets one only if the first 20 pages of a scan show all of it and no old item. With an
//! old item, the table is refused until it is migrated. Otherwise it is used without a record.
//!
//! Stop old clients before a migration: it does not see what they write behind the scan.

mod buckets;
mod configs;
mod legacy;

use std::fmt;

use zae_limiter_dynamo::{CallError, Table, key_of};
use zae_limiter_schema::{Item, Version};

use crate::error::{Internal, Invalid};
use crate::store::BoxFuture;
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

    /// Assumes that the table has this version, instead of what its record says.
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

/// How old items are recognized.
#[derive(Clone, Copy)]
struct OldItems {
    /// What their sort keys start with.
    prefix: &'static str,
    /// True for an old item, of those with the prefix.
    concerns: fn(&str) -> bool,
}

/// A change of the table's format.
struct Migration {
    name: &'static str,
    description: &'static str,
    old: OldItems,
    /// Turns the old items of one partition into new ones.
    convert: for<'a> fn(&'a Repository, Vec<Item>, bool) -> BoxFuture<'a, Result<Counts>>,
}

/// All migrations, in order. They lead to this version.
const REGISTRY: [Migration; 2] = [configs::MIGRATION, buckets::MIGRATION];
/// Without the conversions, so that a program that never migrates does not carry them.
const OLD_ITEMS: [OldItems; 2] = [configs::MIGRATION.old, buckets::MIGRATION.old];
const VERSION: Version = Version {
    major: 0,
    minor: 8,
    patch: 0,
    pre: None,
};

/// How many pages of a table without a version record are looked through for old items.
const MAX_PAGES: usize = 20;

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

/// Looks for items of an older format.
pub(crate) async fn look_for_old_items(table: &Table) -> Result<Look> {
    for old in OLD_ITEMS {
        let mut start = None;
        for page in 1.. {
            let found = match table.scan_prefix_page(old.prefix, start).await {
                Err(error) if matches!(error.cause(), Some(CallError::Denied(_))) => {
                    return Ok(Look::Unsure);
                }
                found => found?,
            };
            let mut keys = found.items.iter().filter_map(key_of);
            if keys.any(|key| (old.concerns)(&key.sk)) {
                return Ok(Look::Old);
            }
            start = found.next;
            if start.is_none() {
                break;
            }
            if page == MAX_PAGES {
                return Ok(Look::Unsure);
            }
        }
    }
    Ok(Look::Current)
}

/// Runs the migrations that are missing, and writes the version record if nothing was left over.
pub(super) async fn run(repository: &Repository, how: &Migrate) -> Result<MigrationReport> {
    let mut report = MigrationReport {
        steps: vec![],
        dry_run: how.dry_run,
    };
    let from = match &how.from {
        Some(version) => Some(version.clone()),
        None => repository
            .get_version()
            .await?
            .and_then(|record| record.schema_version.parse().ok()),
    };
    if from.is_some_and(|from| from.release() >= VERSION.release()) {
        return Ok(report);
    }
    for migration in &REGISTRY {
        report
            .steps
            .push(convert_all(repository, migration, how.dry_run).await?);
    }
    if !how.dry_run {
        repository.inner.cache.invalidate_all();
        if report.steps.iter().all(|step| step.problems.is_empty()) {
            repository.write_version().await?;
        }
    }
    Ok(report)
}

async fn convert_all(repository: &Repository, migration: &Migration, dry_run: bool) -> Result<MigrationStep> {
    let mut total = Counts::default();
    let mut partition: Vec<Item> = vec![];
    let mut start = None;
    loop {
        let page = repository
            .inner
            .table
            .scan_prefix_page(migration.old.prefix, start)
            .await?;
        for item in page.items {
            let Some(key) = key_of(&item).filter(|key| (migration.old.concerns)(&key.sk)) else {
                continue;
            };
            // A scan brings the items of a partition one after the other.
            let same = partition
                .last()
                .and_then(key_of)
                .is_none_or(|last| last.pk == key.pk);
            if !same {
                let whole = std::mem::take(&mut partition);
                total.add((migration.convert)(repository, whole, dry_run).await?);
            }
            partition.push(item);
        }
        start = page.next;
        if start.is_none() {
            break;
        }
    }
    if !partition.is_empty() {
        total.add((migration.convert)(repository, partition, dry_run).await?);
    }
    Ok(MigrationStep {
        name: migration.name,
        description: migration.description,
        version: VERSION,
        found: total.found,
        written: total.written,
        removed: total.removed,
        problems: total.problems,
    })
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
            Err(
                error @ (Error::Internal(Internal::Malformed(_) | Internal::BadRequest { .. })
                | Error::Invalid(Invalid::Argument { .. })),
            ) => {
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
