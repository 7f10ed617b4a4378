//! The archiver: what it writes, failures, and its binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binary;
mod failures;
mod s3;
mod stream;
