//! The book is true: its blocks run, its links lead somewhere, and its tables say what the code says.

#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../../markdown.rs"]
mod markdown;

mod access_patterns;
mod athena;
mod blocks;
mod bundled;
mod clients;
mod commands;
mod contents;
mod cost;
mod figures;
mod http_api;
mod links;
mod log_queries;
mod logs;
mod pages;
mod parity;
mod readme;
mod rules;
mod rust_blocks;
mod schema_page;
mod server;
mod tables;
mod typescript;
