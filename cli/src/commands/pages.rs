//! Lists that are read to their end, or to as many as were asked for.

use std::future::Future;

use serde::Serialize;
use zae_limiter::{Page, PageRequest};

/// Items of a list, and whether there are more.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    /// True if there are more than were asked for.
    pub(crate) truncated: bool,
}

/// Reads page after page. Items that `keep` drops do not count.
pub(crate) async fn all<T, Fetched>(
    most: Option<usize>,
    fetch: impl Fn(PageRequest) -> Fetched,
    keep: impl Fn(&T) -> bool,
) -> zae_limiter::Result<Listed<T>>
where
    Fetched: Future<Output = zae_limiter::Result<Page<T>>>,
{
    let most = most.unwrap_or(usize::MAX);
    // One more than asked for tells whether there are more.
    let size = most.saturating_add(1).min(PageRequest::MOST);
    let mut items = vec![];
    let mut request = PageRequest::of(size);
    loop {
        let page = fetch(request).await?;
        items.extend(page.items.into_iter().filter(&keep));
        if items.len() > most {
            items.truncate(most);
            return Ok(Listed {
                items,
                truncated: true,
            });
        }
        match page.next {
            Some(cursor) => request = PageRequest::of(size).after(cursor),
            None => {
                return Ok(Listed {
                    items,
                    truncated: false,
                });
            }
        }
    }
}

/// "3 entities", "1 entity", and that there are more.
pub(crate) fn total(count: usize, one: &str, many: &str, truncated: bool) -> String {
    let noun = if count == 1 { one } else { many };
    let more = if truncated {
        " (there are more; raise --limit)"
    } else {
        ""
    };
    let count = crate::output::grouped(i128::try_from(count).unwrap_or(i128::MAX));
    format!("{count} {noun}{more}")
}
