//! Bearer tokens that can be read again from their file.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::BearerTokens;
use crate::error::Error;

/// The tokens that a server accepts now, and the file they come from.
#[derive(Debug)]
pub(crate) struct TokenSource {
    current: RwLock<Option<Arc<BearerTokens>>>,
    file: Option<PathBuf>,
}

impl TokenSource {
    /// Without a file, the tokens never change.
    pub(crate) fn new(tokens: Option<BearerTokens>, file: Option<PathBuf>) -> Self {
        Self {
            current: RwLock::new(tokens.map(Arc::new)),
            file,
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<BearerTokens>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the file. An error changes nothing. True if the tokens have changed.
    pub(crate) fn reload(&self) -> Result<bool, Error> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let tokens = Arc::new(BearerTokens::read(file)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref() == Some(&tokens) {
            return Ok(false);
        }
        *current = Some(tokens);
        Ok(true)
    }
}
