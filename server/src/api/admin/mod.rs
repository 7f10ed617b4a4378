//! What needs the scope `admin`: entities, limits, usage and the audit trail.

mod audit;
mod entities;
mod limits;
mod page;
mod usage;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zae_limiter::Repository;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(entities::list, entities::create))
        .routes(routes!(entities::show, entities::update, entities::delete))
        .routes(routes!(limits::show, limits::set, limits::delete))
        .routes(routes!(usage::list))
        .routes(routes!(audit::list))
}

/// The repository, whose changes are noted as those of the caller's token.
fn repository(app: &App, caller: Caller) -> Result<Repository, Problem> {
    let repository = app.limiter.repository();
    match caller.0 {
        Some(name) => Ok(repository.acting_as(name.to_string())?),
        None => Ok(repository.clone()),
    }
}
