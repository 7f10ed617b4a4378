//! What stream records mean, and how they come together.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

mod groups;
mod progress;
mod reading;
mod refusals;
