//! One function's archive.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use zae_limiter_template::{Architecture, LambdaFunction};

use super::CodeError;
use super::elf::{self, Runs};
use super::release::Download;

/// The first bytes of every non-empty zip archive.
const SIGNATURE: &[u8] = b"PK\x03\x04";

/// A zip archive and its hash.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    content: Content,
    hash: [u8; 32],
}

#[derive(Debug, Clone)]
enum Content {
    Bytes(Arc<[u8]>),
    /// Not downloaded yet.
    Download(Download),
}

impl Archive {
    /// `origin` is for messages.
    pub(crate) fn new(bytes: Vec<u8>, origin: &str) -> Result<Self, CodeError> {
        Ok(Self {
            hash: hash(&bytes, origin)?,
            content: Content::Bytes(bytes.into()),
        })
    }

    /// An archive with this hash that [`bytes`](Self::bytes) downloads.
    pub(crate) fn of_release(download: Download, hash: [u8; 32]) -> Self {
        Self {
            content: Content::Download(download),
            hash,
        }
    }

    /// What is in it. Downloads and checks an archive of a release.
    pub(crate) async fn bytes(&self) -> Result<Arc<[u8]>, CodeError> {
        let download = match &self.content {
            Content::Bytes(bytes) => return Ok(bytes.clone()),
            Content::Download(download) => download,
        };
        let bytes = download.fetch().await?;
        let found = hash(&bytes, &download.address)?;
        if found != self.hash {
            return Err(CodeError::ReleaseDiffers {
                address: download.address.clone(),
                found: crate::fingerprint::hex(&found),
                expected: self.sha256(),
            });
        }
        check_program(&bytes, download.function, download.architecture)?;
        Ok(bytes.into())
    }

    pub(crate) async fn read(path: PathBuf) -> Result<Self, CodeError> {
        let reading = path.clone();
        let read = tokio::task::spawn_blocking(move || std::fs::read(reading)).await;
        let bytes = read.map_err(std::io::Error::other).and_then(|read| read);
        let bytes = bytes.map_err(|source| CodeError::ArchiveUnreadable {
            path: path.clone(),
            source,
        })?;
        Self::new(bytes, &path.display().to_string())
    }

    /// Refuses an archive without a program, and a program that the function's processor cannot run. A release is checked when it is downloaded.
    pub(crate) fn check_program(
        &self,
        function: LambdaFunction,
        wanted: Architecture,
    ) -> Result<(), CodeError> {
        match &self.content {
            Content::Bytes(bytes) => check_program(bytes, function, wanted),
            Content::Download(_) => Ok(()),
        }
    }

    /// `{sha256}.zip`.
    pub(crate) fn key(&self) -> String {
        format!("{}.zip", self.sha256())
    }

    /// In hexadecimal.
    pub(crate) fn sha256(&self) -> String {
        crate::fingerprint::hex(&self.hash)
    }

    /// In base64, as S3 has it.
    pub(crate) fn checksum(&self) -> String {
        STANDARD.encode(self.hash)
    }
}

fn hash(bytes: &[u8], origin: &str) -> Result<[u8; 32], CodeError> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(CodeError::NotAnArchive {
            origin: origin.to_owned(),
        });
    }
    Ok(Sha256::digest(bytes).into())
}

fn check_program(archive: &[u8], function: LambdaFunction, wanted: Architecture) -> Result<(), CodeError> {
    match elf::runs(archive) {
        None => Err(CodeError::NoProgram { function }),
        Some(Runs::On(found)) if found != wanted => Err(CodeError::WrongArchitecture {
            function,
            found,
            wanted,
        }),
        Some(Runs::Nowhere { machine }) => Err(CodeError::UnknownMachine {
            function,
            machine,
            wanted,
        }),
        Some(Runs::On(_) | Runs::Anywhere) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_archive_is_named_by_its_content() {
        let archive = Archive::new(b"PK\x03\x04".to_vec(), "here").unwrap();
        assert_eq!(
            archive.key(),
            "8dcc7e601606217f3b754766511182a916b17e9a26a94c9d887104eba92e9bb2.zip"
        );
        let other = Archive::new(b"PK\x03\x04x".to_vec(), "here").unwrap();
        assert_ne!(archive.key(), other.key());
        assert_eq!(STANDARD.decode(archive.checksum()).unwrap().len(), 32);
    }
}
