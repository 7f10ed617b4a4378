//! A view as a response: a page, or the export of one of its tables.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::access::Visitor;
use super::failure::Failure;
use super::page::{Nav, Section, View};
use super::params::Params;
use super::url::Url;
use super::{Ui, access};

/// The page, or the table that `export` names, such as `limits.csv`.
pub(crate) fn respond(ui: &Ui, visitor: &Visitor, params: &Params, view: &View) -> Response {
    let Some(name) = params.get("export") else {
        return ui.frame(Some(visitor)).document(view).into_response();
    };
    let table = name
        .split_once('.')
        .and_then(|(id, format)| Some((view.find_table(id)?, format)));
    match table {
        Some((table, "csv")) => {
            let file = format!("attachment; filename=\"{name}\"");
            let headers = [
                (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
                (header::CONTENT_DISPOSITION, file),
            ];
            (headers, table.to_csv()).into_response()
        }
        Some((table, "json")) => axum::Json(table.to_json()).into_response(),
        _ => no_export(ui, view),
    }
}

/// Why there is nothing to export. Programs must be able to tell an outage from a wrong address.
fn no_export(ui: &Ui, view: &View) -> Response {
    let Some(failure) = view.failure() else {
        let text = "The address names no table of this page.";
        return access::refuse(ui, StatusCode::NOT_FOUND, "There is no such export", text);
    };
    let status = if failure.invalid {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    access::refuse(ui, status, failure.title, &failure.cause)
}

/// A page that shows only why there is no other.
pub(crate) fn fail(ui: &Ui, visitor: &Visitor, nav: Nav, title: &str, failure: &Failure) -> Response {
    let view =
        View::new(nav, title, Url::overview()).section(Section::new("Problem").markup(failure.to_html()));
    let status = if failure.invalid {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    };
    (status, ui.frame(Some(visitor)).document(&view)).into_response()
}
