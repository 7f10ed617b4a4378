//! The `zae-limiter` command as its users meet it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acquire;
mod archive;
mod audit;
#[cfg(feature = "bundled-functions")]
mod bundled;
mod configuration;
mod entities;
mod errors;
mod forms;
mod interrupt;
mod limits_file;
mod local;
mod pages;
mod stack;
mod terminal;
mod tool;
mod usage;
mod versions;
mod workflows;
