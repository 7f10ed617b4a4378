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
    /// The start of the next page. None if this is the last.
    pub next: Option<Cursor>,
}

/// The page to read. [`items`](Self::items) reads all pages from it on.
///
/// ```
/// use zae_limiter::PageRequest;
///
/// let first = PageRequest::new(50);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    pub(crate) size: usize,
    pub(crate) after: Option<Cursor>,
}

impl PageRequest {
    /// The largest page size.
    pub const MAX_SIZE: usize = 1_000;

    /// The first page, with at most `size` items.
    pub fn new(size: usize) -> Self {
        Self { size, after: None }
    }

    /// The page that starts where another one ended.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// All items of a list from this page on. Pages are read when their items are needed.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// for id in ["user-1", "user-2", "user-3"] {
    ///     repository.create_entity(NewEntity::new(id)).await?;
    /// }
    ///
    /// let mut entities = PageRequest::new(2).items(async |page: &PageRequest| repository.list_entities(page).await);
    /// while let Some(entity) = entities.next().await {
    ///     println!("{}", entity?.id);
    /// }
    ///
    /// let entities = PageRequest::default().items(async |page: &PageRequest| repository.list_entities(page).await);
    /// assert_eq!(entities.try_collect().await?.len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn items<T, F: AsyncFnMut(&Self) -> Result<Page<T>>>(self, fetch: F) -> Items<T, F> {
        Items {
            fetch,
            next: Some(self),
            read: Vec::new().into_iter(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if (1..=Self::MAX_SIZE).contains(&self.size) {
            return Ok(());
        }
        Err(Error::invalid(
            "page size",
            self.size.to_string(),
            format!("it must be 1 to {}", Self::MAX_SIZE),
        ))
    }
}

/// A hundred items from the start.
impl Default for PageRequest {
    fn default() -> Self {
        Self::new(100)
    }
}

/// The items of a list, in order, over all its pages: see [`PageRequest::items`].
#[must_use = "nothing is read until `next` or `try_collect` is called"]
pub struct Items<T, F> {
    fetch: F,
    /// The page to read when the items are used up.
    next: Option<PageRequest>,
    /// The rest of the page that was read last.
    read: std::vec::IntoIter<T>,
}

impl<T, F: AsyncFnMut(&PageRequest) -> Result<Page<T>>> Items<T, F> {
    /// The next item; `None` after the last. After an error, the next call reads the same page again.
    pub async fn next(&mut self) -> Option<Result<T>> {
        loop {
            if let Some(item) = self.read.next() {
                return Some(Ok(item));
            }
            let request = self.next.as_ref()?;
            let page = match (self.fetch)(request).await {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            let size = request.size;
            self.next = page.next.map(|cursor| PageRequest::new(size).after(cursor));
            self.read = page.items.into_iter();
        }
    }

    /// All items that are left, or the first error.
    pub async fn try_collect(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await {
            all.push(item?);
        }
        Ok(all)
    }
}

impl<T, F> fmt::Debug for Items<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// The place in a list where a page ended. As text it is opaque and safe in URLs and shells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) key: Key,
    /// Partition and sort key in the index, for lists that come from one.
    pub(crate) in_index: Option<Key>,
}

impl Cursor {
    /// An error if it is the place in another list.
    pub(crate) fn check(&self, belongs: bool) -> Result<()> {
        if belongs {
            return Ok(());
        }
        Err(Error::invalid(
            "cursor",
            self.to_string(),
            "it must be one that an earlier page of the same list ended with",
        ))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = std::iter::once(&self.key).chain(&self.in_index);
        let parts: Vec<&str> = keys.flat_map(|key| [key.pk.as_str(), key.sk.as_str()]).collect();
        f.write_str(&URL_SAFE_NO_PAD.encode(parts.join("\n")))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(value: &str) -> Result<Self> {
        let unusable = || Error::invalid("cursor", value, "it must be one that an earlier page ended with");
        let bytes = URL_SAFE_NO_PAD.decode(value).map_err(|_| unusable())?;
        let text = String::from_utf8(bytes).map_err(|_| unusable())?;
        let parts: Vec<&str> = text.split('\n').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(unusable());
        }
        let key = |pk: &str, sk: &str| Key {
            pk: pk.to_owned(),
            sk: sk.to_owned(),
        };
        match parts[..] {
            [pk, sk] => Ok(Self {
                key: key(pk, sk),
                in_index: None,
            }),
            [pk, sk, index_pk, index_sk] => Ok(Self {
                key: key(pk, sk),
                in_index: Some(key(index_pk, index_sk)),
            }),
            _ => Err(unusable()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::error::Invalid;

    #[test]
    fn a_cursor_has_one_key_or_two() {
        for text in ["a", "a\nb\nc", "a\nb\nc\nd\ne", "a\n", ""] {
            let cursor = URL_SAFE_NO_PAD.encode(text).parse::<Cursor>();
            assert!(
                matches!(
                    cursor,
                    Err(Error::Invalid(Invalid::Argument { field: "cursor", .. }))
                ),
                "{text:?}: {cursor:?}"
            );
        }
    }

    fn cursor(number: usize) -> Cursor {
        let key = Key {
            pk: number.to_string(),
            sk: "x".to_owned(),
        };
        Cursor { key, in_index: None }
    }

    /// A list of seven numbers. Its pages end early, and the first attempt at each page fails.
    fn page_of_seven(failed: &mut bool, request: &PageRequest) -> Result<Page<usize>> {
        *failed = !*failed;
        if *failed {
            return Err(Error::contended(&"the list"));
        }
        let start: usize = request
            .after
            .as_ref()
            .map_or(0, |after| after.key.pk.parse().unwrap());
        let end = 7.min(start + request.size);
        Ok(Page {
            items: (start..end).collect(),
            next: (end < 7).then(|| cursor(end)),
        })
    }

    #[tokio::test]
    async fn items_come_from_all_pages_and_an_error_loses_none() {
        for size in 1..=8 {
            let mut failed = false;
            let mut items =
                PageRequest::new(size).items(async |page: &PageRequest| page_of_seven(&mut failed, page));
            let (mut seen, mut errors) = (vec![], 0);
            while let Some(item) = items.next().await {
                match item {
                    Ok(item) => seen.push(item),
                    Err(_) => errors += 1,
                }
            }
            assert_eq!((seen, errors), ((0..7).collect(), 7_usize.div_ceil(size)));
            assert!(items.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn collecting_items_ends_with_the_first_error() {
        let mut failed = false;
        let items = PageRequest::new(2).items(async |page: &PageRequest| page_of_seven(&mut failed, page));
        assert!(items.try_collect().await.is_err());
        let items = PageRequest::new(3)
            .after(cursor(2))
            .items(async |page: &PageRequest| {
                let mut failed = true;
                page_of_seven(&mut failed, page)
            });
        assert_eq!(items.try_collect().await.unwrap(), [2, 3, 4, 5, 6]);
    }

    proptest! {
        #[test]
        fn a_cursor_survives_as_text(pk in "[A-Z#a-z0-9]{1,40}", sk in "[#A-Za-z0-9/.]{1,40}", index in prop::option::of(("[A-Z#]{1,20}", "[a-z]{1,9}"))) {
            let in_index = index.map(|(pk, sk)| Key { pk, sk });
            let cursor = Cursor { key: Key { pk, sk }, in_index };
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().ok(), Some(cursor));
        }

        #[test]
        fn any_text_is_a_cursor_or_an_error(text in ".*") {
            let _ = text.parse::<Cursor>();
        }
    }
}
