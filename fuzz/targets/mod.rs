//! What is fed with input that others wrote: one function per target, which must neither panic nor run long.
//!
//! `make fuzz` drives them with libFuzzer (`tests/examples/fuzz.rs`); the tests in `tests/tests/hostile` drive the same functions
//! with mutations of the committed corpus.

mod client;
mod http;
mod pure;

/// A target: its name, which is the name of its folder in the corpus, and its function.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Every target.
pub(crate) const TARGETS: &[Target] = &[
    ("items", pure::items),
    ("options", pure::options),
    ("limit", pure::limit),
    ("money", pure::money),
    ("keys", pure::keys),
    ("stream", client::stream),
    ("limits_file", client::limits_file),
    ("prices", client::prices),
    ("command_line", client::command_line),
    ("cursor", client::cursor),
    ("http", http::body),
    ("http_query", http::query),
];
