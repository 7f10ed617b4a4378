//! A folder that holds the archive of an embedded table.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use zae_limiter_function::CallError;

use crate::{Object, Store};

/// A folder with the same tree as the bucket of a stack: `audit/year=YYYY/month=MM/day=DD/{event_id}.jsonl.gz`.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at this path. It is created with the first object.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Store for Folder {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        let (path, body) = (self.path.join(&object.key), object.body.clone());
        let named = path.clone();
        let written = tokio::task::spawn_blocking(move || write(&path, &body)).await;
        let failed = |error: io::Error| CallError::Denied(format!("{}: {error}", named.display()));
        written
            .map_err(|error| CallError::Unavailable(error.to_string()))?
            .map_err(failed)
    }
}

/// Readers see the whole file or none.
fn write(path: &Path, body: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = fs::File::create(&unfinished)?;
    file.write_all(body)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use zae_limiter_schema::Timestamp;

    use super::*;

    fn object(body: &[u8]) -> Object {
        Object {
            key: "audit/year=2026/month=01/day=31/01ARYZ6S410000000000000000.jsonl.gz".to_owned(),
            body: body.to_owned(),
            at: Timestamp::from_millis(0),
        }
    }

    #[tokio::test]
    async fn an_object_is_a_file_and_writing_it_again_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Folder::new(folder.path().join("archive"));
        for _ in 0..2 {
            archive.put(&object(b"line")).await.unwrap();
        }
        let day = folder.path().join("archive/audit/year=2026/month=01/day=31");
        let files: Vec<_> = fs::read_dir(&day)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert_eq!(files, [day.join("01ARYZ6S410000000000000000.jsonl.gz")]);
        assert_eq!(fs::read(&files[0]).unwrap(), b"line");
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_for_the_operator_to_repair() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        fs::write(&path, "a file").unwrap();
        let error = Folder::new(&path).put(&object(b"line")).await.unwrap_err();
        assert!(
            matches!(&error, CallError::Denied(text) if text.contains("archive")),
            "{error:?}"
        );
    }
}
