//! The health of the stack, for the overview of `serve` and `ui`.

use zae_limiter::stack::{Health, Stack, StackOptions};
use zae_limiter_server::{StackHealth, UiOptions};

use crate::commands::stack;
use crate::connect::{Place, TableLocation};
use crate::context::Context;
use crate::error::Result;

/// Lets the overview ask for the health of the context's stack, or say that a table in a file has none.
pub(super) async fn report(options: UiOptions, context: &Context) -> Result<UiOptions> {
    if context.location.embedded.is_some() {
        return Ok(options.without_stack());
    }
    let stack = stack::stack(context, StackOptions::default()).await?;
    let location = context.location.clone();
    Ok(options.stack_health(move || health(stack.clone(), location.clone())))
}

async fn health(stack: Stack, location: TableLocation) -> std::result::Result<StackHealth, String> {
    let status = stack.status().await.map_err(|error| error.to_string())?;
    let Some(status) = status else {
        return Err(format!(
            "there is no stack {} in {}; deploy it, or the table belongs to Terraform",
            stack.name(),
            Place::of_caller(&stack, &location).await
        ));
    };
    let mut facts = vec![("Created".to_owned(), status.created)];
    facts.extend(status.version.map(|version| ("Release".to_owned(), version)));
    facts.extend(status.updated.map(|updated| ("Updated".to_owned(), updated)));
    facts.extend(status.reason.map(|reason| ("Reason".to_owned(), reason)));
    Ok(StackHealth::new(
        status.status,
        status.health != Health::Failed,
        facts,
    ))
}
