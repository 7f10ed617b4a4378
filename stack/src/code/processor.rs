//! Code that stays while the options name another processor.

use serde_json::Value;
use zae_limiter_template::{CodeBucket, CodeLocation, LambdaFunction, StackOptions};

use super::CodeError;
use crate::deployed::Deployed;

/// The code that a function has now. It stays only if it is for the processor that the options name.
pub(super) fn kept(
    stack: &str,
    function: LambdaFunction,
    options: &StackOptions,
    deployed: Option<&Deployed>,
) -> Result<Option<CodeLocation>, CodeError> {
    let Some((deployed, code)) = deployed.and_then(|deployed| Some((deployed, deployed.code_of(function)?)))
    else {
        return Ok(None);
    };
    check(stack, function, options, deployed)?;
    Ok(Some(CodeLocation::Deployed(code)))
}

/// Refuses another processor for an object that is deployed already. Another object may be built for it.
pub(super) fn check_named(
    named: &CodeLocation,
    stack: &str,
    function: LambdaFunction,
    options: &StackOptions,
    deployed: Option<&Deployed>,
) -> Result<(), CodeError> {
    match deployed.and_then(|deployed| Some((deployed, deployed.code_of(function)?))) {
        Some((deployed, code)) if is_at(&code, named) => check(stack, function, options, deployed),
        _ => Ok(()),
    }
}

/// Whether a deployed `Code` property is this object. Options that name a key name its bucket too.
fn is_at(code: &Value, location: &CodeLocation) -> bool {
    match location {
        CodeLocation::Object {
            bucket: CodeBucket::Named(bucket),
            key,
        } => code["S3Bucket"] == bucket.as_str() && code["S3Key"] == key.as_str(),
        _ => false,
    }
}

fn check(
    stack: &str,
    function: LambdaFunction,
    options: &StackOptions,
    deployed: &Deployed,
) -> Result<(), CodeError> {
    let wanted = options.lambda_architecture();
    match deployed.architecture_of(function) {
        Some(built_for) if built_for != wanted.as_str() => Err(CodeError::ArchitectureChanged {
            function,
            stack: stack.to_owned(),
            deployed: built_for.to_owned(),
            wanted,
        }),
        _ => Ok(()),
    }
}
