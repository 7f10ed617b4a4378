//! The template crate through its public API.

#![allow(clippy::unwrap_used, clippy::panic)]

mod any_options;
mod dashboard;
mod exports;
mod filters;
mod handlers;
mod limits;
mod linters;
mod model;
mod options;
mod policies;
mod resources;
mod rules;
mod templates;
mod terraform;
mod variants;
mod widening;
