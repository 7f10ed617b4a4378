//! The reconciler: on recorded responses of AWS, and on the local cloud.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod build_script;
mod local_cloud;
mod recorded;
mod support;
