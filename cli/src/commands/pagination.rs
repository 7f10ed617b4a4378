//! Reading all pages of a list, up to an optional limit.

use std::future::Future;

use serde::Serialize;
use zae_limiter::PageRequest;
use zae_limiter::pagination::Page;

/// The items of a list.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Collected<T> {
    pub(crate) items: Vec<T>,
    /// Whether there are more items than the limit allowed.
    pub(crate) truncated: bool,
}

/// Reads pages until `max` items pass the `keep` filter or the list ends.
pub(crate) async fn collect<T, Fetched>(
    max: Option<usize>,
    fetch: impl Fn(PageRequest) -> Fetched,
    keep: impl Fn(&T) -> bool,
) -> zae_limiter::Result<Collected<T>>
where
    Fetched: Future<Output = zae_limiter::Result<Page<T>>>,
{
    let max = max.unwrap_or(usize::MAX);
    // One more than the limit, to know whether there are more.
    let size = max.saturating_add(1).min(PageRequest::MAX_SIZE);
    let mut items = vec![];
    let mut request = PageRequest::new(size);
    loop {
        let page = fetch(request).await?;
        items.extend(page.items.into_iter().filter(&keep));
        if items.len() > max {
            items.truncate(max);
            return Ok(Collected {
                items,
                truncated: true,
            });
        }
        match page.next {
            Some(cursor) => request = PageRequest::new(size).after(cursor),
            None => {
                return Ok(Collected {
                    items,
                    truncated: false,
                });
            }
        }
    }
}

/// The last line of a list: "3 entities", "1 entity".
pub(crate) fn total(count: usize, singular: &str, plural: &str, truncated: bool) -> String {
    let noun = if count == 1 { singular } else { plural };
    let more = if truncated {
        " (more exist; raise --limit)"
    } else {
        ""
    };
    let count = crate::output::grouped(i128::try_from(count).unwrap_or(i128::MAX));
    format!("{count} {noun}{more}")
}
