//! Where the workspace and its tools are.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate is in a folder of the workspace")
}

/// A tool that `make setup` has installed: at the path in the variable, or in the workspace.
pub(crate) fn installed(variable: &str, default: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(|| workspace().join(default), PathBuf::from);
    assert!(path.exists(), "{} does not exist: run make setup", path.display());
    path
}

/// The Python with the packages of the server's example clients.
pub fn clients_python() -> PathBuf {
    installed("ZAE_TEST_CLIENTS_PYTHON", ".venv/clients/bin/python")
}

/// The directory with the functions' archives of the dev build, which `make demo` and `make test` pack.
pub fn dev_functions() -> PathBuf {
    let path = workspace().join("target/dev-functions");
    assert!(
        path.is_dir(),
        "{} does not exist: run make dev-functions",
        path.display()
    );
    path
}
