//! Requests that look: parse, load, show.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use zae_limiter::usage::WindowKind;
use zae_limiter::{EntityId, Error, PageRequest, Resource};

use super::access::Visitor;
use super::failure::Failure;
use super::page::Nav;
use super::params::Params;
use super::respond::{fail, respond};
use super::url::Url;
use super::{Ui, access, load, view};

type Looking = (State<Arc<Ui>>, Extension<Visitor>, Query<Params>);

/// Exports have more rows than pages.
fn rows(params: &Params) -> usize {
    match params.get("export") {
        Some(_) => PageRequest::MAX_SIZE - 1,
        None => load::PAGE,
    }
}

/// Shows what the handler makes, or why its parameters cannot be used.
macro_rules! or_fail {
    ($ui:expr, $visitor:expr, $nav:expr, $title:expr, $parsed:expr) => {
        match $parsed {
            Ok(parsed) => parsed,
            Err(failure) => return fail($ui, $visitor, $nav, $title, &Failure::from(failure)),
        }
    };
}

pub(crate) async fn overview((State(ui), Extension(visitor), Query(params)): Looking) -> Response {
    let kind = params.window(WindowKind::Daily);
    let kind = or_fail!(&ui, &visitor, Nav::Overview, "Overview", kind);
    let data = load::overview(&ui, kind).await;
    respond(&ui, &visitor, &params, &view::overview(&data))
}

pub(crate) async fn entities((State(ui), Extension(visitor), Query(params)): Looking) -> Response {
    let list = load::entity_list(&ui, &params, rows(&params)).await;
    // A whole id leads to its page at once.
    let only = match list.as_ref().map(|list| &list.rows[..]) {
        Ok([only]) if params.get("export").is_none() => Some(&only.id),
        _ => None,
    };
    if let Some(id) = only.filter(|id| params.get("prefix") == Some(id.as_str())) {
        return Redirect::to(&Url::entity(id).to_string()).into_response();
    }
    respond(&ui, &visitor, &params, &view::entities(&params, &list))
}

pub(crate) async fn entity(looking: Looking, Path(id): Path<String>) -> Response {
    let (State(ui), Extension(visitor), Query(params)) = looking;
    let id = or_fail!(
        &ui,
        &visitor,
        Nav::Entities,
        "Entity",
        EntityId::parse(id).map_err(Error::from)
    );
    let window = or_fail!(
        &ui,
        &visitor,
        Nav::Entities,
        "Entity",
        params.window(WindowKind::Hourly)
    );
    let resource = or_fail!(&ui, &visitor, Nav::Entities, "Entity", params.resource());
    let data = load::entity_page(&ui, id, resource, window).await;
    respond(&ui, &visitor, &params, &view::entity(&data, ui.options.edit))
}

pub(crate) async fn children(looking: Looking, Path(id): Path<String>) -> Response {
    let (State(ui), Extension(visitor), Query(params)) = looking;
    let id = or_fail!(
        &ui,
        &visitor,
        Nav::Entities,
        "Children",
        EntityId::parse(id).map_err(Error::from)
    );
    let cursor = or_fail!(&ui, &visitor, Nav::Entities, "Children", params.cursor());
    let request = PageRequest::new(rows(&params));
    let request = match cursor {
        Some(cursor) => request.after(cursor),
        None => request,
    };
    let page = ui.app.limiter.repository().list_children(&id, &request).await;
    let page = page.map_err(Failure::from);
    respond(&ui, &visitor, &params, &view::children(&id, &params, &page))
}

pub(crate) async fn bucket(looking: Looking, Path((entity, resource)): Path<(String, String)>) -> Response {
    let (State(ui), Extension(visitor), Query(params)) = looking;
    let title = "Bucket";
    let entity = EntityId::parse(entity).map_err(Error::from);
    let entity = or_fail!(&ui, &visitor, Nav::Entities, title, entity);
    let resource = Resource::parse(resource).map_err(Error::from);
    let resource = or_fail!(&ui, &visitor, Nav::Entities, title, resource);
    let data = load::live_bucket(&ui, &entity, &resource).await;
    let edit = Url::to("/ui/limits/edit")
        .with("entity", &entity)
        .with("resource", &resource);
    let view = view::bucket(
        &format!("{entity} on {resource}"),
        &Url::bucket(&entity, &resource),
        &Url::bucket_events(&entity, &resource),
        &data,
        ui.options.edit.then_some(&edit),
    );
    respond(&ui, &visitor, &params, &view)
}

pub(crate) async fn resources((State(ui), Extension(visitor), Query(params)): Looking) -> Response {
    let named = or_fail!(&ui, &visitor, Nav::Resources, "Resources", params.resource());
    if let Some(resource) = named {
        return Redirect::to(&Url::resource(&resource).to_string()).into_response();
    }
    let known = load::known_resources(ui.app.limiter.repository()).await;
    respond(&ui, &visitor, &params, &view::resources(&known))
}

pub(crate) async fn resource(looking: Looking, Path(name): Path<String>) -> Response {
    let (State(ui), Extension(visitor), Query(params)) = looking;
    let name = Resource::parse(name).map_err(Error::from);
    let name = or_fail!(&ui, &visitor, Nav::Resources, "Resource", name);
    let window = params.window(WindowKind::Hourly);
    let window = or_fail!(&ui, &visitor, Nav::Resources, "Resource", window);
    let data = load::resource_page(&ui, name, window).await;
    respond(&ui, &visitor, &params, &view::resource(&data, ui.options.edit))
}

pub(crate) async fn limits((State(ui), Extension(visitor), Query(params)): Looking) -> Response {
    let tree = load::limits_tree(&ui, &params, rows(&params)).await;
    respond(
        &ui,
        &visitor,
        &params,
        &view::limits(&params, &tree, ui.options.edit),
    )
}

pub(crate) async fn usage((State(ui), Extension(visitor), Query(params)): Looking) -> Response {
    let (nav, title) = (Nav::Usage, "Usage");
    let repository = ui.app.limiter.repository();
    let window = or_fail!(&ui, &visitor, nav, title, params.window(WindowKind::Hourly));
    let entity = or_fail!(&ui, &visitor, nav, title, params.entity());
    let resource = or_fail!(&ui, &visitor, nav, title, params.resource());
    let from = or_fail!(&ui, &visitor, nav, title, params.time("from"));
    let until = or_fail!(&ui, &visitor, nav, title, params.time("until"));
    let at = or_fail!(&ui, &visitor, nav, title, params.time("at"));
    let cursor = or_fail!(&ui, &visitor, nav, title, params.cursor());
    let form = view::UsageForm {
        params: &params,
        window,
    };
    let Some(resource) = resource else {
        let known = load::known_resources(repository).await.map(|known| known.names);
        return respond(&ui, &visitor, &params, &view::usage_start(&form, &known));
    };
    let now = ui.app.clock.now();
    let end = until.unwrap_or(now);
    if let Some(from) = from.filter(|from| *from > end) {
        let rule = format!("it must not be after until, which is {end}");
        let failure = Failure::invalid("from", &from.to_string(), &rule);
        return fail(&ui, &visitor, nav, title, &failure);
    }
    let windows = match (from, until) {
        (None, None) => load::windows_back(window, now),
        (from, _) => load::windows_between(window, from.unwrap_or(zae_limiter::Timestamp::MIN), end),
    };
    let view = match (entity, at) {
        (Some(entity), _) => {
            let usage = load::usage_of_entity(repository, &entity, &resource, windows).await;
            view::usage_of_entity(&form, &entity, &resource, &usage)
        }
        (None, Some(at)) => {
            let request = PageRequest::new(rows(&params));
            let request = match cursor {
                Some(cursor) => request.after(cursor),
                None => request,
            };
            let at = window.window_at(at);
            let (usage, money) = tokio::join!(
                load::usage_of_window(repository, &resource, at, &request),
                load::money_limit(repository, &resource),
            );
            let usage = usage.and_then(|usage| {
                Ok(load::UsageOfWindow {
                    money: money?,
                    ..usage
                })
            });
            view::usage_of_window(&form, &resource, at, &usage)
        }
        (None, None) => {
            let (usage, money) = tokio::join!(
                load::usage_of_resource(repository, &resource, windows),
                load::money_limit(repository, &resource),
            );
            let usage = usage.and_then(|usage| {
                Ok(load::UsageOfResource {
                    money: money?,
                    ..usage
                })
            });
            view::usage_of_resource(&form, &resource, &usage)
        }
    };
    respond(&ui, &visitor, &params, &view)
}

pub(crate) async fn audit((State(ui), Extension(visitor), Query(params)): Looking) -> Response {
    let log = load::audit_log(&ui, &params, rows(&params)).await;
    respond(&ui, &visitor, &params, &view::audit(&params, &log))
}

pub(crate) async fn not_found(State(ui): State<Arc<Ui>>) -> Response {
    let text = "Choose a view above, or look for an entity.";
    access::refuse(&ui, StatusCode::NOT_FOUND, "There is no such page", text)
}
