//! A limits file compared with a table.

use std::collections::BTreeSet;

use zae_limiter::{ConfigLevel, Repository};

use crate::applied_state::{self, AppliedState, AppliedStateRecord};
use crate::changes::LevelChanges;
use crate::manifest::Manifest;
use crate::{LevelSettings, Result, stored};

/// The changes that a file means for a table, and what the table records once they are made.
#[derive(Debug)]
pub struct Comparison {
    pub(crate) repository: Repository,
    pub(crate) record: AppliedStateRecord,
    pub(crate) changes: LevelChanges,
    pub(crate) after: AppliedState,
}

impl Comparison {
    /// Compares a file with the table. The levels that only the last applied file had are to be deleted.
    pub async fn of(repository: &Repository, file: &str) -> Result<Self> {
        Self::of_parsed(repository, Manifest::parse(file)?, file).await
    }

    /// The same for a file that is parsed already.
    pub async fn of_parsed(repository: &Repository, manifest: Manifest, file: &str) -> Result<Self> {
        let record = AppliedStateRecord::read(repository).await?;
        let levels = manifest.levels.keys().chain(&record.state.managed).cloned();
        let stored = stored::levels(repository, levels).await?;
        Ok(Self {
            changes: LevelChanges::between(&manifest, &stored, &record.state.managed),
            after: AppliedState {
                managed: manifest.levels.into_keys().collect(),
                hash: applied_state::hash(file),
                applied: None,
                // A file that is applied by hand does not change the resource that declares it.
                owner: record.state.owner.clone(),
                previous: record.state.previous.clone(),
            },
            repository: repository.clone(),
            record,
        })
    }

    /// The same for a resource of a stack, which owns the levels of the file from then on.
    pub async fn of_resource(repository: &Repository, file: &str, owner: &str) -> Result<Self> {
        let mut comparison = Self::of(repository, file).await?;
        comparison.after.give_to(owner);
        Ok(comparison)
    }

    /// Deletes what a resource declared with this file, as far as it is still managed. Nothing is deleted unless the
    /// resource owns the levels: another may have replaced it, or it never applied its file.
    ///
    /// Nor is anything deleted if the resource took the levels over from another that was not withdrawn since. The other
    /// owns them again: this is how CloudFormation rolls a rename back, and it sends the old resource no request.
    pub async fn withdraw(repository: &Repository, file: &str, owner: &str) -> Result<Self> {
        let record = AppliedStateRecord::read(repository).await?;
        let mut after = record.state.clone();
        let mut deleted = BTreeSet::new();
        if after.previous.as_deref() == Some(owner) {
            after.previous = None;
        } else if after.owner.as_deref() == Some(owner) {
            after.owner = after.previous.take();
            if after.owner.is_none() {
                // An invalid file was never applied.
                let declared = Manifest::parse(file).unwrap_or_default();
                deleted = declared.levels.into_keys().collect();
                deleted.retain(|level| after.managed.contains(level));
                after.managed.retain(|level| !deleted.contains(level));
                after.hash = String::new();
            }
        }
        let stored = stored::levels(repository, deleted.iter().cloned()).await?;
        let changes = LevelChanges::between(&Manifest::default(), &stored, &deleted);
        Ok(Self {
            repository: repository.clone(),
            record,
            changes,
            after,
        })
    }

    /// The changes.
    pub fn changes(&self) -> &LevelChanges {
        &self.changes
    }

    /// The levels of the table that neither the file nor the last applied one contains.
    pub async fn unmanaged(&self) -> Result<Vec<(ConfigLevel, LevelSettings)>> {
        let all = stored::every_level(&self.repository).await?;
        Ok(self.changes.unmanaged(all, &self.record.state.managed))
    }
}
