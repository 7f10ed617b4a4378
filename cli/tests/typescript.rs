//! The npm package of `typescript/`: packed, installed into a new project, and run against the server as a process.
//! Needs node 20, which `scripts/install-typescript` looks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::markdown;
use crate::serving::Serving;
use crate::tool::Bench;

const TOKEN: &str = "0123456789abcdef";
/// The types of the API in the package.
const TYPES: &str = "typescript/src/api.ts";
/// Set to write them instead of comparing them.
const WRITE: &str = "ZAE_WRITE_TYPES";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The npm packages that `scripts/install-typescript` installs; `None` without them.
fn tools() -> Option<PathBuf> {
    let tools = root().join(".tools/typescript");
    let node = Command::new("node").arg("--version").output();
    if tools.join(".installed").exists() && node.is_ok() {
        return Some(tools.join("node_modules"));
    }
    eprintln!("skipped: scripts/install-typescript has not installed TypeScript, or node is missing");
    None
}

/// Runs a command and returns what it prints.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// A project that has installed the packed package. Compiler and AI SDK are in the folder above it.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new(tools: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(tools, folder.path().join("node_modules")).unwrap();
        let project = Self { folder };
        std::fs::create_dir(project.path("")).unwrap();
        let manifest = json!({ "name": "application", "private": true, "type": "module" });
        project.write("package.json", &manifest.to_string());
        let packed = run(Command::new(root().join("scripts/pack-npm")).arg(project.folder.path()));
        let archive = packed.lines().find(|line| line.contains(".tgz")).unwrap();
        run(Command::new("npm")
            .args(["install", "--offline", "--no-audit", "--no-fund"])
            .arg(project.folder.path().join(archive))
            .current_dir(project.path("")));
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("project").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Compiles every TypeScript file of the project in strict mode into `out`.
    #[track_caller]
    fn compile(&self) {
        let options = json!({
            "compilerOptions": {
                "strict": true, "noUnusedLocals": true, "noUnusedParameters": true, "exactOptionalPropertyTypes": true,
                "skipLibCheck": true, "target": "es2022", "lib": ["es2022", "dom", "esnext.disposable"],
                "module": "nodenext", "outDir": "out", "types": ["node"],
            },
            "include": ["*.ts"],
        });
        self.write("tsconfig.json", &options.to_string());
        self.node(&["../node_modules/typescript/bin/tsc", "-p", "."], None);
    }

    #[track_caller]
    fn node(&self, arguments: &[&str], server: Option<&Serving>) -> String {
        let mut command = Command::new("node");
        command.args(arguments).current_dir(self.path(""));
        if let Some(server) = server {
            command
                .env("ZAE_LIMITER_URL", format!("http://{}", server.address))
                .env("ZAE_LIMITER_TOKEN", TOKEN);
        }
        run(&mut command)
    }
}

/// The names of the files in a folder that end like this, in order.
fn files(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(ending))
        .collect();
    names.sort();
    names
}

#[test]
fn the_npm_package_passes_its_tests_where_it_is_installed() {
    let Some(tools) = tools() else { return };
    let bench = Bench::new();
    let tokens = bench.write("tokens.txt", &format!("client acquire,read,admin {TOKEN}\n"));
    let server = Serving::start(&bench, &["--tokens", &tokens]);
    let project = Project::new(&tools);

    let installed = project.path("node_modules/zae-limiter-client");
    for file in ["LICENSE", "README.md", "CHANGELOG.md", "package.json"] {
        assert!(installed.join(file).is_file(), "{file}");
    }
    assert_eq!(
        files(&installed, ""),
        ["CHANGELOG.md", "LICENSE", "README.md", "dist", "package.json"]
    );
    assert_eq!(
        files(&project.path("node_modules"), "client"),
        ["zae-limiter-client"]
    );

    let tests = root().join("typescript/test");
    for name in files(&tests, "") {
        std::fs::copy(tests.join(&name), project.path(&name)).unwrap();
    }
    project.compile();
    for name in files(&tests, ".test.mjs") {
        let shown = project.node(&["--test-reporter", "tap", "--test", &name], Some(&server));
        assert!(
            shown.contains("# fail 0") && !shown.contains("# pass 0\n"),
            "{shown}"
        );
    }
}

#[test]
fn the_types_of_the_npm_package_are_those_of_the_server() {
    let Some(tools) = tools() else { return };
    let bench = Bench::new();
    let server = Serving::start(&bench, &[]);
    let (_, mut document) = server.send("GET", "/openapi.json", None, &Value::Null);
    let operations = document["paths"]
        .as_object_mut()
        .unwrap()
        .values_mut()
        .flat_map(|path| path.as_object_mut().unwrap().values_mut());
    for operation in operations {
        let operation = operation.as_object_mut().unwrap();
        // The package throws errors of its own, and names operations by method and path.
        operation.remove("operationId");
        let responses = operation["responses"].as_object_mut().unwrap();
        responses.retain(|status, _| status.starts_with('2'));
    }
    let source = bench.write("openapi.json", &document.to_string());
    let generated = bench.path("api.ts");
    run(Command::new("node")
        .arg(tools.join("openapi-typescript/bin/cli.js"))
        .arg(source)
        .arg("--output")
        .arg(&generated));
    let generated = std::fs::read_to_string(generated).unwrap();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(root().join(TYPES), generated).unwrap();
        return;
    }
    assert!(
        generated == read(TYPES),
        "{TYPES} differs from the server. Run: {WRITE}=1 cargo test -p zae-limiter-cli --test main typescript"
    );
}

/// The TypeScript programs of a page, each with its setup, for this server.
fn programs(page: &str, server: &Serving) -> Vec<String> {
    let blocks = markdown::blocks(&read(page)).into_iter();
    let programs = blocks
        .filter(|block| block.language() == "typescript")
        .map(|block| {
            let text = format!("{}\n{}\nexport {{}};\n", block.setup.trim(), block.text);
            assert!(
                text.contains("http://127.0.0.1:8080"),
                "{page}, line {}",
                block.line
            );
            text.replace("127.0.0.1:8080", &server.address)
        });
    programs.collect()
}

#[test]
fn the_programs_of_the_guide_and_of_the_packages_readme_run() {
    let Some(tools) = tools() else { return };
    let bench = Bench::new();
    let server = Serving::start(&bench, &[]);
    let limits = json!({ "limits": [
        { "name": "rpm", "capacity": 100, "refill_amount": 1, "refill_period_seconds": 86_400 },
        { "name": "tpm", "capacity": 10_000, "refill_amount": 1, "refill_period_seconds": 86_400 },
    ] });
    let (status, _) = server.send("PUT", "/v1/limits", None, &limits);
    assert_eq!(status, 200);
    let project = Project::new(&tools);
    let mut programs_of_pages = Vec::new();
    for page in ["docs/guide/from-typescript.md", "typescript/README.md"] {
        let programs = programs(page, &server);
        assert!(!programs.is_empty(), "{page}");
        programs_of_pages.extend(programs);
    }
    for (number, program) in programs_of_pages.iter().enumerate() {
        project.write(&format!("program{number}.ts"), program);
    }
    project.compile();
    for number in 0..programs_of_pages.len() {
        project.node(&[&format!("out/program{number}.js")], None);
    }
    for (entity, resource, rpm, tpm) in [
        // A program of the guide and one of the README.
        ("user-1", "gpt-4", 98, 8_760),
        ("user-2", "gpt-4", 99, 9_380),
        ("user-3", "gpt-4o-mini", 99, 9_958),
    ] {
        let path = format!("/v1/entities/{entity}/resources/{resource}/available");
        let (_, left) = server.send("GET", &path, None, &Value::Null);
        assert_eq!(left["tokens"], json!({ "rpm": rpm, "tpm": tpm }), "{entity}");
    }
    let path = "/v1/entities/user-5/resources/gpt-4o/available";
    let (_, left) = server.send("GET", path, None, &Value::Null);
    assert_eq!(left["tokens"]["usd"], 9_993_800);
}

#[test]
fn the_npm_package_has_the_workspaces_version_and_no_dependencies() {
    let package: Value = serde_json::from_str(&read("typescript/package.json")).unwrap();
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    for kind in [
        "dependencies",
        "peerDependencies",
        "optionalDependencies",
        "scripts",
    ] {
        assert!(package[kind].is_null(), "{kind}");
    }
    assert!(read("typescript/CHANGELOG.md").contains("## [Unreleased]"));
}
