//! The example clients of `server/clients`, run against the server as a process.

use std::path::PathBuf;
use std::process::Command;

use zae_limiter_testing::clients_python;

use crate::serving::Serving;
use crate::tool::Bench;

const TOKEN: &str = "0123456789abcdef";

fn folder(language: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../server/clients").join(language)
}

/// A server with a token for everything.
fn server(bench: &Bench) -> Serving {
    let tokens = bench.write("tokens.txt", &format!("client acquire,read,admin {TOKEN}\n"));
    Serving::start(bench, &["--tokens", &tokens])
}

/// Runs the tests of a client and returns what they print.
fn run(server: &Serving, command: &mut Command) -> String {
    let output = command
        .env("ZAE_LIMITER_URL", format!("http://{}", server.address))
        .env("ZAE_LIMITER_TOKEN", TOKEN)
        .output()
        .unwrap();
    let shown = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(output.status.success(), "{shown}");
    shown
}

#[test]
fn the_python_client_and_the_litellm_hook_work() {
    let bench = Bench::new();
    let server = server(&bench);
    let mut command = Command::new(clients_python());
    command
        .args(["-B", "-m", "unittest", "-v", "test_clients"])
        .current_dir(folder("python"));
    let shown = run(&server, &mut command);
    assert!(shown.contains("Ran 14 tests"), "{shown}");
}

#[test]
fn the_typescript_client_works() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: node is not installed");
        return;
    }
    let bench = Bench::new();
    let server = server(&bench);
    let mut command = Command::new("node");
    command
        .args(["--test-reporter", "tap", "--test", "test.mjs"])
        .current_dir(folder("typescript"));
    let shown = run(&server, &mut command);
    assert!(shown.contains("# pass 10"), "{shown}");
}
