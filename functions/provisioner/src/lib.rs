//! Limits files as resources: CloudFormation's `Custom::ZaeLimiterLimits`, and Terraform's `aws_lambda_invocation`.
//!
//! A request carries a limits file, and the function applies it as `zae-limiter limits apply` does. CloudFormation gets its
//! response at a pre-signed URL; a direct invocation gets it as the invocation's result.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod callback;
mod file;
mod principal;
mod provisioner;
mod request;

pub use callback::{Callback, Undelivered};
pub use file::limits_file;
pub use provisioner::{InvocationError, Provisioner, RESERVE};
pub use request::{InvalidRequest, Request, RequestType};
