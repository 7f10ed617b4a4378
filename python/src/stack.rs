//! The stack: status, creation, deletion and discovery.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use serde_json::{Value, json};
use zae_limiter::StackName;
use zae_limiter::stack::{Stack, StackOptions};

use crate::call::{Call, Reply};
use crate::error::Failure;
use crate::settings::{self, Place};

async fn stack(place: &Place, options: StackOptions) -> Result<Stack, Failure> {
    let name = StackName::parse(&place.name).map_err(zae_limiter::Error::from)?;
    Ok(Stack::new(name, options, &place.sdk_config().await))
}

/// The status of the stack at a place; `None` if there is none.
#[pyfunction]
pub(crate) fn stack_status(place: String) -> Call {
    Call::new(async move {
        let place: Place = settings::read("place", &place)?;
        let status = stack(&place, StackOptions::default()).await?.status().await?;
        Ok::<_, Failure>(Reply::Data(json!(status)))
    })
}

/// Creates or updates the stack.
#[pyfunction]
pub(crate) fn ensure_stack(place: String, options: String) -> Call {
    Call::new(async move {
        let place: Place = settings::read("place", &place)?;
        let options: BTreeMap<String, Value> = settings::read("stack_options", &options)?;
        let stack = stack(&place, settings::stack_options(options)?).await?;
        let outcome = stack.ensure().await;
        let outcome = outcome.map_err(|error| Failure::creation(&place.name, &error))?;
        Ok::<_, Failure>(Reply::Data(json!({
            "changed": outcome.changed(),
            "stack_id": outcome.stack_id,
            "outputs": outcome.outputs,
            "warnings": outcome.warnings,
        })))
    })
}

/// Deletes the stack. The table and the archive stay.
#[pyfunction]
pub(crate) fn delete_stack(place: String) -> Call {
    Call::new(async move {
        let place: Place = settings::read("place", &place)?;
        let deleted = stack(&place, StackOptions::default()).await?.delete().await?;
        Ok::<_, Failure>(Reply::Data(json!({ "existed": deleted.existed })))
    })
}

/// The stacks of this project and of zae-limiter in an account and region.
#[pyfunction]
pub(crate) fn list_stacks(place: String) -> Call {
    Call::new(async move {
        let place: Place = settings::read("place", &place)?;
        let found = Stack::discover(&place.sdk_config().await).await?;
        let stacks = found.into_iter().map(|stack| {
            json!({
                "stack_name": stack.stack_name,
                "user_name": stack.user_name,
                "region": stack.region,
                "stack_status": stack.status,
                "creation_time": stack.created,
                "last_updated_time": stack.updated,
                "version": stack.version,
                "lambda_version": stack.lambda_version,
                "schema_version": stack.schema_version,
            })
        });
        Ok::<_, Failure>(Reply::Data(stacks.collect()))
    })
}
