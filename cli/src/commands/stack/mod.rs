//! The stack: planned, deployed, watched and deleted.

mod bundled;
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

use zae_limiter::stack::{Code, LambdaFunction, Stack, StackOptions, StreamReader};

use crate::context::Context;
use crate::error::Result;

/// The stack of the context, with these options.
async fn stack(context: &Context, options: StackOptions) -> Result<Stack> {
    let aws = context.location.aws().await?;
    let code = code(&options);
    Ok(Stack::new(context.name()?, options, &aws).code(code))
}

/// The functions that read the stream of the context's table. Nothing if the stack cannot be read: not every table has one.
pub(crate) async fn stream_readers(context: &Context) -> Option<Vec<StreamReader>> {
    let stack = stack(context, StackOptions::default()).await.ok()?;
    stack.stream_readers().await.ok()
}

/// Archives that are part of this command, or that a build has left here, unless the options say where they are.
fn code(options: &StackOptions) -> Code {
    if options.code_directory().is_some() {
        return Code::AsDeployed;
    }
    let architecture = options.lambda_architecture().as_str();
    let bundled: Vec<_> = LambdaFunction::ALL
        .into_iter()
        .filter_map(|function| {
            let archive = bundled::archive(architecture, function.as_str())?;
            Some((function, archive.to_vec()))
        })
        .collect();
    if bundled.is_empty() {
        Code::built_in(".")
    } else {
        Code::bundled(bundled)
    }
}
