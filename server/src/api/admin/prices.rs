//! `/v1/prices`: what a resource costs.

use std::collections::BTreeSet;

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::money::{MicroDollars, Prices};
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigChange, ConfigLevel, Error, LimitName, Resource};

use super::ActingRepository;
use crate::api::problems::{BodyProblems, Problems};
use crate::config_level::{level_of, resource_of};
use crate::extract::{JsonBody, QueryParameters};
use crate::problem::Problem;

/// A resource, or with none the system: every resource without prices of its own.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PricesQuery {
    /// The resource. Without one, the system.
    resource: Option<String>,
}

impl PricesQuery {
    fn level(&self) -> Result<ConfigLevel, Error> {
        let resource = self.resource.as_ref().map(Resource::parse).transpose()?;
        Ok(level_of(None, resource))
    }
}

/// Prices. Money is text such as `$2.50` or `2.5 usd`, with at most six decimal places.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PricesBody {
    /// A million input tokens.
    #[schema(example = "$2.50")]
    input: Option<String>,
    /// A million output tokens.
    #[schema(example = "$10.00")]
    output: Option<String>,
    /// A million input tokens that are read from a cache: as `input` unless set.
    #[schema(example = "$1.25")]
    cached_input: Option<String>,
    /// A million input tokens that are written to a cache: as `input` unless set.
    cache_write: Option<String>,
    /// A call, besides its tokens.
    per_call: Option<String>,
    /// Output tokens expected of a request that does not limit them.
    default_output: Option<u64>,
    /// The most output tokens of the model.
    #[schema(example = 16_384)]
    max_output: Option<u64>,
    /// The limit that counts money, in millionths of a dollar: `usd` unless set.
    #[schema(example = "usd")]
    money_limit: Option<String>,
    /// The limits that count tokens: `tpm` unless set.
    #[schema(example = json!(["tpm"]))]
    token_limits: Option<Vec<String>>,
}

impl PricesBody {
    fn parse(self) -> Result<Prices, Problem> {
        let default = Prices::default();
        let money_limit = self.money_limit.map(LimitName::parse).transpose();
        let token_limits = self.token_limits.map(|names| {
            let names = names.into_iter().map(LimitName::parse);
            names.collect::<Result<BTreeSet<_>, _>>()
        });
        Ok(Prices {
            input: money("input", self.input.as_deref())?,
            output: money("output", self.output.as_deref())?,
            cached_input: money("cached_input", self.cached_input.as_deref())?,
            cache_write: money("cache_write", self.cache_write.as_deref())?,
            per_call: money("per_call", self.per_call.as_deref())?,
            default_output: self.default_output,
            max_output: self.max_output,
            money_limit: money_limit.map_err(Error::from)?.unwrap_or(default.money_limit),
            token_limits: token_limits
                .transpose()
                .map_err(Error::from)?
                .unwrap_or(default.token_limits),
        })
    }
}

fn money(field: &str, text: Option<&str>) -> Result<Option<MicroDollars>, Problem> {
    let parsed = text.map(str::parse::<MicroDollars>).transpose();
    parsed.map_err(|invalid| Problem::invalid(field, invalid.value(), invalid.rule()))
}

impl From<Prices> for PricesBody {
    fn from(prices: Prices) -> Self {
        let text = |price: Option<MicroDollars>| price.map(|price| price.to_string());
        let names = prices.token_limits.iter().map(ToString::to_string);
        Self {
            input: text(prices.input),
            output: text(prices.output),
            cached_input: text(prices.cached_input),
            cache_write: text(prices.cache_write),
            per_call: text(prices.per_call),
            default_output: prices.default_output,
            max_output: prices.max_output,
            money_limit: Some(prices.money_limit.to_string()),
            token_limits: Some(names.collect()),
        }
    }
}

/// What is stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredPrices {
    /// The resource; null for the system.
    resource: Option<String>,
    /// Its prices; null if it has none.
    prices: Option<PricesBody>,
}

impl StoredPrices {
    fn new(level: &ConfigLevel, record: Option<ConfigRecord>) -> Self {
        Self {
            resource: resource_of(level).map(ToString::to_string),
            prices: record.and_then(|record| record.prices).map(PricesBody::from),
        }
    }
}

/// Shows the stored prices of a resource
#[utoipa::path(
    get,
    path = "/v1/prices",
    tag = "prices",
    params(PricesQuery),
    responses((status = 200, description = "What is stored", body = StoredPrices), Problems),
)]
pub(crate) async fn show(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<PricesQuery>,
) -> Result<Json<StoredPrices>, Problem> {
    let level = query.level()?;
    let record = repository.get_config(&level).await?;
    Ok(Json(StoredPrices::new(&level, record)))
}

/// Sets the prices of a resource
///
/// In place of all that it has. Its limits stay. Calls count by them within a minute.
#[utoipa::path(
    put,
    path = "/v1/prices",
    tag = "prices",
    params(PricesQuery),
    request_body = PricesBody,
    responses(
        (status = 200, description = "What is stored now", body = StoredPrices),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn set(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<PricesQuery>,
    JsonBody(request): JsonBody<PricesBody>,
) -> Result<Json<StoredPrices>, Problem> {
    let level = query.level()?;
    let change = ConfigChange::new().prices(request.parse()?);
    let record = repository.set_config(&level, change).await?;
    Ok(Json(StoredPrices::new(&level, Some(record))))
}

/// Deletes the prices of a resource
///
/// Its limits stay. The prices of the system apply from then on, if it has any.
#[utoipa::path(
    delete,
    path = "/v1/prices",
    tag = "prices",
    params(PricesQuery),
    responses((status = 204, description = "There are no prices"), Problems),
)]
pub(crate) async fn delete(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<PricesQuery>,
) -> Result<StatusCode, Problem> {
    match query.level()? {
        ConfigLevel::Resource(resource) => {
            repository.delete_prices(&resource).await?;
        }
        level => {
            let record = repository.get_config(&level).await?;
            if record.is_some_and(|record| record.prices.is_some()) {
                let change = ConfigChange::new().without_prices();
                repository.set_config(&level, change).await?;
            }
        }
    }
    Ok(StatusCode::NO_CONTENT)
}
