//! The local cloud, one process for all tests of a binary.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use zae_limiter_stack::Clients;

/// Ends the server when its own input ends, which it does when the test process is gone for whatever reason.
const GUARD: &str = r#""$1" >"$2" 2>&1 & read -r _; kill "$!"; wait"#;
const PATIENCE: Duration = Duration::from_secs(60);

static RUNNING: LazyLock<MiniStack> = LazyLock::new(MiniStack::start);

/// A running local cloud.
#[derive(Debug)]
pub(crate) struct MiniStack {
    port: u16,
    /// Holds the pipe that keeps the server alive.
    _guard: Child,
    /// Everything that the server writes.
    files: tempfile::TempDir,
}

/// Configuration that leads to the local cloud.
pub(crate) fn aws() -> SdkConfig {
    let credentials = Credentials::from_keys("test", "test", None);
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(format!("http://127.0.0.1:{}", RUNNING.port))
        .build()
}

pub(crate) fn clients() -> Clients {
    Clients::new(&aws())
}

impl MiniStack {
    fn start() -> Self {
        let program = program();
        assert!(
            program.is_file(),
            "{} is not there: run make setup",
            program.display()
        );
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let files = tempfile::tempdir().unwrap();
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&program)
            .arg(files.path().join("log"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", files.path())
            .env("TMPDIR", files.path())
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
            .env("GATEWAY_PORT", port.to_string())
            .env("BIND_HOST", "127.0.0.1")
            .current_dir(files.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let started = Self {
            port,
            _guard: guard,
            files,
        };
        let deadline = Instant::now() + PATIENCE;
        while !started.answers() {
            assert!(
                Instant::now() < deadline,
                "the local cloud does not answer: {}",
                started.log()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        started
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return false;
        };
        let request = "GET /_ministack/health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.lines().next().is_some_and(|line| line.contains("200"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.files.path().join("log")).unwrap_or_default()
    }
}

fn program() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::env::var_os("ZAE_TEST_MINISTACK")
        .map_or_else(|| workspace.join(".venv/ministack/bin/ministack"), PathBuf::from)
}
