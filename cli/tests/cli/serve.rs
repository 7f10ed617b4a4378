//! `serve`: the server as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::tool::Bench;

/// A server that ends with the test.
struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
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
        }
    }

    /// The status and body of the response to one request.
    fn send(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let authorization = token.map_or(String::new(), |token| {
            format!("authorization: Bearer {token}\r\n")
        });
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             {authorization}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Sends a signal, waits for the end, and returns the exit code, the rest of standard output, and the log.
    fn stop(mut self, signal: &str) -> (Option<i32>, String, String) {
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
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

#[test]
fn the_example_of_the_guide_works_on_a_new_file() {
    let bench = Bench::new();
    let server = Serving::start(&bench, &[]);
    let limits =
        json!({ "limits": [{ "name": "rpm", "capacity": 100 }, { "name": "tpm", "capacity": 10_000 }] });
    let (status, _) = server.send("PUT", "/v1/limits?resource=gpt-4", None, &limits);
    assert_eq!(status, 200);
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1, "tpm": 500 } });
    let (status, granted) = server.send("POST", "/v1/acquire", None, &call);
    assert_eq!(
        (status, &granted["admission"]),
        (200, &"counted".into()),
        "{granted}"
    );
    let path = format!("/v1/leases/{}/commit", granted["lease_id"].as_str().unwrap());
    let (status, committed) = server.send("POST", &path, None, &json!({ "adjust": { "tpm": 120 } }));
    assert_eq!(
        (status, &committed["consumed"]["tpm"]),
        (200, &620.into()),
        "{committed}"
    );
}

#[test]
fn sigterm_and_ctrl_c_commit_leases_before_the_process_ends() {
    for signal in ["-TERM", "-INT"] {
        let bench = Bench::new();
        bench.ok(&["system", "set-defaults", "-l", "tpd:1000000/day"]);
        let server = Serving::start(&bench, &[]);
        let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpd": 500_000 } });
        let (_, granted) = server.send("POST", "/v1/acquire", None, &call);
        let path = format!("/v1/leases/{}/adjust", granted["lease_id"].as_str().unwrap());
        let (status, _) = server.send("POST", &path, None, &json!({ "adjust": { "tpd": 300_000 } }));
        assert_eq!(status, 200);
        let (code, out, log) = server.stop(signal);
        assert_eq!(code, Some(0), "{out}{log}");
        let stopped: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(stopped, json!({ "event": "stopped", "committed_leases": 1 }));
        // The log is JSON lines.
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!(last["message"], "the server has stopped");
        // A day refills about a million tokens, a second about 11.
        let left = bench.json(&["available", "user-1", "gpt-4"])["limits"]["tpd"]["available"]
            .as_i64()
            .unwrap();
        assert!((200_000..300_000).contains(&left), "{left}");
    }
}

#[test]
fn tokens_come_from_a_file_and_are_required_off_the_loopback() {
    let bench = Bench::new();
    bench.ok(&["system", "set-defaults", "-l", "rpm:100"]);
    let file = bench.write("tokens.txt", "gateway acquire 0123456789abcdef\n");
    let server = Serving::start(&bench, &["--tokens", &file]);
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } });
    assert_eq!(server.send("POST", "/v1/acquire", None, &call).0, 401);
    assert_eq!(
        server
            .send("POST", "/v1/acquire", Some("0123456789abcdef"), &call)
            .0,
        200
    );
    assert_eq!(
        server
            .send("GET", "/metrics", Some("0123456789abcdef"), &Value::Null)
            .0,
        403
    );
    drop(server);

    let open = bench.run(&["serve", "--listen", "0.0.0.0:0"]).expect_exit(2);
    assert!(
        open.stderr
            .contains("without tokens the server only listens on loopback addresses"),
        "{open:?}"
    );
    let wrong = bench.write("wrong.txt", "gateway 0123456789abcdef");
    let wrong = bench.run(&["serve", "--tokens", &wrong]).expect_exit(2);
    assert!(
        wrong.stderr.contains("line 1 of the tokens is invalid"),
        "{wrong:?}"
    );
    bench
        .run(&["serve", "--tokens", "/nonexistent/tokens"])
        .expect_exit(1);
}
