//! The Python peer (`zae-limiter` 0.9.1) and this library on one table, at scale.
//!
//! `make interop` runs it long; `make test` runs the same in seconds. See docs/reliability.md.

mod aggregation;
mod traffic;
mod vectors;

use std::path::PathBuf;

/// A script beside this file.
fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peer")
        .join(name)
}

/// True for `make interop`.
fn long() -> bool {
    std::env::var("ZAE_INTEROP").is_ok_and(|length| length == "long")
}
