//! The local cloud, started by the first test that needs it and ended with the test process.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Ends the cloud when its standard input closes, which happens however the test process ends.
const KEEPER: &str = r#""$0" & cloud=$!; read -r _; kill "$cloud"; wait "$cloud""#;

pub(super) fn endpoint() -> String {
    static CLOUD: OnceLock<(String, Child)> = OnceLock::new();
    CLOUD.get_or_init(start).0.clone()
}

fn executable() -> PathBuf {
    let path = std::env::var_os("ZAE_TEST_MINISTACK").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.venv/ministack/bin/ministack"),
        PathBuf::from,
    );
    assert!(
        path.exists(),
        "there is no MiniStack at {}: run `make setup`",
        path.display()
    );
    path
}

fn start() -> (String, Child) {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let child = Command::new("sh")
        .args(["-c", KEEPER])
        .arg(executable())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("AWS_ENDPOINT_URL", &endpoint)
        .env("GATEWAY_PORT", port.to_string())
        .env("BIND_HOST", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh can be started");
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "MiniStack did not start within a minute"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    (endpoint, child)
}
