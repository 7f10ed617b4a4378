//! Every mistake that a user will make: one line, what, why, and what to do; and an exit code that says whose fault it is.

use std::net::TcpListener;

use crate::tool::{Bench, Said, command, said};

/// The command against an endpoint, with these credentials or none.
fn at(endpoint: &str, credentials: bool, arguments: &[&str]) -> Said {
    let mut command = command();
    command.args(arguments).args(["--endpoint-url", endpoint]);
    if credentials {
        command
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test");
    }
    said(command)
}

/// A server that gives every request the same answer.
fn answering(status: u16, body: &'static str) -> String {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 65_536];
            let _ = stream.read(&mut request);
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    url
}

fn one_clean_line(said: &Said) {
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    for dump in ["Failure(", "Some(", "Error {", "panicked", "CredentialsNotLoaded"] {
        assert!(!said.stderr.contains(dump), "{dump} in {said:?}");
    }
}

#[test]
fn no_credentials() {
    let said = at("http://127.0.0.1:9", false, &["resource", "list"]).ended(1);
    assert!(
        said.stderr
            .starts_with("error: no AWS credentials were found; set AWS_PROFILE"),
        "{said:?}"
    );
    one_clean_line(&said);
}

#[test]
fn a_wrong_endpoint_is_unavailable() {
    let said = at("http://127.0.0.1:9", true, &["resource", "list"]).ended(69);
    assert!(
        said.stderr.contains("got no answer") && said.stderr.contains("--endpoint-url"),
        "{said:?}"
    );
    one_clean_line(&said);
    let said = at(
        "http://127.0.0.1:9",
        true,
        &["acquire", "user-1", "gpt-4", "-c", "rpm:1", "--output", "json"],
    )
    .ended(69);
    assert_eq!(said.error()["error"], "unavailable");
    let said = at(
        "http://127.0.0.1:9",
        true,
        &["acquire", "u", "r", "-c", "rpm:1", "--on-unavailable", "allow"],
    )
    .ended(0);
    assert!(said.stdout.contains("not counted"), "{said:?}");
}

/// Everything that works on a stack and asks nobody before.
const STACK_COMMANDS: [&[&str]; 6] = [
    &["status"],
    &["list"],
    &["drift"],
    &["upgrade", "--yes"],
    &["plan", "--no-aggregator", "--no-audit-archival"],
    &["delete", "-n", "demo", "--yes"],
];

#[test]
fn stack_commands_without_credentials() {
    for command in STACK_COMMANDS {
        let said = at("http://127.0.0.1:9", false, command).ended(1);
        assert!(
            said.stderr.starts_with("error: no AWS credentials were found"),
            "{said:?}"
        );
        one_clean_line(&said);
        let said = at(
            "http://127.0.0.1:9",
            false,
            &[command, &["--output", "json"]].concat(),
        )
        .ended(1);
        assert_eq!(said.error()["error"], "denied");
    }
}

#[test]
fn stack_commands_at_a_wrong_endpoint() {
    for command in STACK_COMMANDS {
        let said = at("http://127.0.0.1:9", true, command).ended(69);
        assert!(
            said.stderr.contains("got no answer") && said.stderr.contains("--endpoint-url"),
            "{said:?}"
        );
        one_clean_line(&said);
    }
}

#[test]
fn stack_commands_that_are_denied() {
    let url = answering(
        403,
        "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User bob may not</Message></Error></ErrorResponse>",
    );
    for command in STACK_COMMANDS {
        let said = at(&url, true, &[command, &["--output", "json"]].concat()).ended(1);
        let error = said.error();
        assert_eq!(error["error"], "denied", "{command:?}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains("User bob may not"),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_address_is_refused_before_anybody_is_asked() {
    for url in ["notaurl", "ftp://x", "http://", "http://a b"] {
        let said = at(url, true, &["resource", "list"]).ended(2);
        assert!(said.stderr.contains("such as http://127.0.0.1:4566"), "{said:?}");
    }
    let mut command = command();
    command
        .args(["resource", "list"])
        .env("AWS_ENDPOINT_URL", "notaurl");
    let said = said(command).ended(2);
    assert!(said.stderr.contains("notaurl"), "{said:?}");
    one_clean_line(&said);
}

#[test]
fn a_file_in_no_directory() {
    let bench = Bench::new();
    let mut command = command();
    command
        .arg("--embedded")
        .arg(bench.path("nowhere/table.db"))
        .args(["resource", "list"]);
    let said = said(command).ended(2);
    assert!(said.stderr.contains("there is no directory"), "{said:?}");
    one_clean_line(&said);
}

#[test]
fn no_table() {
    let url = answering(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no"}"#,
    );
    let said = at(&url, true, &["-n", "my-app", "resource", "list"]).ended(1);
    assert!(said.stderr.contains("there is no table my-app"), "{said:?}");
    assert!(
        said.stderr.contains("zae-limiter deploy --name my-app"),
        "{said:?}"
    );
    one_clean_line(&said);
}

#[test]
fn denied() {
    let url = answering(
        400,
        r#"{"__type":"AccessDeniedException","message":"User bob is not authorized to perform: dynamodb:GetItem"}"#,
    );
    let said = at(&url, true, &["resource", "list", "--output", "json"]).ended(1);
    assert_eq!(said.error()["error"], "denied");
    assert!(
        said.error()["message"].as_str().unwrap().contains("User bob"),
        "{said:?}"
    );
}

#[test]
fn no_region() {
    let mut command = command();
    command
        .args(["resource", "list"])
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    let said = said(command).ended(2);
    assert!(
        said.stderr.contains("no AWS region is set; pass --region"),
        "{said:?}"
    );
    one_clean_line(&said);
}

#[test]
fn bad_names_and_limits_are_refused_before_anything_happens() {
    let bench = Bench::new();
    for (arguments, told) in [
        (&["-n", "my_app", "resource", "list"][..], "stack name"),
        (&["entity", "show", "a b"], "entity id"),
        (&["resource", "get-defaults", "9"], "resource"),
        (&["system", "set-defaults", "-l", "rpm"], "write NAME:CAPACITY"),
        (&["system", "set-defaults", "-l", "rpm:100/week"], "week"),
        (&["system", "set-defaults", "-l", "rpm:10:5"], "burst"),
        (
            &[
                "system",
                "set-defaults",
                "-l",
                "rpm:1",
                "--on-unavailable",
                "maybe",
            ],
            "allow or block",
        ),
        (&["acquire", "user-1", "gpt-4", "-c", "rpm"], "LIMIT:TOKENS"),
        (&["acquire", "user-1", "gpt-4"], "--consume"),
        (
            &["acquire", "user-1", "gpt-4", "-c", "rpm:1", "--wait", "5"],
            "such as 5s",
        ),
        (
            &["acquire", "user-1", "gpt-4", "-c", "rpm:1", "--concurrency", "2"],
            "--count",
        ),
        (&["resource", "list", "--output", "yaml"], "table or json"),
    ] {
        let said = bench.run(arguments).ended(2);
        assert!(said.stderr.contains(told), "{told}: {said:?}");
        assert!(said.stdout.is_empty());
    }
    assert!(!bench.path("table.db").exists());
}

#[test]
fn wrong_arguments_are_an_object_for_programs_too() {
    let bench = Bench::new();
    for (arguments, told) in [
        (
            &["acqire", "--output", "json"][..],
            "unrecognized subcommand 'acqire'",
        ),
        (
            &["--output=json", "resource", "list", "--color", "maybe"],
            "[possible values: auto, always, never]",
        ),
        (&["acquire", "user-1", "--output", "json"], "<RESOURCE>"),
        (
            &["system", "set-defaults", "--output", "json", "-l", "rpm"],
            "write NAME:CAPACITY",
        ),
    ] {
        let said = bench.run(arguments).ended(2);
        assert_eq!(said.error()["error"], "invalid_argument");
        let message = said.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(told) && !message.contains("Usage"), "{message}");
        one_clean_line(&said);
    }
    let text = bench.run(&["acqire"]).ended(2);
    assert!(
        text.stderr.contains("a similar subcommand exists: 'acquire'"),
        "{text:?}"
    );
}

#[test]
fn a_limit_given_twice_and_a_limit_that_is_not_there() {
    let bench = Bench::new();
    let said = bench
        .run(&["system", "set-defaults", "-l", "rpm:1", "-l", "rpm:2"])
        .ended(2);
    assert!(said.stderr.contains("each name may stand once"), "{said:?}");
    let said = bench.run(&["acquire", "user-1", "gpt-4", "-c", "rpm:1"]).ended(1);
    assert!(
        said.stderr.contains("zae-limiter system set-defaults"),
        "{said:?}"
    );
    bench.ok(&["system", "set-defaults", "-l", "rpm:10"]);
    let said = bench.run(&["acquire", "user-1", "gpt-4", "-c", "tpm:1"]);
    assert!(
        [1, 2].contains(&said.code) && said.stderr.contains("tpm"),
        "{said:?}"
    );
}

#[test]
fn a_file_that_is_no_table_is_left_alone() {
    let bench = Bench::new();
    let file = bench.write(
        "notes.txt",
        "these are notes, and they are not a database of any kind at all",
    );
    let mut command = command();
    command.args(["--embedded", &file, "resource", "list"]);
    let said = said(command).ended(1);
    assert!(
        said.stderr
            .contains("notes.txt cannot be used as an embedded store"),
        "{said:?}"
    );
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .starts_with("these are notes")
    );
}

#[test]
fn destructive_commands_need_a_terminal_or_yes() {
    let bench = Bench::new();
    bench.ok(&["entity", "create", "user-1"]);
    for arguments in [
        &["entity", "delete", "user-1"][..],
        &["entity", "delete-limits", "user-1"],
        &["resource", "delete-defaults", "gpt-4"],
        &["system", "delete-defaults"],
    ] {
        let said = bench.run(arguments).ended(2);
        assert!(said.stderr.contains("pass --yes"), "{said:?}");
    }
    bench.ok(&["entity", "show", "user-1"]);
}

#[test]
fn verbose_tells_the_cause() {
    let said = at("http://127.0.0.1:9", true, &["-v", "resource", "list"]).ended(69);
    assert!(said.stderr.contains("\n  caused by: "), "{said:?}");
}

#[test]
fn stack_commands_say_what_they_need() {
    let bench = Bench::new();
    let said = bench.run(&["status"]).ended(2);
    assert!(said.stderr.contains("leave --embedded out"), "{said:?}");
    let said = at("http://127.0.0.1:9", true, &["delete", "--yes"]).ended(2);
    assert!(said.stderr.contains("--name"), "{said:?}");
    let said = at("http://127.0.0.1:9", true, &["plan", "--lambda-memory", "1"]).ended(2);
    assert!(said.stderr.contains("lambda_memory"), "{said:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::Stdio;
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
