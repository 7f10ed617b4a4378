//! Lists that come in pages.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zae_limiter_schema::keys::Key;

use crate::{Error, Result};

/// Some items of a list, and where to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page starts; nothing if this was the last.
    pub next: Option<Cursor>,
}

/// Which page is wanted.
///
/// ```
/// use zae_limiter::PageRequest;
///
/// let first = PageRequest::of(50);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    pub(crate) size: usize,
    pub(crate) after: Option<Cursor>,
}

impl PageRequest {
    /// The largest page.
    pub const MOST: usize = 1_000;

    /// The first page, with up to so many items.
    pub fn of(size: usize) -> Self {
        Self { size, after: None }
    }

    /// The page that starts where another one ended.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if (1..=Self::MOST).contains(&self.size) {
            return Ok(());
        }
        Err(Error::invalid(
            "page size",
            self.size.to_string(),
            format!("it must be 1 to {}", Self::MOST),
        ))
    }
}

/// A hundred items from the start.
impl Default for PageRequest {
    fn default() -> Self {
        Self::of(100)
    }
}

/// The place in a list where a page ended. As text it is opaque and safe in URLs and shells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) key: Key,
    /// The sort key in the index, for lists that come from one.
    pub(crate) index_sort: Option<String>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = [
            self.key.pk.as_str(),
            &self.key.sk,
            self.index_sort.as_deref().unwrap_or_default(),
        ]
        .join("\n");
        f.write_str(&URL_SAFE_NO_PAD.encode(text))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(value: &str) -> Result<Self> {
        let unusable = || Error::invalid("cursor", value, "it must be one that an earlier page ended with");
        let bytes = URL_SAFE_NO_PAD.decode(value).map_err(|_| unusable())?;
        let text = String::from_utf8(bytes).map_err(|_| unusable())?;
        let mut parts = text.split('\n').map(str::to_owned);
        let mut next = || parts.next().ok_or_else(unusable);
        let (pk, sk, index_sort) = (next()?, next()?, next()?);
        if pk.is_empty() || sk.is_empty() || parts.next().is_some() {
            return Err(unusable());
        }
        Ok(Self {
            key: Key { pk, sk },
            index_sort: Some(index_sort).filter(|sort| !sort.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_survives_as_text(pk in "[A-Z#a-z0-9]{1,40}", sk in "[#A-Za-z0-9/.]{1,40}", sort in prop::option::of("[A-Z#]{1,20}")) {
            let cursor = Cursor { key: Key { pk, sk }, index_sort: sort };
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().ok(), Some(cursor));
        }

        #[test]
        fn any_text_is_a_cursor_or_an_error(text in ".*") {
            let _ = text.parse::<Cursor>();
        }
    }
}
