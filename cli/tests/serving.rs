//! A running `zae-limiter serve`, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::tool::Bench;

/// A server that ends with the test.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: String,
    /// The first line on standard output.
    pub(crate) listening: Value,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    pub(crate) fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"))
            .env_clear()
            .env("USER", "tester")
            .arg("--embedded")
            .arg(bench.path("table.db"))
            .args(["serve", "--listen", "127.0.0.1:0", "--output", "json"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            let mut log = String::new();
            child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
            panic!("{error}: {line}{log}")
        });
        assert_eq!(listening["event"], "listening");
        let address = listening["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap()
            .to_owned();
        Self {
            child,
            stdout,
            address,
            listening,
        }
    }

    /// The status and body of the response to one request.
    pub(crate) fn send(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        exchange(&self.address, method, path, token, body).unwrap()
    }

    /// The memory of the process in kilobytes, where the system tells it.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Sends a signal, waits for the end, and returns the exit code, the rest of standard output, and the log.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, String, String) {
        self.signal(signal);
        let (mut out, mut log) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (self.child.wait().unwrap().code(), out, log)
    }
}

/// The status and body of the response to one request. Nothing if there is no response.
pub(crate) fn exchange(
    address: &str,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> Option<(u16, Value)> {
    let authorization = token.map(|token| format!("Bearer {token}"));
    let headers = authorization.as_deref().map(|value| ("authorization", value));
    let response = exchange_with(address, method, path, headers.as_slice(), body).ok()?;
    Some((response.status, response.body))
}

/// A response to one request.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl Response {
    /// A field of its head.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    /// The kind of problem that it reports.
    pub(crate) fn problem(&self) -> &str {
        let kind = self.body["type"].as_str().unwrap_or_default();
        kind.rsplit(':').next().unwrap_or_default()
    }
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoResponse {
    /// Nothing listens there.
    NotSent,
    /// The connection broke: the request may have been processed.
    Lost,
}

/// The response to one request with these fields in its head.
pub(crate) fn exchange_with(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Result<Response, NoResponse> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let headers = headers.concat();
    let mut stream = TcpStream::connect(address).map_err(|_| NoResponse::NotSent)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .map_err(|_| NoResponse::Lost)?;
    let mut response = String::new();
    // What arrived before the connection was reset counts.
    let _ = stream.read_to_string(&mut response);
    parsed(&response).ok_or(NoResponse::Lost)
}

fn parsed(response: &str) -> Option<Response> {
    let (head, body) = response.split_once("\r\n\r\n")?;
    Some(Response {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_owned(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    })
}
