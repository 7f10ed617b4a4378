//! `--archive`: the audit events of an embedded table in a folder, written by the archiver's own code.

use std::path::{Path, PathBuf};

use zae_limiter::{EmbeddedStore, StackName};
use zae_limiter_archiver::{Archiver, Folder, Object, Store as _};
use zae_limiter_function::{EmbeddedMapping, LoggedDeadLetters};

use super::audit::archive::events::Events;
use crate::connect;
use crate::context::Context;
use crate::error::{Error, Result};

/// The archive of a running server.
pub(super) struct EmbeddedArchive(EmbeddedMapping<Archiver<Folder, LoggedDeadLetters>>);

impl EmbeddedArchive {
    /// Archives what the table has, and every later event within seconds. None without a folder. The table must exist.
    pub(super) async fn start(folder: Option<&Path>, context: &Context) -> Result<Option<Self>> {
        let Some(folder) = folder else {
            return Ok(None);
        };
        let name = context.name()?;
        let store = connect::embedded_store(&context.location).await?;
        // From here on, events are in the changes.
        let changes = store.stream(name.as_str(), "archive").await;
        let changes = changes.map_err(zae_limiter::Error::from)?;
        let archive = Folder::new(folder);
        archive_existing(&store, &name, &archive, folder).await?;
        let archiver = Archiver::new(archive, LoggedDeadLetters);
        let mapping = EmbeddedMapping::start(changes, archiver);
        Ok(Some(Self(mapping.map_err(zae_limiter::Error::from)?)))
    }

    /// Archives what is left.
    pub(super) async fn finish(self) -> Result<()> {
        let archived = self.0.catch_up().await;
        archived
            .map(drop)
            .map_err(|error| zae_limiter::Error::from(error).into())
    }
}

/// The events that are in the table already. An object that exists is written again with the same bytes.
async fn archive_existing(
    store: &EmbeddedStore,
    name: &StackName,
    archive: &Folder,
    folder: &Path,
) -> Result<()> {
    let mut events = Events::of_store(store, name);
    while let Some(page) = events.page().await? {
        for item in page.events {
            let object = item.event;
            match object.and_then(|event| Object::of(&event).map_err(|problem| problem.to_string())) {
                Ok(object) => archive.put(&object).await.map_err(|error| Error::ArchiveDenied {
                    bucket: folder.display().to_string(),
                    problem: error.to_string(),
                })?,
                Err(problem) => {
                    tracing::error!(item = item.key, problem, "an audit event cannot be archived");
                }
            }
        }
    }
    Ok(())
}

// No documentation: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct ArchiveArguments {
    /// Write the audit events of the embedded table to this folder, as the archiver of a stack writes them to its bucket
    #[arg(long, value_name = "DIR")]
    pub(super) archive: Option<PathBuf>,
}

impl ArchiveArguments {
    /// Only an embedded table is archived here.
    pub(super) fn check(&self, context: &Context) -> Result<()> {
        if self.archive.is_some() && context.location.embedded.is_none() {
            return Err(Error::usage(
                "--archive needs --embedded: the archiver of a stack writes to its own bucket",
            ));
        }
        Ok(())
    }
}
