//! The Terraform module of native resources, evaluated and compared with the CloudFormation template.

#![allow(clippy::unwrap_used, clippy::panic)]

mod archives;
mod candidates;
mod cloudformation;
mod compare;
mod documents;
mod equal;
mod evaluate;
mod fields;
mod functions;
mod limits;
mod options;
mod page;
mod parts;
mod readme;
mod schema;
mod variables;
mod wrapper;
