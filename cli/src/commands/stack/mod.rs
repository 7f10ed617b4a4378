//! The stack: planned, deployed, watched and deleted.

pub(crate) mod delete;
pub(crate) mod deploy;
pub(crate) mod drift;
pub(crate) mod lambda_export;
pub(crate) mod list;
mod options;
pub(crate) mod plan;
mod progress;
pub(crate) mod status;
pub(crate) mod template;
pub(crate) mod upgrade;
mod watch;

use zae_limiter::stack::{Code, Stack, StackOptions};

use crate::context::Context;
use crate::error::Result;

/// The stack of the context, with these options.
async fn stack(context: &Context, options: StackOptions) -> Result<Stack> {
    let aws = context.place.aws().await?;
    let code = code(&options);
    Ok(Stack::new(context.name()?, options, &aws).code(code))
}

/// Archives that a build has left here, unless the options say where they are.
fn code(options: &StackOptions) -> Code {
    if options.code_directory.is_some() {
        Code::AsDeployed
    } else {
        Code::built_in(".")
    }
}
