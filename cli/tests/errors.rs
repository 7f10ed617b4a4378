//! Errors that users run into: one line with the cause and the next step, and the right exit code.

use std::net::TcpListener;

use crate::tool::{Bench, RunResult, command, result};

/// Runs the command against an endpoint, with or without credentials.
fn at(endpoint: &str, credentials: bool, arguments: &[&str]) -> RunResult {
    let mut command = command();
    command.args(arguments).args(["--endpoint-url", endpoint]);
    if credentials {
        command
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test");
    }
    result(command)
}

/// A server that gives every request the same response.
fn responding(status: u16, body: &'static str) -> String {
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

fn one_clean_line(result: &RunResult) {
    assert_eq!(result.stderr.lines().count(), 1, "{result:?}");
    for dump in ["Failure(", "Some(", "Error {", "panicked", "CredentialsNotLoaded"] {
        assert!(!result.stderr.contains(dump), "{dump} in {result:?}");
    }
}

#[test]
fn no_credentials() {
    let result = at("http://127.0.0.1:9", false, &["resource", "list"]).expect_exit(1);
    assert!(
        result
            .stderr
            .starts_with("error: no AWS credentials were found; set AWS_PROFILE"),
        "{result:?}"
    );
    one_clean_line(&result);
}

#[test]
fn a_wrong_endpoint_is_unavailable() {
    let result = at("http://127.0.0.1:9", true, &["resource", "list"]).expect_exit(69);
    assert!(
        result.stderr.contains("got no response")
            && result
                .stderr
                .ends_with("or try again later (region us-east-1, endpoint http://127.0.0.1:9)\n"),
        "{result:?}"
    );
    one_clean_line(&result);
    let result = at(
        "http://127.0.0.1:9",
        true,
        &["acquire", "user-1", "gpt-4", "-c", "rpm:1", "--output", "json"],
    )
    .expect_exit(69);
    assert_eq!(result.error()["error"], "unavailable");
    let result = at(
        "http://127.0.0.1:9",
        true,
        &["acquire", "u", "r", "-c", "rpm:1", "--on-unavailable", "allow"],
    )
    .expect_exit(0);
    assert!(result.stdout.contains("not counted"), "{result:?}");
}

/// Commands that work on a stack and do not prompt.
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
        let result = at("http://127.0.0.1:9", false, command).expect_exit(1);
        assert!(
            result.stderr.starts_with("error: no AWS credentials were found"),
            "{result:?}"
        );
        one_clean_line(&result);
        let result = at(
            "http://127.0.0.1:9",
            false,
            &[command, &["--output", "json"]].concat(),
        )
        .expect_exit(1);
        assert_eq!(result.error()["error"], "denied");
    }
}

#[test]
fn stack_commands_at_a_wrong_endpoint() {
    for command in STACK_COMMANDS {
        let result = at("http://127.0.0.1:9", true, command).expect_exit(69);
        assert!(
            result.stderr.contains("got no response")
                && result
                    .stderr
                    .ends_with("and the network (region us-east-1, endpoint http://127.0.0.1:9)\n"),
            "{result:?}"
        );
        one_clean_line(&result);
    }
}

#[test]
fn stack_commands_that_are_denied() {
    let url = responding(
        403,
        "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User bob may not</Message></Error></ErrorResponse>",
    );
    for command in STACK_COMMANDS {
        let result = at(&url, true, &[command, &["--output", "json"]].concat()).expect_exit(1);
        let error = result.error();
        assert_eq!(error["error"], "denied", "{command:?}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains("User bob may not"),
            "{error}"
        );
    }
}

#[test]
fn invalid_endpoints_are_rejected_before_any_request() {
    for url in ["notaurl", "ftp://x", "http://", "http://a b"] {
        let result = at(url, true, &["resource", "list"]).expect_exit(2);
        assert!(
            result.stderr.contains("such as http://127.0.0.1:4566"),
            "{result:?}"
        );
    }
    let mut command = command();
    command
        .args(["resource", "list"])
        .env("AWS_ENDPOINT_URL", "notaurl");
    let result = result(command).expect_exit(2);
    assert!(result.stderr.contains("notaurl"), "{result:?}");
    one_clean_line(&result);
}

#[test]
fn an_embedded_file_in_a_missing_directory() {
    let bench = Bench::new();
    let mut command = command();
    command
        .arg("--embedded")
        .arg(bench.path("nowhere/table.db"))
        .args(["resource", "list"]);
    let result = result(command).expect_exit(2);
    assert!(result.stderr.contains("does not exist"), "{result:?}");
    one_clean_line(&result);
}

#[test]
fn no_table() {
    let url = responding(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no"}"#,
    );
    let result = at(&url, true, &["-n", "my-app", "resource", "list"]).expect_exit(1);
    assert!(
        result.stderr.contains(&format!(
            "table my-app does not exist in region us-east-1, endpoint {url};"
        )),
        "{result:?}"
    );
    assert!(
        result.stderr.contains("zae-limiter deploy --name my-app"),
        "{result:?}"
    );
    one_clean_line(&result);
}

#[test]
fn denied() {
    let url = responding(
        400,
        r#"{"__type":"AccessDeniedException","message":"User bob is not authorized to perform: dynamodb:GetItem"}"#,
    );
    let result = at(&url, true, &["resource", "list", "--output", "json"]).expect_exit(1);
    assert_eq!(result.error()["error"], "denied");
    assert!(
        result.error()["message"].as_str().unwrap().contains("User bob"),
        "{result:?}"
    );
}

#[test]
fn no_region() {
    let mut command = command();
    command
        .args(["resource", "list"])
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    let result = result(command).expect_exit(2);
    assert!(
        result.stderr.contains("no AWS region is set; pass --region"),
        "{result:?}"
    );
    one_clean_line(&result);
}

#[test]
fn invalid_names_and_limits_are_rejected_before_anything_is_written() {
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
        let result = bench.run(arguments).expect_exit(2);
        assert!(result.stderr.contains(told), "{told}: {result:?}");
        assert!(result.stdout.is_empty());
    }
    assert!(!bench.path("table.db").exists());
}

#[test]
fn usage_errors_are_json_objects_for_programs() {
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
        let result = bench.run(arguments).expect_exit(2);
        assert_eq!(result.error()["error"], "invalid_argument");
        let message = result.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(told) && !message.contains("Usage"), "{message}");
        one_clean_line(&result);
    }
    let text = bench.run(&["acqire"]).expect_exit(2);
    assert!(
        text.stderr.contains("a similar subcommand exists: 'acquire'"),
        "{text:?}"
    );
}

#[test]
fn a_duplicate_limit_and_a_missing_limit() {
    let bench = Bench::new();
    let result = bench
        .run(&["system", "set-defaults", "-l", "rpm:1", "-l", "rpm:2"])
        .expect_exit(2);
    assert!(result.stderr.contains("duplicate limit name"), "{result:?}");
    let result = bench
        .run(&["acquire", "user-1", "gpt-4", "-c", "rpm:1"])
        .expect_exit(1);
    assert!(
        result.stderr.contains("zae-limiter system set-defaults"),
        "{result:?}"
    );
    bench.ok(&["system", "set-defaults", "-l", "rpm:10"]);
    let result = bench.run(&["acquire", "user-1", "gpt-4", "-c", "tpm:1"]);
    assert!(
        [1, 2].contains(&result.code) && result.stderr.contains("tpm"),
        "{result:?}"
    );
}

#[test]
fn a_file_that_is_not_a_table_is_not_overwritten() {
    let bench = Bench::new();
    let file = bench.write(
        "notes.txt",
        "these are notes, and they are not a database of any kind at all",
    );
    let mut command = command();
    command.args(["--embedded", &file, "resource", "list"]);
    let result = result(command).expect_exit(1);
    assert!(
        result
            .stderr
            .contains("notes.txt cannot be used as an embedded store"),
        "{result:?}"
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
        let result = bench.run(arguments).expect_exit(2);
        assert!(result.stderr.contains("pass --yes"), "{result:?}");
    }
    bench.ok(&["entity", "show", "user-1"]);
}

#[test]
fn verbose_shows_the_causes() {
    let result = at("http://127.0.0.1:9", true, &["-v", "resource", "list"]).expect_exit(69);
    assert!(result.stderr.contains("\n  caused by: "), "{result:?}");
}

#[test]
fn stack_commands_name_the_missing_option() {
    let bench = Bench::new();
    let result = bench.run(&["status"]).expect_exit(2);
    assert!(result.stderr.contains("remove --embedded"), "{result:?}");
    let result = at("http://127.0.0.1:9", true, &["delete", "--yes"]).expect_exit(2);
    assert!(result.stderr.contains("--name"), "{result:?}");
    let result = at("http://127.0.0.1:9", true, &["deploy", "my-app", "--yes"]).expect_exit(2);
    assert!(
        result
            .stderr
            .contains("options file my-app does not exist; the name of a stack is given with --name"),
        "{result:?}"
    );
    let result = at("http://127.0.0.1:9", true, &["plan", "--lambda-memory", "1"]).expect_exit(2);
    assert!(result.stderr.contains("lambda_memory"), "{result:?}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
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

/// Commands that work on the table, one for each way to reach it.
const TABLE_COMMANDS: [&[&str]; 8] = [
    &["resource", "list"],
    &["entity", "show", "user-1"],
    &["available", "user-1", "gpt-4"],
    &[
        "acquire",
        "user-1",
        "gpt-4",
        "-c",
        "rpm:1",
        "--on-unavailable",
        "allow",
    ],
    &["usage", "list", "-r", "gpt-4"],
    &["audit", "list", "-e", "user-1"],
    &["limits", "plan", "-"],
    &["migrate", "--dry-run"],
];

fn commands() -> impl Iterator<Item = &'static [&'static str]> {
    STACK_COMMANDS.into_iter().chain(TABLE_COMMANDS)
}

/// Every command names the problem with credentials, and how to get some. It is no outage, so no policy lets a call pass.
#[test]
fn credentials_that_cannot_be_loaded_are_told_with_a_hint() {
    let metadata = responding(403, "forbidden");
    for arguments in commands() {
        let mut command = command();
        command
            .args(arguments)
            .args(["--region", "eu-west-1"])
            .env("AWS_EC2_METADATA_DISABLED", "false")
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata);
        let result = result(command).expect_exit(1);
        assert!(
            result
                .stderr
                .starts_with("error: the AWS credentials could not be loaded: ")
                && result.stderr.matches("could not be loaded").count() == 1
                && result.stderr.contains("`aws sso login`"),
            "{arguments:?}: {result:?}"
        );
        one_clean_line(&result);
    }
}

/// A metadata service that accepts connections and never responds.
#[test]
fn a_metadata_service_that_hangs_is_no_outage() {
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let metadata = format!("http://{}", hanging.local_addr().unwrap());
    let runs = commands().map(|arguments| {
        let metadata = metadata.clone();
        std::thread::spawn(move || {
            let mut command = command();
            command
                .args(arguments)
                .args(["--region", "eu-west-1"])
                .env("AWS_EC2_METADATA_DISABLED", "false")
                .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata);
            (arguments, result(command))
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let (arguments, result) = run.join().unwrap();
        let result = result.expect_exit(1);
        let told = [
            // The time of the call was over first, or that of the SDK for a metadata service.
            "error: the AWS credentials could not be loaded: the provider has not responded in time; set AWS_PROFILE",
            "error: no AWS credentials were found; set AWS_PROFILE",
        ];
        assert!(
            told.iter().any(|told| result.stderr.starts_with(told))
                && result.stderr.contains("`aws sso login`"),
            "{arguments:?}: {result:?}"
        );
        one_clean_line(&result);
    }
}

#[test]
fn a_profile_that_does_not_exist_is_named() {
    for arguments in commands() {
        let mut command = command();
        command
            .args(arguments)
            .args(["--profile", "nowhere", "--region", "eu-west-1"]);
        let result = result(command).expect_exit(2);
        assert!(
            result
                .stderr
                .contains("AWS profile \"nowhere\" does not exist in /nonexistent/config"),
            "{result:?}"
        );
        one_clean_line(&result);
    }
}

#[test]
fn a_service_that_responds_strangely_is_told_in_one_short_line() {
    let url = responding(400, "<html>gateway</html>");
    for arguments in [&["status"][..], &["list"], &["drift"]] {
        let result = at(&url, true, arguments);
        assert_ne!(result.code, 0, "{result:?}");
        one_clean_line(&result);
        assert!(result.stderr.len() < 400, "{result:?}");
    }
}

#[test]
fn versions_need_no_region_and_no_table() {
    let mut command = command();
    command.args(["version"]);
    let shown = result(command).expect_exit(0).stdout;
    assert!(
        shown.starts_with("zae-limiter ") && shown.lines().count() == 1,
        "{shown}"
    );

    let missing = responding(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no"}"#,
    );
    let shown = at(&missing, true, &["version"]).expect_exit(0).stdout;
    assert!(
        shown.contains(&format!(
            "\nno table: table limiter does not exist in {missing}; "
        )),
        "{shown}"
    );
    // A table that is named has to be there.
    let told = at(&missing, true, &["-n", "my-app", "version"]).expect_exit(1);
    assert!(told.stderr.contains("table my-app does not exist"), "{told:?}");
}

#[test]
fn termination_protection_is_not_forgotten_by_a_command_that_does_not_wait() {
    for ignored in [&["--no-wait"][..], &["--mode", "observe"]] {
        let arguments = [&["deploy", "--termination-protection"][..], ignored].concat();
        let result = at("http://127.0.0.1:9", true, &arguments).expect_exit(2);
        assert!(result.stderr.contains("cannot be used with"), "{result:?}");
    }
}

#[test]
fn a_template_is_json_where_json_is_asked_for() {
    for arguments in [&["--output", "json"][..], &["--format", "json"]] {
        let mut command = command();
        command.arg("cfn-template").args(arguments);
        let template = result(command).expect_exit(0).json();
        assert!(template["Resources"]["RateLimitsTable"].is_object());
    }
}

#[test]
fn all_mistakes_of_a_file_are_told_with_their_lines() {
    let bench = Bench::new();
    let limits = bench.write(
        "limits.yaml",
        "system:\n  limits: {rpm: x}\nresources:\n  gpt-4:\n    limit: [rpm:1]\n",
    );
    let told = bench.run(&["limits", "plan", &limits]).expect_exit(2).stderr;
    assert!(told.contains("line 2: system.limits.rpm: "), "{told}");
    assert!(
        told.contains("line 5: resources.gpt-4.limit: unknown field, did you mean \"limits\"?"),
        "{told}"
    );
    let options = bench.write(
        "options.yaml",
        "lambda_memroy: 512\nenable_tracing: ja\nlambda_timeout: 0\n",
    );
    let mut command = command();
    command.args(["cfn-template", &options]);
    let told = result(command).expect_exit(2).stderr;
    assert!(
        told.contains("line 1: lambda_memroy is not a stack option; did you mean lambda_memory?"),
        "{told}"
    );
    assert!(
        told.contains("line 2: enable_tracing is \"ja\": must be true or false"),
        "{told}"
    );
    assert!(told.contains("line 3: lambda_timeout is 0"), "{told}");
}
