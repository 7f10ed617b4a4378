//! `GET /v1/entities/{entity}/resources/{resource}/available`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::LimitName;

use super::limit_state::LimitState;
use super::problems::{ProblemBody, Problems};
use crate::app::App;
use crate::extract::{PathParameters, QueryParameters};
use crate::problem::Problem;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AvailableQuery {
    /// Tokens of a planned call, such as `rpm:1,tpm:500`: the response says when it would be admitted.
    consume: Option<String>,
}

/// How many tokens are available.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Available {
    /// Whether the planned call would be admitted now.
    would_pass: bool,
    /// When it would be admitted; null if never.
    retry_after_seconds: Option<f64>,
    /// Available tokens by limit: the least of the entity and its parents. A negative number is debt.
    tokens: BTreeMap<String, i64>,
    /// Every limit, the entity's own first, then its parents'.
    limits: Vec<LimitState>,
}

/// Shows available tokens
///
/// Takes nothing and writes nothing.
#[utoipa::path(
    get,
    path = "/v1/entities/{entity}/resources/{resource}/available",
    tag = "leases",
    params(
        ("entity" = String, Path, description = "The entity"),
        ("resource" = String, Path, description = "The resource; write a slash in it as %2F"),
        AvailableQuery,
    ),
    responses(
        (status = 200, description = "How every limit stands", body = Available),
        (status = 422, description = "No limits are configured", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
    ),
)]
pub(crate) async fn available(
    State(app): State<Arc<App>>,
    PathParameters((entity, resource)): PathParameters<(String, String)>,
    QueryParameters(query): QueryParameters<AvailableQuery>,
) -> Result<Json<Available>, Problem> {
    let mut acquire = app.limiter.acquire(entity, resource);
    for (limit, tokens) in amounts(query.consume.as_deref().unwrap_or_default())? {
        acquire = acquire.consume(limit, tokens);
    }
    let peek = acquire.peek().await?;
    let mut tokens: BTreeMap<String, i64> = BTreeMap::new();
    for name in peek.statuses().iter().map(|status| status.limit.name()) {
        tokens.extend(peek.tokens(name).map(|left| (name.to_string(), left)));
    }
    Ok(Json(Available {
        would_pass: peek.would_pass(),
        retry_after_seconds: peek.retry_after().seconds(),
        tokens,
        limits: LimitState::all(peek.statuses()),
    }))
}

fn amounts(text: &str) -> Result<Vec<(String, u64)>, Problem> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let amounts = parts.map(|part| {
        let amount = part.split_once(':').and_then(|(name, tokens)| {
            let name = LimitName::parse(name).ok()?;
            Some((name.to_string(), tokens.parse().ok()?))
        });
        amount.ok_or_else(|| Problem::invalid("consume", part, "write LIMIT:TOKENS, separated by commas"))
    });
    amounts.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::problem::ProblemKind;

    #[test]
    fn amounts_are_pairs_separated_by_commas() {
        let expected = [("rpm".to_owned(), 1), ("tpm".to_owned(), 500)];
        assert_eq!(amounts("rpm:1,tpm:500").unwrap(), expected);
        assert!(amounts("").unwrap().is_empty());
        for text in ["rpm", "rpm:x", "rpm:-1", ":1", "r#m:1"] {
            assert_eq!(
                amounts(text).unwrap_err().kind(),
                ProblemKind::InvalidRequest,
                "{text}"
            );
        }
    }
}
