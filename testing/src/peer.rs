//! The Python system of the same name, on the same table.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter that has the peer installed.
pub fn peer_python() -> PathBuf {
    crate::tools::installed("ZAE_TEST_PEER_PYTHON", ".venv/peer/bin/python")
}

/// Runs a script with the peer at hand and returns what it printed. Blocks.
pub fn peer_output(script: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(peer_python())
        .arg(script)
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .output()
        .expect("python can be started");
    assert!(
        output.status.success(),
        "the peer failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
