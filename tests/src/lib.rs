//! What tests of several crates share: the local cloud and the Python peer, as processes that end with the test.
//!
//! Both are installed by `make setup` under `.venv/`; `make test` says where by `ZAE_TEST_MINISTACK` and
//! `ZAE_TEST_PEER_PYTHON`.
#![allow(clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod ministack;
mod peer;

pub use ministack::MiniStack;
pub use peer::{peer_output, peer_python};

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate is in a folder of the workspace")
}

/// A tool that `make setup` has installed: where the variable says, or in the workspace.
fn installed(variable: &str, default: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(|| workspace().join(default), PathBuf::from);
    assert!(path.exists(), "{} is not there: run make setup", path.display());
    path
}
