//! The provisioner: its binary and its permissions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binary;
mod least_privilege;
mod support;
