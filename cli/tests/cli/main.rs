//! The `zae-limiter` command as its users meet it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acquire;
mod archive;
mod audit;
mod configuration;
mod entities;
mod errors;
mod limits_file;
mod local;
mod pages;
mod stack;
mod terminal;
mod tool;
mod usage;
mod versions;
