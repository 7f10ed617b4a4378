//! What the client promises, through its public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acquire;
mod blocking;
mod store;
