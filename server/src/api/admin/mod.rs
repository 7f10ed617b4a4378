//! What needs the scope `admin`: entities, limits, usage and the audit trail.

mod audit;
mod bucket;
mod entities;
mod limits;
mod mode;
mod page;
mod prices;
mod usage;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
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
        .routes(routes!(mode::show, mode::set, mode::delete))
        .routes(routes!(mode::refresh))
        .routes(routes!(bucket::top_up))
        .routes(routes!(bucket::reset))
        .routes(routes!(prices::show, prices::set, prices::delete))
        .routes(routes!(usage::list))
        .routes(routes!(audit::list))
}

/// The repository, whose changes are noted as those of the caller's token.
#[derive(Debug)]
pub(crate) struct ActingRepository(Repository);

impl FromRequestParts<Arc<App>> for ActingRepository {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Caller(caller) = Caller::from_request_parts(parts, app).await?;
        let repository = app.limiter.repository();
        Ok(Self(match caller {
            Some(name) => repository.acting_as(name.to_string())?,
            None => repository.clone(),
        }))
    }
}
