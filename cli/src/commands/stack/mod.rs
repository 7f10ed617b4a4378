//! The stack: planned, deployed, watched and deleted.

pub(crate) mod delete;
pub(crate) mod deploy;
pub(crate) mod drift;
mod functions;
pub(crate) mod lambda_export;
pub(crate) mod list;
mod options;
pub(crate) mod outputs;
pub(crate) mod plan;
pub(crate) mod policy;
mod progress;
pub(crate) mod status;
pub(crate) mod template;
pub(crate) mod upgrade;
mod watch;

use std::path::Path;

use zae_limiter::stack::{Code, LambdaFunction, Stack, StackOptions, StreamReader};
use zae_limiter_template::FunctionCode;

use crate::connect::Place;
use crate::context::Context;
use crate::error::{Error, Result};

/// The stack of the context, with these options.
pub(super) async fn stack(context: &Context, options: StackOptions) -> Result<Stack> {
    let aws = context.location.aws().await?;
    let code = code(&options);
    Ok(Stack::new(context.name()?, options, &aws).code(code))
}

/// The functions that read the stream of the context's table; `None` for an embedded table, which has no stream.
pub(crate) async fn stream_readers(context: &Context) -> Result<Option<Vec<StreamReader>>> {
    if context.location.embedded.is_some() {
        return Ok(None);
    }
    let stack = stack(context, StackOptions::default()).await?;
    Ok(Some(stack.stream_readers().await?))
}

/// A warning for the plan about functions whose code stays as it is because no archive was built.
fn archive_warning(options: &StackOptions) -> Option<String> {
    let Code::IfBuilt(directory) = code(options) else {
        return None;
    };
    let missing = not_built(options, &directory);
    (!missing.is_empty()).then(|| warning(&missing, options, &directory))
}

/// The functions of the stack that no archive was built or named for.
fn not_built(options: &StackOptions, directory: &Path) -> Vec<LambdaFunction> {
    let named = FunctionCode::of(options);
    let built = |function: LambdaFunction| {
        let file = format!("{function}.zip");
        let places = [
            directory.join(options.lambda_architecture().as_str()).join(&file),
            directory.join(&file),
        ];
        places.iter().any(|path| path.is_file())
    };
    let functions = options.functions().into_iter();
    functions
        .filter(|function| named.get(*function).is_none() && !built(*function))
        .collect()
}

fn warning(missing: &[LambdaFunction], options: &StackOptions, directory: &Path) -> String {
    let names: Vec<_> = missing.iter().map(|function| function.as_str()).collect();
    format!(
        "{} has no {} archive of the {}: what is deployed keeps its code; build it with `make functions ARCH={}`",
        directory.display(),
        options.lambda_architecture(),
        names.join(" and the "),
        options.lambda_architecture()
    )
}

/// The result of an operation that needs a stack. Where Terraform manages the table instead, the error says so.
async fn of_a_stack<T>(
    context: &Context,
    stack: &Stack,
    result: std::result::Result<T, zae_limiter::stack::Error>,
) -> Result<T> {
    let missing = matches!(result, Err(zae_limiter::stack::Error::NoSuchStack { .. }));
    if missing && stack.is_managed_by_terraform().await.unwrap_or_default() {
        return Err(Error::OfTerraform {
            table: stack.name().to_string(),
            place: Place::of_caller(stack, &context.location).await,
        });
    }
    Ok(result?)
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
            Some((
                function,
                Code::compiled_in(architecture, function.as_str())?.to_vec(),
            ))
        })
        .collect();
    if bundled.is_empty() {
        Code::built_in(".")
    } else {
        Code::bundled(bundled)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_function_that_was_not_built_for_the_architecture_is_named_in_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("x86_64")).unwrap();
        std::fs::write(directory.path().join("x86_64/aggregator.zip"), b"").unwrap();
        let options = StackOptions::default();
        assert_eq!(not_built(&options, directory.path()), [LambdaFunction::Archiver]);
        let arm = StackOptions::builder()
            .lambda_architecture("arm64")
            .build()
            .unwrap();
        let missing = not_built(&arm, directory.path());
        assert_eq!(missing, LambdaFunction::ALL);
        let text = warning(&missing, &arm, directory.path());
        assert!(
            text.contains("aggregator and the archiver") && text.contains("make functions ARCH=arm64"),
            "{text}"
        );
    }
}
