//! Tests that run the built `zae-limiter` command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/markdown.rs"]
mod markdown;

mod acquire;
mod archive;
mod audit;
mod book;
mod budgets;
#[cfg(feature = "bundled-functions")]
mod bundled;
mod clients;
mod concurrent_updates;
mod configuration;
mod confirmations;
mod entities;
mod errors;
mod foreign_trees;
mod forms;
mod interrupt;
mod limits_file;
mod local;
mod modes;
mod pages;
mod peer;
mod prices;
mod replicas;
mod scripts;
mod serve;
mod serving;
mod smoke;
mod stack;
mod table;
mod terminal;
mod terraform_table;
mod tool;
mod typescript;
mod ui;
mod ui_numbers;
mod usage;
mod versions;
mod workflows;
