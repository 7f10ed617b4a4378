//! `local`: local clouds.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::tool::{Bench, RunResult, command, result};

/// A port that nobody uses right now.
pub(crate) fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string()
}

/// MiniStack, where the tests' environment or the project has it.
pub(crate) fn ministack() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/ministack/bin/ministack");
    let given = std::env::var_os("ZAE_TEST_MINISTACK").map_or(project, PathBuf::from);
    assert!(
        given.exists(),
        "{} is not there: run make venv-ministack",
        given.display()
    );
    given
}

/// A local cloud that ends with the test.
pub(crate) struct Cloud {
    pub(crate) bench: Bench,
    pub(crate) port: String,
}

impl Cloud {
    pub(crate) fn new() -> Self {
        Self {
            bench: Bench::new(),
            port: free_port(),
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command
            .env("ZAE_LIMITER_STATE_DIR", self.bench.path("state"))
            .args(arguments);
        command
    }

    pub(crate) fn local(&self, arguments: &[&str]) -> RunResult {
        let mut command = self.command(&["local"]);
        command.args(arguments).args(["--port", &self.port]);
        result(command)
    }

    pub(crate) fn up(&self) -> RunResult {
        let ministack = ministack();
        self.local(&["up", "--ministack", ministack.to_str().unwrap()])
    }

    /// A command against the cloud.
    pub(crate) fn on(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "us-east-1");
        command
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        self.local(&["down"]);
    }
}

#[test]
fn a_cloud_is_started_shown_and_stopped() {
    let cloud = Cloud::new();
    let status = cloud.local(&["status"]).expect_exit(1);
    assert!(status.stdout.contains("no local cloud"), "{status:?}");
    let up = cloud.up().expect_exit(0);
    assert!(
        up.stdout
            .contains(&format!("is running at http://127.0.0.1:{}", cloud.port)),
        "{up:?}"
    );
    assert!(cloud.up().expect_exit(0).stdout.contains("is already running"));
    let status = cloud.local(&["status", "--output", "json"]).expect_exit(0).json();
    assert_eq!(
        (status["up"].clone(), status["engine"].clone()),
        (true.into(), "ministack".into())
    );
    let logs = cloud
        .local(&["logs", "--tail", "5", "--output", "json"])
        .expect_exit(0)
        .json();
    assert!(logs["lines"].as_array().unwrap().len() <= 5);
    let down = cloud.local(&["down"]).expect_exit(0);
    assert!(down.stdout.contains("stopped the local cloud"), "{down:?}");
    cloud.local(&["status"]).expect_exit(1);
    cloud.local(&["logs"]).expect_exit(1);
    assert!(
        cloud
            .local(&["down"])
            .expect_exit(0)
            .stdout
            .contains("no local cloud")
    );
}

/// Also with the feature `bundled-functions`: the archives for another architecture than this machine's are not in the program.
#[test]
fn a_stack_with_functions_needs_their_packages() {
    let cloud = Cloud::new();
    cloud.up().expect_exit(0);
    let architecture = if cfg!(target_arch = "aarch64") {
        "lambda_architecture=x86_64"
    } else {
        "lambda_architecture=arm64"
    };
    let mut deploy = cloud.on(&["deploy", "--name", "demo", "--yes", "--output", "json"]);
    deploy
        .args(["--set", architecture])
        .current_dir(cloud.bench.path(""));
    let told = result(deploy).expect_exit(1);
    assert_eq!(told.error()["error"], "code_missing");
    assert!(told.stderr.contains("make functions"), "{told:?}");
}

#[test]
fn a_port_in_use_is_rejected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let cloud = Cloud {
        bench: Bench::new(),
        port: listener.local_addr().unwrap().port().to_string(),
    };
    let result = cloud.up().expect_exit(1);
    assert!(
        result
            .stderr
            .contains("in use by a process that is not a local cloud"),
        "{result:?}"
    );
}

#[test]
fn a_cloud_that_exits_during_startup_is_reported_with_its_log() {
    let cloud = Cloud::new();
    let script = cloud
        .bench
        .write("broken", "#!/bin/sh\necho no such luck >&2\nexit 3\n");
    make_executable(&script);
    let result = cloud.local(&["up", "--ministack", &script]).expect_exit(1);
    assert!(
        result.stderr.contains("exited during startup") && result.stderr.contains("no such luck"),
        "{result:?}"
    );
    cloud.local(&["status"]).expect_exit(1);
}

#[test]
fn a_missing_engine_is_reported_with_how_to_install_it() {
    let cloud = Cloud::new();
    let mut without = cloud.command(&["local", "up", "--port", &cloud.port]);
    without.env("PATH", "/nonexistent").current_dir("/");
    let told = result(without).expect_exit(1);
    // As it is installed for the tests: without cbor2, MiniStack cannot read the requests of CloudWatch.
    let installed = include_str!("../../scripts/requirements/ministack.in").lines();
    let packages: Vec<_> = installed.filter(|line| !line.starts_with('#')).collect();
    let install = format!("pip install {}`", packages.join(" "));
    assert!(told.stderr.contains(&install), "{told:?}");
    let mut docker = cloud.command(&["local", "up", "--engine", "localstack", "--port", &cloud.port]);
    docker.env("PATH", "/nonexistent");
    let told = result(docker).expect_exit(1);
    assert!(told.stderr.contains("docker was not found"), "{told:?}");
}

/// Docker's part is played by a script that notes what it is asked.
#[test]
fn the_localstack_container_is_removed_by_its_id() {
    let cloud = Cloud::new();
    let bench = &cloud.bench;
    std::fs::create_dir(bench.path("bin")).unwrap();
    let (asked, server) = (bench.path("asked"), bench.path("server.py"));
    bench.write(
        "server.py",
        "import http.server,sys\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(s): s.send_response(200); s.send_header('Content-Length','0'); s.end_headers()\n  def log_message(s,*a): pass\nhttp.server.HTTPServer(('127.0.0.1',int(sys.argv[1])),H).serve_forever()\n",
    );
    let pid = bench.path("pid");
    let script = format!(
        "#!/bin/sh\necho \"$DOCKER_HOST $*\" >> {asked}\ncase $1 in\nrun) python3 {server} {port} </dev/null >/dev/null 2>&1 & echo $! > {pid}; echo c0ffee;;\n\
         inspect) if [ -f {pid} ]; then echo true; else echo 'No such container' >&2; exit 1; fi;;\n\
         rm) if [ -f {pid} ]; then kill $(cat {pid}); rm {pid}; else echo 'No such container' >&2; exit 1; fi;;\nlogs) echo a line;;\nesac\n",
        asked = asked.display(),
        server = server.display(),
        port = cloud.port,
        pid = pid.display(),
    );
    make_executable(&bench.write("bin/docker", &script));
    let path = format!(
        "{}:{}",
        bench.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let local = |arguments: &[&str]| {
        let mut command = cloud.command(&["local"]);
        command
            .env("PATH", &path)
            .env("LOCALSTACK_AUTH_TOKEN", "secret")
            .args(arguments)
            .args(["--port", &cloud.port]);
        result(command)
    };
    let up = local(&[
        "up",
        "--engine",
        "localstack",
        "--docker-host",
        "unix:///there.sock",
        "--output",
        "json",
    ])
    .expect_exit(0);
    assert_eq!(
        (up.json()["engine"].clone(), up.json()["container"].clone()),
        ("localstack".into(), "c0ffee".into())
    );
    assert_eq!(local(&["logs"]).expect_exit(0).stdout, "a line\n");
    local(&["status"]).expect_exit(0);
    local(&["down"]).expect_exit(0);
    local(&["status"]).expect_exit(1);
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(
        asked.lines().all(|line| line.starts_with("unix:///there.sock ")),
        "{asked}"
    );
    assert!(asked.contains("rm --force --volumes c0ffee"), "{asked}");
    assert!(
        asked.contains(&format!("--publish 127.0.0.1:{}:4566", cloud.port)),
        "{asked}"
    );
    assert!(
        asked.contains("--volume /there.sock:/var/run/docker.sock"),
        "{asked}"
    );
    assert!(
        asked.contains("--env LOCALSTACK_AUTH_TOKEN ") && !asked.contains("secret"),
        "{asked}"
    );
    let name = format!("zae-limiter-localstack-{}", cloud.port);
    let first = asked.lines().next().unwrap();
    assert!(
        first.ends_with(&format!("rm --force --volumes {name}")),
        "a stopped container of that name is removed first: {asked}"
    );
}

/// A container that has stopped by itself is removed, and one that Docker Compose started is found and left alone.
#[test]
fn stopped_and_foreign_containers() {
    let cloud = Cloud::new();
    let bench = &cloud.bench;
    std::fs::create_dir(bench.path("bin")).unwrap();
    let asked = bench.path("asked");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {}\ncase $1 in\ninspect) echo false;;\nesac\n",
        asked.display()
    );
    make_executable(&bench.write("bin/docker", &script));
    let state = bench.path("state");
    std::fs::create_dir(&state).unwrap();
    let recorded =
        r#"{"engine":"localstack","process":null,"container":"c0ffee","docker_host":null,"log":null}"#;
    std::fs::write(state.join(format!("local-{}.json", cloud.port)), recorded).unwrap();
    let local = |arguments: &[&str]| {
        let mut command = cloud.command(&["local"]);
        let path = std::env::var("PATH").unwrap();
        command
            .env("PATH", format!("{}:{path}", bench.path("bin").display()))
            .args(arguments)
            .args(["--port", &cloud.port]);
        result(command)
    };
    local(&["status"]).expect_exit(1);
    local(&["down"]).expect_exit(0);
    let asked = std::fs::read_to_string(&asked).unwrap();
    assert!(asked.contains("rm --force --volumes c0ffee"), "{asked}");

    let listener = TcpListener::bind(format!("127.0.0.1:{}", cloud.port)).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap_or(0);
            let ready = request[..read].starts_with(b"GET /_localstack/health");
            let status = if ready { "200 OK" } else { "404 Not Found" };
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    let status = local(&["status"]).expect_exit(0);
    assert!(status.stdout.contains("LocalStack is running"), "{status:?}");
    let up = local(&["up", "--engine", "localstack"]).expect_exit(0);
    assert!(up.stdout.contains("is already running"), "{up:?}");
    let down = local(&["down"]).expect_exit(0);
    assert!(down.stdout.contains("was not started by `local up`"), "{down:?}");
}

#[test]
fn the_environment_is_printed_for_every_shell() {
    let cloud = Cloud {
        bench: Bench::new(),
        port: "4570".to_owned(),
    };
    let eval = cloud.local(&["env"]).expect_exit(0).stdout;
    assert!(
        eval.contains("export AWS_ENDPOINT_URL=http://127.0.0.1:4570\n"),
        "{eval}"
    );
    assert_eq!(
        cloud.local(&["env", "--format", "direnv"]).expect_exit(0).stdout,
        eval
    );
    let powershell = cloud
        .local(&["env", "--format", "powershell"])
        .expect_exit(0)
        .stdout;
    assert!(
        powershell.contains("$env:AWS_REGION = \"us-east-1\""),
        "{powershell}"
    );
    assert_eq!(
        cloud.local(&["env", "--output", "json"]).expect_exit(0).json()["AWS_ACCESS_KEY_ID"],
        "test"
    );
}

fn make_executable(path: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
