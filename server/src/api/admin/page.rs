//! Lists come in pages.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;
use zae_limiter::PageRequest;
use zae_limiter::pagination::Page;

use crate::problem::Problem;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageOf<T> {
    /// The items.
    items: Vec<T>,
    /// The `cursor` of the next page; null if this is the last.
    next: Option<String>,
}

impl<T> PageOf<T> {
    fn new<R>(page: Page<R>) -> Self
    where
        T: From<R>,
    {
        Self {
            items: page.items.into_iter().map(T::from).collect(),
            next: page.next.map(|cursor| cursor.to_string()),
        }
    }
}

/// Reads a page and responds with it.
pub(super) async fn respond<R, T: From<R>>(
    size: Option<usize>,
    cursor: Option<&str>,
    read: impl AsyncFnOnce(&PageRequest) -> zae_limiter::Result<Page<R>>,
) -> Result<Json<PageOf<T>>, Problem> {
    let page = read(&request(size, cursor)?).await?;
    Ok(Json(PageOf::new(page)))
}

pub(super) fn request(size: Option<usize>, cursor: Option<&str>) -> Result<PageRequest, Problem> {
    let request = size.map_or_else(PageRequest::default, PageRequest::new);
    Ok(match cursor {
        Some(cursor) => request.after(cursor.parse()?),
        None => request,
    })
}
