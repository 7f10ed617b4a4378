//! Lists come in pages.

use serde::Serialize;
use utoipa::ToSchema;
use zae_limiter::{Page, PageRequest};

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
    pub(super) fn new<R>(page: Page<R>) -> Self
    where
        T: From<R>,
    {
        Self {
            items: page.items.into_iter().map(T::from).collect(),
            next: page.next.map(|cursor| cursor.to_string()),
        }
    }
}

pub(super) fn request(size: Option<usize>, cursor: Option<&str>) -> Result<PageRequest, Problem> {
    let request = size.map_or_else(PageRequest::default, PageRequest::of);
    Ok(match cursor {
        Some(cursor) => request.after(cursor.parse()?),
        None => request,
    })
}
