//! Requests that change limits: form, confirmation, change. Only with `edit`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use zae_limiter::error::Conflict;
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigChange, ConfigLevel, Error, Limit, OnUnavailable, Timestamp};

use super::access::{Visitor, same};
use super::failure::Failure;
use super::form::Form;
use super::limit_form::LimitForm;
use super::load::{LevelLimits, level_limits};
use super::page::{Nav, View};
use super::params::Params;
use super::respond::fail;
use super::url::Url;
use super::view::{self, Edit};
use super::{Ui, access};
use crate::config_level::level_of;

const TITLE: &str = "Limits";

fn level(params: &Params) -> Result<ConfigLevel, Failure> {
    Ok(level_of(params.entity()?, params.resource()?))
}

/// What every request here needs: permission, and the level as it is stored.
async fn stored(ui: &Ui, visitor: &Visitor, params: &Params) -> Result<LevelLimits, Box<Response>> {
    if !ui.options.edit {
        let text = "Start zae-limiter ui or zae-limiter serve with --edit to change limits.";
        let refused = access::refuse(ui, StatusCode::FORBIDDEN, "This page is read-only", text);
        return Err(Box::new(refused));
    }
    let failed = |failure| Box::new(fail(ui, visitor, Nav::Limits, TITLE, &failure));
    let level = level(params).map_err(failed)?;
    level_limits(ui, level).await.map_err(failed)
}

/// The same for a form that was sent.
async fn stored_for(
    ui: &Ui,
    visitor: &Visitor,
    params: &Params,
    form: &Form,
) -> Result<LevelLimits, Box<Response>> {
    let stored = stored(ui, visitor, params).await?;
    check_token(ui, visitor, form)?;
    Ok(stored)
}

/// The form was sent by a page of this session.
fn check_token(ui: &Ui, visitor: &Visitor, form: &Form) -> Result<(), Box<Response>> {
    let sent = form.first("form_token").unwrap_or_default();
    if same(sent, &visitor.form_token) {
        return Ok(());
    }
    let text = "Open the form again: this one does not belong to your session.";
    let refused = access::refuse(ui, StatusCode::FORBIDDEN, "The form is out of date", text);
    Err(Box::new(refused))
}

/// The level has changed since the form was filled in: shows the form again, filled in with what is stored now.
async fn changed_meanwhile(ui: &Ui, visitor: &Visitor, params: &Params, sent: &LimitForm) -> Response {
    let stored = match stored(ui, visitor, params).await {
        Ok(stored) => stored,
        Err(response) => return *response,
    };
    let form = LimitForm::of(stored.record.as_ref());
    let wanted = sent.summary();
    let failure = Failure {
        title: "These limits have changed in the meantime",
        cause: format!(
            "The level stored {}, and now stores {}. Your change to {} was not made.",
            or_nothing(&sent.seen),
            or_nothing(&form.seen),
            or_nothing(&wanted),
        ),
        advice: "The form shows what is stored now. Change it again if you still want to.",
        invalid: false,
    };
    let again = page(
        ui,
        visitor,
        &view::edit(&of(&stored, visitor), &form, Some(&failure)),
    );
    (StatusCode::CONFLICT, again).into_response()
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

/// `GET /ui/limits/edit`.
pub(crate) async fn edit(
    State(ui): State<Arc<Ui>>,
    Extension(visitor): Extension<Visitor>,
    Query(params): Query<Params>,
) -> Response {
    let stored = match stored(&ui, &visitor, &params).await {
        Ok(stored) => stored,
        Err(response) => return *response,
    };
    let form = LimitForm::of(stored.record.as_ref());
    page(&ui, &visitor, &view::edit(&of(&stored, &visitor), &form, None))
}

/// `POST /ui/limits/review`.
pub(crate) async fn review(
    State(ui): State<Arc<Ui>>,
    Extension(visitor): Extension<Visitor>,
    Query(params): Query<Params>,
    form: Form,
) -> Response {
    let stored = match stored_for(&ui, &visitor, &params, &form).await {
        Ok(stored) => stored,
        Err(response) => return *response,
    };
    let (sent, edit) = (LimitForm::sent(&form), of(&stored, &visitor));
    if !sent.is_current(stored.record.as_ref()) {
        return changed_meanwhile(&ui, &visitor, &params, &sent).await;
    }
    match sent.until().and_then(|_| sent.limits()) {
        Ok(limits) => page(&ui, &visitor, &view::confirm(&edit, &sent, &limits)),
        Err(failure) => {
            let again = page(&ui, &visitor, &view::edit(&edit, &sent, Some(&failure)));
            (StatusCode::UNPROCESSABLE_ENTITY, again).into_response()
        }
    }
}

/// `POST /ui/limits/apply`.
pub(crate) async fn apply(
    State(ui): State<Arc<Ui>>,
    Extension(visitor): Extension<Visitor>,
    Query(params): Query<Params>,
    form: Form,
) -> Response {
    let stored = match stored_for(&ui, &visitor, &params, &form).await {
        Ok(stored) => stored,
        Err(response) => return *response,
    };
    let sent = LimitForm::sent(&form);
    let written = if sent.is_current(stored.record.as_ref()) {
        write(&ui, &visitor, &stored, &sent).await
    } else {
        Ok(false)
    };
    match written {
        Ok(true) => {
            let resource = match &stored.level {
                ConfigLevel::Entity(_, resource) => Some(resource),
                _ => None,
            };
            let tree = Url::to("/ui/limits")
                .with_some("resource", resource)
                .with("changed", 1);
            Redirect::to(&tree.to_string()).into_response()
        }
        Ok(false) => changed_meanwhile(&ui, &visitor, &params, &sent).await,
        Err(failure) => {
            let again = page(
                &ui,
                &visitor,
                &view::edit(&of(&stored, &visitor), &sent, Some(&failure)),
            );
            (StatusCode::CONFLICT, again).into_response()
        }
    }
}

/// Writes as the visitor, so that the audit event names them, and only over what was looked at. False if something else
/// is stored by now.
async fn write(ui: &Ui, visitor: &Visitor, stored: &LevelLimits, form: &LimitForm) -> Result<bool, Failure> {
    let repository = ui.app.limiter.repository();
    let repository = match &visitor.principal {
        Some(principal) => repository.acting_as(principal.to_string())?,
        None => repository.clone(),
    };
    let (limits, seen) = (form.limits()?, stored.record.as_ref());
    let written = if limits.is_empty() && form.policy.is_none() && form.until.is_empty() {
        match seen {
            Some(seen) => repository.delete_config_if_unchanged(seen).await.map(|_| ()),
            None => Ok(()),
        }
    } else {
        let change = change(limits, form.policy, form.until()?, seen);
        let level = &stored.level;
        let written = repository.set_config_if_unchanged(level, seen, change).await;
        written.map(|_| ())
    };
    match written {
        Ok(()) => Ok(true),
        Err(Error::Conflict(Conflict::ConfigChanged { .. })) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

fn change(
    limits: Vec<Limit>,
    policy: Option<OnUnavailable>,
    until: Option<Timestamp>,
    seen: Option<&ConfigRecord>,
) -> ConfigChange {
    let mut change = ConfigChange::new();
    // A level may have a policy alone. Removing all its limits is refused: delete the level instead.
    if !limits.is_empty() || seen.is_some_and(|seen| !seen.limits.is_empty()) {
        change = change.limits(limits);
    }
    if let Some(until) = until {
        change = change.until(until);
    }
    match policy {
        Some(policy) => change.on_unavailable(policy),
        None => change.without_on_unavailable(),
    }
}

fn of<'a>(stored: &'a LevelLimits, visitor: &'a Visitor) -> Edit<'a> {
    Edit {
        level: &stored.level,
        stored: stored.record.as_ref(),
        form_token: &visitor.form_token,
    }
}

fn page(ui: &Ui, visitor: &Visitor, view: &View) -> Response {
    ui.frame(Some(visitor)).document(view).into_response()
}
