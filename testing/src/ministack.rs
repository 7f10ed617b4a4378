//! The local cloud: MiniStack, on a free port of this machine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;

/// Ends the server when its own input ends, which it does when the test process is gone for whatever reason.
const GUARD: &str = r#""$1" >"$2" 2>&1 & read -r _; kill "$!"; wait"#;
const START_TIMEOUT: Duration = Duration::from_secs(60);

static SHARED: LazyLock<MiniStack> = LazyLock::new(MiniStack::start);

/// A running local cloud. It ends when it is dropped, or with the test process.
#[derive(Debug)]
pub struct MiniStack {
    port: u16,
    /// Holds the pipe that keeps the server alive.
    guard: Child,
    /// Everything that the server writes.
    files: tempfile::TempDir,
}

impl MiniStack {
    /// The one that all tests of a binary share; started by the first that asks.
    pub fn shared() -> &'static Self {
        &SHARED
    }

    /// Starts one of its own.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with further settings in its environment, such as `AUTH=true`.
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let program = crate::tools::installed("ZAE_TEST_MINISTACK", ".venv/ministack/bin/ministack");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        drop(listener);
        let files = tempfile::tempdir().expect("a temporary directory");
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
            .envs(settings.iter().copied())
            .current_dir(files.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh can be started");
        let started = Self { port, guard, files };
        let deadline = Instant::now() + START_TIMEOUT;
        while !started.responds() {
            assert!(
                Instant::now() < deadline,
                "the local cloud does not respond: {}",
                started.log()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        started
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Configuration that leads to it.
    pub fn aws(&self) -> SdkConfig {
        let credentials = Credentials::from_keys("test", "test", None);
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(self.endpoint())
            .build()
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.files.path().join("log")).unwrap_or_default()
    }

    /// Creates a table from the body of a `CreateTable` request, such as [`create_table`](crate::stream::create_table).
    pub fn create_table(&self, request: &serde_json::Value) {
        let body = request.to_string();
        let credential = "test/20260131/us-east-1/dynamodb/aws4_request";
        let request = format!(
            "POST / HTTP/1.0\r\nHost: 127.0.0.1\r\nX-Amz-Target: DynamoDB_20120810.CreateTable\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0\r\n\
             Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let response = self.exchange(&request).expect("the local cloud responds");
        assert!(is_success(&response), "{response}");
    }

    fn responds(&self) -> bool {
        let request = "GET /_ministack/health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
        self.exchange(request).is_ok_and(|response| is_success(&response))
    }

    fn exchange(&self, request: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(request.as_bytes())?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    }
}

fn is_success(response: &str) -> bool {
    response.lines().next().is_some_and(|line| line.contains(" 200"))
}

impl Drop for MiniStack {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
