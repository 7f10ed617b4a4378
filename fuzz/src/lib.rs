//! What is fed with input that others wrote: one function per target, which must neither panic nor run long.
//!
//! `make fuzz` drives them with libFuzzer (the program in `bin/`); the test program `hostile` drives the same functions with
//! mutations of the committed corpus.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc
)]

#[cfg(feature = "services")]
mod client;
#[cfg(feature = "services")]
mod http;
mod pure;

/// A target: its name, which is the name of its folder in the corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target that is compiled in.
pub const TARGETS: &[Target] = &[
    ("items", pure::items),
    ("options", pure::options),
    ("limit", pure::limit),
    ("keys", pure::keys),
    #[cfg(feature = "services")]
    ("stream", client::stream),
    #[cfg(feature = "services")]
    ("limits_file", client::limits_file),
    #[cfg(feature = "services")]
    ("command_line", client::command_line),
    #[cfg(feature = "services")]
    ("cursor", client::cursor),
    #[cfg(feature = "services")]
    ("http", http::body),
];
