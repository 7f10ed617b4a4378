//! `serve`: the server as a process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::serving::{Serving, exchange};
use crate::tool::Bench;

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
fn limits_change_on_the_page_only_with_edit() {
    for (arguments, expected) in [(&[][..], 403), (&["--edit"][..], 200)] {
        let bench = Bench::new();
        let server = Serving::start(&bench, arguments);
        let (status, _) = server.send("GET", "/ui", None, &Value::Null);
        assert_eq!(status, 200);
        let (status, _) = server.send("GET", "/ui/limits/edit", None, &Value::Null);
        assert_eq!(status, expected, "{arguments:?}");
    }
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

/// Prints the figures: `cargo test -p zae-limiter-cli --test main half_requests -- --nocapture`.
#[test]
fn half_requests_of_strangers_cost_no_call_and_little_memory() {
    const EACH: usize = 200;
    const CALLS: usize = 100;
    let bench = Bench::new();
    bench.ok(&["system", "set-defaults", "-l", "rpm:1000000"]);
    let tokens = bench.write("tokens.txt", "gateway acquire 0123456789abcdef\n");
    let server = Serving::start(&bench, &["--tokens", &tokens]);
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "rpm": 1 } });
    let acquire = || {
        server
            .send("POST", "/v1/acquire", Some("0123456789abcdef"), &call)
            .0
    };
    assert_eq!(acquire(), 200);
    let before = server.memory();
    let body = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let starts = [
        "GET /healthz HTTP/1.1\r\nhost: loc".to_owned(),
        format!("POST /ui/login HTTP/1.1\r\n{body}"),
        format!("POST /v1/acquire HTTP/1.1\r\n{body}"),
    ];
    let held: Vec<_> = starts
        .iter()
        .cycle()
        .take(EACH * starts.len())
        .map(|start| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(start.as_bytes()).unwrap();
            stream
        })
        .collect();
    let lost = (0..CALLS).filter(|_| acquire() != 200).count();
    let kilobytes = server
        .memory()
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before));
    eprintln!(
        "{} connections held, {kilobytes:?} KB more memory, {lost} of {CALLS} calls lost",
        held.len()
    );
    assert_eq!(lost, 0);
    // The largest head is 32 KiB, and these are far from it.
    let most = u64::try_from(held.len() * 32).unwrap();
    assert!(
        kilobytes.is_none_or(|kilobytes| kilobytes < most),
        "{kilobytes:?}"
    );
}

/// What one client of a server that is told to stop got from it.
#[derive(Debug, Default)]
struct Load {
    leases: u64,
    tokens: i64,
}

/// Acquires leases and adjusts every second one until the server does not respond any more.
fn load(address: &str, granted: &AtomicU64) -> Load {
    let mut load = Load::default();
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tokens": 10 } });
    while let Some((status, lease)) = exchange(address, "POST", "/v1/acquire", None, &call) {
        assert_eq!(status, 200, "{lease}");
        load.leases += 1;
        load.tokens += 10;
        granted.fetch_add(1, Ordering::Relaxed);
        if load.leases % 2 == 0 {
            let path = format!("/v1/leases/{}/adjust", lease["lease_id"].as_str().unwrap());
            let adjust = json!({ "adjust": { "tokens": 7 } });
            match exchange(address, "POST", &path, None, &adjust) {
                Some((200, _)) => load.tokens += 7,
                Some(other) => panic!("{other:?}"),
                None => break,
            }
        }
    }
    load
}

#[test]
fn sigterm_under_load_settles_every_lease_that_a_client_got() {
    const CAPACITY: i64 = 1_000_000;
    let bench = Bench::new();
    // One token a day comes back: what is left says exactly what was written.
    bench.ok(&["system", "set-defaults", "-l", "tokens:1000000/day@1"]);
    let server = Serving::start(&bench, &[]);
    let granted = AtomicU64::new(0);
    let address = server.address.clone();
    let (loads, (code, out, log)) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| load(&address, &granted))).collect();
        while granted.load(Ordering::Relaxed) < 100
            && !clients.iter().any(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let stopped = server.stop("-TERM");
        let loads: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (loads, stopped)
    });
    assert_eq!(code, Some(0), "{out}{log}");
    let leases: u64 = loads.iter().map(|load| load.leases).sum();
    let tokens: i64 = loads.iter().map(|load| load.tokens).sum();
    assert!(leases >= 100, "{loads:?}");
    let stopped: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(stopped["committed_leases"], leases, "{log}");
    let left = &bench.json(&["available", "user-1", "gpt-4"])["limits"]["tokens"]["available"];
    assert_eq!(left, CAPACITY - tokens);
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

const MAPPING: &str = "
domains:
  gateway:
    - {match: {user: '*'}, entity: '{user}', resource: api, limit: rpm}
";

#[test]
fn check_reports_what_the_files_have_or_what_is_wrong_with_them() {
    let bench = Bench::new();
    let mapping = bench.write("mapping.yaml", MAPPING);
    let tokens = bench.write("tokens.txt", "gateway acquire 0123456789abcdef\n");
    let arguments = [
        "serve",
        "--envoy-mapping",
        &mapping,
        "--tokens",
        &tokens,
        "--check",
    ];
    assert_eq!(
        bench.json(&arguments),
        json!({ "tokens": 1, "tls": false, "domains": ["gateway"], "mappings": 1 })
    );
    assert!(
        bench
            .ok(&arguments)
            .contains("valid: 1 tokens; 1 mappings of gateway")
    );
    assert!(!bench.path("table.db").exists(), "nothing is opened");

    let wrong = bench.write("wrong.yaml", &MAPPING.replace("'{user}'", "'{usr}'"));
    let wrong = bench
        .run(&["serve", "--envoy-mapping", &wrong, "--check"])
        .expect_exit(2);
    let problem = "wrong.yaml is invalid: domains.gateway[0].entity: {usr} is not a key of match";
    assert!(wrong.stderr.contains(problem), "{wrong:?}");
    let files = ["--tls-cert", &mapping, "--tls-key", &mapping];
    let wrong = bench
        .run(&[&["serve", "--check"], &files[..]].concat())
        .expect_exit(1);
    assert!(wrong.stderr.contains("cannot use the TLS file"), "{wrong:?}");
    bench
        .run(&["serve", "--check", "--tls-cert", &mapping])
        .expect_exit(2);
    bench
        .run(&["serve", "--check", "--grpc-listen", "127.0.0.1:0"])
        .expect_exit(2);
}

#[test]
fn the_service_of_envoy_has_an_address_of_its_own() {
    let bench = Bench::new();
    let mapping = bench.write("mapping.yaml", MAPPING);
    let server = Serving::start(
        &bench,
        &["--envoy-mapping", &mapping, "--grpc-listen", "127.0.0.1:0"],
    );
    let grpc = server.listening["grpc"].as_str().unwrap();
    assert_ne!(grpc, server.address);
    // The first bytes of HTTP/2 of the client, with empty settings; the server sends its own settings first.
    let mut stream = TcpStream::connect(grpc).unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "SETTINGS");
}

/// The example of the README, as it stands except for the port. The server ends with the shell.
#[test]
fn the_curl_example_of_the_readme_works_as_it_stands() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let blocks = crate::markdown::blocks(&std::fs::read_to_string(readme).unwrap());
    let example = blocks.iter().find(|block| block.text.contains("curl ")).unwrap();
    let script = example.text.replace("8080", &crate::local::free_port());
    let bin = assert_cmd::cargo::cargo_bin!("zae-limiter");
    let path = format!(
        "{}:{}",
        bin.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let bench = Bench::new();
    let output = Command::new("bash")
        .args(["-euc", &format!("trap 'kill $!; wait' EXIT\n{script}")])
        .current_dir(bench.path(""))
        .env_clear()
        .env("PATH", path)
        .env("USER", "tester")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains(r#""lease_id":""#), "{shown}{log}");
    assert!(shown.contains(r#""admission":"counted""#), "{shown}{log}");
}

/// The arguments of the command after this start of a line.
fn arguments(file: &str, start: &str) -> Vec<String> {
    let path = format!("{}/../server/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(start)).unwrap();
    let words = line.split_whitespace();
    words
        .map(|word| word.trim_matches(['"', '[', ']', ',']).to_owned())
        .collect()
}

#[test]
fn the_container_and_the_unit_start_the_server_with_arguments_that_it_has() {
    let bench = Bench::new();
    let tokens = bench.write("tokens", "gateway acquire 0123456789abcdef\n");
    let directory = tokens.strip_suffix("/tokens").unwrap();
    for (file, start) in [
        ("Containerfile", "ENTRYPOINT "),
        ("zae-limiter.service", "ExecStart="),
    ] {
        let mut arguments = arguments(file, start);
        assert!(arguments.remove(0).ends_with("zae-limiter"), "{file}");
        for argument in &mut arguments {
            *argument = argument.replace("${CREDENTIALS_DIRECTORY}", directory);
        }
        arguments.push("--check".to_owned());
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        bench.run(&arguments).expect_exit(0);
    }
}

#[test]
fn sighup_reads_the_tokens_again_and_does_not_end_the_server() {
    let bench = Bench::new();
    let tokens = bench.write("tokens.txt", "ops admin 0123456789abcdef\n");
    let server = Serving::start(&bench, &["--tokens", &tokens]);
    let status = |token| server.send("GET", "/v1/entities", Some(token), &Value::Null).0;
    assert_eq!(status("0123456789abcdef"), 200);
    bench.write("tokens.txt", "ops admin fedcba9876543210\n");
    server.signal("-HUP");
    // The signal is handled in the background.
    while status("fedcba9876543210") == 401 {
        std::thread::yield_now();
    }
    assert_eq!(status("fedcba9876543210"), 200);
    assert_eq!(status("0123456789abcdef"), 401);
    let (code, _, log) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
}

/// The files below a folder.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

#[test]
fn a_served_file_has_usage_and_an_archive_of_audit_events() {
    let bench = Bench::new();
    // An event from before the archive.
    bench.ok(&["system", "set-defaults", "-l", "tpd:1000000/day"]);
    let folder = bench.path("archive");
    let server = Serving::start(&bench, &["--archive", folder.to_str().unwrap()]);
    assert_eq!(files(&folder).len(), 1);
    let limits =
        json!({ "limits": [{ "name": "tpd", "capacity": 1_000_000, "refill_period_seconds": 86_400 }] });
    let (status, _) = server.send("PUT", "/v1/limits?resource=gpt-4", None, &limits);
    assert_eq!(status, 200);
    let call = json!({ "entity": "user-1", "resource": "gpt-4", "consume": { "tpd": 500 }, "lease_ms": 0 });
    let (status, granted) = server.send("POST", "/v1/acquire", None, &call);
    assert_eq!(status, 200, "{granted}");
    let (code, _, log) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let archived = files(&folder);
    assert_eq!(archived.len(), 2, "{archived:?}");
    for file in archived {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        assert!(
            name.starts_with("audit/year=") && name.ends_with(".jsonl.gz"),
            "{name}"
        );
    }
    let usage = bench.json(&["usage", "summary", "-r", "gpt-4", "-w", "monthly"]);
    assert_eq!(usage["limits"]["tpd"]["total"], 500, "{usage}");
    // A stack archives to its own bucket.
    let refused = crate::tool::result({
        let mut command = crate::tool::command();
        command.args(["--region", "eu-west-1", "serve", "--archive", "archive"]);
        command
    });
    assert!(refused.stderr.contains("--embedded"), "{refused:?}");
}
