//! `ui`: the page as a process, with the numbers of the command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::tool::Bench;

/// A page that ends with the test.
pub(crate) struct Looking {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) listening: Value,
}

impl Drop for Looking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Looking {
    pub(crate) fn start(bench: &Bench, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"))
            .env_clear()
            .env("USER", "tester")
            .envs(variables.iter().copied())
            .arg("--embedded")
            .arg(bench.path("table.db"))
            .args(["ui", "--output", "json"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self {
            child,
            stdout,
            listening: serde_json::from_str(&line).unwrap(),
        }
    }

    /// The address of the server, and the path that lets a browser in.
    fn address(&self) -> (&str, &str) {
        let url = self.listening["url"].as_str().unwrap();
        let rest = url.strip_prefix("http://").unwrap();
        rest.split_at(rest.find('/').unwrap())
    }

    fn get(&self, path: &str, cookie: &str) -> Response {
        let mut stream = TcpStream::connect(self.address().0).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Response {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Uses the token and returns the cookie.
    fn sign_in(&self) -> String {
        let response = self.get(self.address().1, "");
        assert_eq!(response.status, 303, "{}", response.head);
        let start = response.head.find("set-cookie: ").unwrap() + "set-cookie: ".len();
        response.head[start..].split(';').next().unwrap().to_owned()
    }

    fn rows(&self, path: &str, cookie: &str) -> Vec<Value> {
        let response = self.get(path, cookie);
        assert_eq!(response.status, 200, "{}", response.body);
        let body: Value = serde_json::from_str(&response.body).unwrap();
        body["items"].as_array().unwrap().clone()
    }
}

/// A table with limits that refill within a day, so that a test takes no tokens back.
fn filled() -> Bench {
    let bench = Bench::new();
    for arguments in [
        &["system", "set-defaults", "-l", "rpd:1000/day"][..],
        &[
            "resource",
            "set-defaults",
            "gpt-4",
            "-l",
            "rpd:500/day",
            "-l",
            "tpd:90000/day",
        ],
        &["entity", "create", "org"],
        &["entity", "create", "user-1", "--parent", "org"],
        &["acquire", "user-1", "gpt-4", "-c", "rpd:120", "-c", "tpd:40000"],
    ] {
        bench.ok(arguments);
    }
    bench
}

#[test]
fn the_page_has_the_numbers_of_the_command() {
    let bench = filled();
    let available = bench.json(&["available", "user-1", "gpt-4"]);
    let audit = bench.json(&["audit", "list", "-e", "user-1"]);
    let page = Looking::start(&bench, &[], &[]);
    let cookie = page.sign_in();
    let limits = page.rows("/ui/entities/user-1?export=limits.json", &cookie);
    let shown = limits.iter().filter(|row| row["resource"] == "gpt-4");
    let expected = available["levels"].as_array().unwrap();
    assert_eq!(shown.clone().count(), expected.len());
    for (row, status) in shown.zip(expected) {
        for field in ["limit_name", "capacity", "burst"] {
            assert_eq!(row[field], status[field], "{row}");
        }
        // Tokens refill while the test runs, at most one in 0.96 s.
        let difference = row["available"].as_i64().unwrap() - status["available"].as_i64().unwrap();
        assert!(difference >= 0, "{row} {status}");
        assert_eq!(row["from"], "resource");
    }
    let events = page.rows("/ui/audit?entity=user-1&export=audit.json", &cookie);
    let listed = audit["events"].as_array().unwrap();
    let ids = |rows: &[Value]| rows.iter().map(|row| row["event_id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&events), ids(listed));
}

#[test]
fn the_address_works_once_and_nothing_is_written_without_edit() {
    let bench = filled();
    let page = Looking::start(&bench, &[], &[]);
    assert_eq!(page.listening["edit"], false);
    assert_eq!(page.get("/ui", "").status, 303);
    for path in ["/v1/limits", "/v1/entities", "/metrics"] {
        assert_eq!(page.get(path, "").status, 404, "{path}");
    }
    let cookie = page.sign_in();
    let overview = page.get("/ui", &cookie);
    assert_eq!(overview.status, 200);
    assert!(overview.body.contains("None: embedded file"), "{}", overview.body);
    assert_eq!(page.get(page.address().1, "").status, 403, "used already");
    assert_eq!(page.get("/ui/limits/edit", &cookie).status, 403);
    let editing = {
        drop(page);
        Looking::start(&bench, &[], &["--edit"])
    };
    let cookie = editing.sign_in();
    assert_eq!(editing.get("/ui/limits/edit", &cookie).status, 200);
}

#[test]
fn a_remote_host_is_told_the_ssh_forward_and_sigterm_ends_it() {
    let bench = filled();
    let connection = [("SSH_CONNECTION", "198.51.100.7 51312 203.0.113.9 22")];
    let mut page = Looking::start(&bench, &connection, &[]);
    let port = page.address().0.rsplit(':').next().unwrap();
    let forward = format!("ssh -N -L {port}:127.0.0.1:{port} tester@203.0.113.9");
    assert_eq!(page.listening["ssh_forward"], forward);
    let sent = Command::new("kill")
        .args(["-TERM", &page.child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let mut last = String::new();
    page.stdout.read_to_string(&mut last).unwrap();
    let stopped: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(stopped["event"], "stopped");
}
