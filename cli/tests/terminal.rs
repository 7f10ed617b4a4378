//! Behavior on a terminal: colors, width, progress, and prompts.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::local::Cloud;
use crate::tool::Bench;

/// Runs a command on a terminal of this width, types a reply, and returns the exit code and the output.
fn on_terminal(command: &mut Command, width: u16, typed: &str) -> (i32, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize {
        ws_row: 40,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, vec![]).unwrap().into_string().unwrap();
    let end = || {
        Stdio::from(OwnedFd::from(
            File::options().read(true).write(true).open(&name).unwrap(),
        ))
    };
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    // The command keeps its own copies of the ends; ours must close, or reading would never end.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut terminal = File::from(master);
    terminal.write_all(typed.as_bytes()).unwrap();
    let mut drawn = vec![];
    let mut part = [0; 4096];
    // A terminal whose other end is closed returns an error.
    while let Ok(count) = terminal.read(&mut part) {
        if count == 0 {
            break;
        }
        drawn.extend_from_slice(&part[..count]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (code, String::from_utf8_lossy(&drawn).into_owned())
}

fn plain_command() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("zae-limiter"));
    command
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("USER", "tester")
        .env("AWS_EC2_METADATA_DISABLED", "true");
    command
}

fn embedded(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = plain_command();
    command
        .arg("--embedded")
        .arg(bench.path("table.db"))
        .args(arguments);
    command
}

#[test]
fn tables_fit_the_width_and_use_colors() {
    let bench = Bench::new();
    let name = "a rather long name for an entity that is shown in a narrow terminal";
    bench.ok(&["entity", "create", "user-1", "--display-name", name]);
    let (code, drawn) = on_terminal(&mut embedded(&bench, &["entity", "list"]), 70, "");
    assert_eq!(code, 0, "{drawn}");
    assert!(drawn.contains('…') && drawn.contains("\u{1b}[1m"), "{drawn}");
    let (_, plain) = on_terminal(
        &mut embedded(&bench, &["entity", "list", "--color", "never"]),
        200,
        "",
    );
    assert!(plain.contains(name) && !plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn destructive_commands_ask_for_the_name() {
    let bench = Bench::new();
    bench.ok(&["entity", "create", "user-1"]);
    let (code, drawn) = on_terminal(
        &mut embedded(&bench, &["entity", "delete", "user-1"]),
        100,
        "yes\n",
    );
    assert_eq!(code, 1, "{drawn}");
    assert!(
        drawn.contains("Type \"user-1\" to continue") && drawn.contains("nothing was changed"),
        "{drawn}"
    );
    bench.ok(&["entity", "show", "user-1"]);
    let (code, drawn) = on_terminal(
        &mut embedded(&bench, &["entity", "delete", "user-1"]),
        100,
        "user-1\n",
    );
    assert_eq!(code, 0, "{drawn}");
    bench.run(&["entity", "show", "user-1"]).expect_exit(1);
}

#[test]
fn a_deployment_draws_a_bar_and_rows() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let mut command = plain_command();
    command
        .args(["deploy", "-n", "demo", "--no-aggregator", "--no-audit-archival"])
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", cloud.port))
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    let (code, drawn) = on_terminal(&mut command, 90, "y\n");
    assert_eq!(code, 0, "{drawn}");
    assert!(drawn.contains("Apply this plan? [y/N]"), "{drawn}");
    assert!(
        drawn.contains('░') && drawn.contains("\r\u{1b}[2K"),
        "a bar that is redrawn: {drawn}"
    );
    assert!(
        drawn.contains("✓") && drawn.contains("RateLimitsTable"),
        "a row for each resource: {drawn}"
    );
    assert!(drawn.contains("stack demo was created"), "{drawn}");
}
