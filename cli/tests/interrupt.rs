//! Ctrl-C during a deployment.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::local::Cloud;
use crate::tool::{RunResult, result};

const OPTIONS: [&str; 2] = ["--no-aggregator", "--no-audit-archival"];

/// Stands before a local cloud and, while it is slow, tells that what is complete is still going on.
struct Slow {
    url: String,
    holds_up: Arc<AtomicBool>,
    /// The operations that it was asked for: `DescribeStacks`, `DynamoDB_20120810.GetItem`, …
    calls: Arc<Mutex<Vec<String>>>,
}

impl Slow {
    fn before(cloud: &Cloud) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let slow = Arc::new(AtomicBool::new(true));
        let (behind, is_slow) = (format!("127.0.0.1:{}", cloud.port), slow.clone());
        let calls = Arc::new(Mutex::new(vec![]));
        let noted = calls.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (behind, is_slow, noted) = (behind.clone(), is_slow.clone(), noted.clone());
                // This is about a client that disconnects in the middle.
                std::thread::spawn(move || pass_on(stream.unwrap(), &behind, &is_slow, &noted).ok());
            }
        });
        Self {
            url,
            holds_up: slow,
            calls,
        }
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

/// What a request asks for: in a header of DynamoDB's, in the form of CloudFormation's.
fn operation(head: &[String], body: &[u8]) -> String {
    let target = head.iter().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let named = key.eq_ignore_ascii_case("x-amz-target");
        named.then(|| value.trim().to_owned())
    });
    let form = String::from_utf8_lossy(body).into_owned();
    let action = form.split('&').find_map(|field| field.strip_prefix("Action="));
    target.or(action.map(str::to_owned)).unwrap_or_default()
}

/// One request and its response.
fn pass_on(
    client: TcpStream,
    behind: &str,
    slow: &AtomicBool,
    calls: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (head, body) = message(&mut reader)?;
    calls.lock().unwrap().push(operation(&head, &body));
    let mut server = TcpStream::connect(behind)?;
    server.write_all(with_length(&head, body.len()).as_bytes())?;
    server.write_all(&body)?;
    let (head, body) = message(&mut BufReader::new(server))?;
    let text = String::from_utf8_lossy(&body);
    let body = if slow.load(Ordering::SeqCst) {
        text.replace("_COMPLETE</StackStatus>", "_IN_PROGRESS</StackStatus>")
    } else {
        text.into_owned()
    };
    let mut client = client;
    client.write_all(with_length(&head, body.len()).as_bytes())?;
    client.write_all(body.as_bytes())
}

/// The lines of a head, and the body.
fn message(reader: &mut impl BufRead) -> std::io::Result<(Vec<String>, Vec<u8>)> {
    let mut head = vec![];
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        head.push(line.to_owned());
    }
    let header = |name: &str| {
        head.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

fn with_length(head: &[String], length: usize) -> String {
    let kept = head.iter().filter(|line| {
        let key = line.split(':').next().unwrap_or_default();
        !key.eq_ignore_ascii_case("content-length") && !key.eq_ignore_ascii_case("connection")
    });
    let mut lines: Vec<&str> = kept.map(String::as_str).collect();
    let length = format!("Content-Length: {length}");
    lines.extend([length.as_str(), "Connection: close", "\r\n"]);
    lines.join("\r\n")
}

fn deploy(url: &str, more: &[&str]) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"));
    command
        .env_clear()
        .args(["deploy", "-n", "demo", "--yes"])
        .args(OPTIONS)
        .args(more)
        .env("HOME", "/nonexistent")
        .env("AWS_ENDPOINT_URL", url)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
    piped.stderr(Stdio::piped()).spawn().unwrap()
}

/// Presses Ctrl-C as soon as one of these streams has a line with the sign in it, and returns how the command ended.
fn interrupted(mut child: Child, sign: &str) -> RunResult {
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let json = sign.starts_with('"');
    let watched: &mut dyn BufRead = if json { &mut stdout } else { &mut stderr };
    let mut seen = String::new();
    while !seen.contains(sign) {
        let count = watched.read_line(&mut seen).unwrap();
        assert!(count > 0, "it ended before {sign}: {seen}");
    }
    let pressed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(pressed.unwrap().success());
    let (mut out, mut err) = (String::new(), String::new());
    stdout.read_to_string(&mut out).unwrap();
    stderr.read_to_string(&mut err).unwrap();
    RunResult {
        code: child.wait().unwrap().code().unwrap_or(-1),
        stdout: out,
        stderr: err,
    }
}

#[test]
fn ctrl_c_detaches_and_the_deployment_continues() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let slow = Slow::before(&cloud);

    let left = interrupted(deploy(&slow.url, &["--output", "json"]), r#""event":"started""#).expect_exit(130);
    let last: Value = serde_json::from_str(left.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["begun"]),
        (&"detached".into(), &true.into())
    );

    // Who comes back waits for the same operation, and may leave again.
    let left = interrupted(deploy(&slow.url, &[]), "CREATE_IN_PROGRESS").expect_exit(130);
    assert!(
        left.stdout.contains(
            "detached: the operation on stack demo continues; `zae-limiter deploy -n demo` attaches to it again"
        ),
        "{left:?}"
    );
    assert!(!left.stderr.contains("error"), "{left:?}");

    slow.holds_up.store(false, Ordering::SeqCst);
    let arguments = [&["deploy", "-n", "demo", "--yes"], &OPTIONS[..]].concat();
    let attached = result(cloud.on(&arguments)).expect_exit(0);
    assert!(attached.stdout.contains("is up to date"), "{attached:?}");
    let status = result(cloud.on(&["status", "-n", "demo", "--output", "json"])).expect_exit(0);
    assert_eq!(status.json()["stack"]["status"], "CREATE_COMPLETE");
    // Those who left have not written it.
    assert_eq!(status.json()["table"]["schema_version"], "0.8.0");

    slow.calls();
    let again = deploy(&slow.url, &[]).wait_with_output().unwrap();
    assert!(again.status.success(), "{again:?}");
    let (in_table, on_stack): (Vec<_>, Vec<_>) = slow
        .calls()
        .into_iter()
        .partition(|call| call.starts_with("DynamoDB"));
    assert_eq!(on_stack, ["DescribeStacks", "GetTemplate"]);
    assert!(in_table.iter().all(|call| call.contains("Get")), "{in_table:?}");
}
