//! The Python package as its users get it: a wheel made by maturin of the library that cargo has built with this test,
//! installed in a clean venv, and tested there in Python.
//!
//! `make setup` installs what it needs. Without `.venv/python` the test fails and says so.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Python with the tools, from `scripts/requirements/python.txt`.
fn tools() -> PathBuf {
    let default = || folder().with_file_name(".venv").join("python/bin/python");
    let path = env::var_os("ZAE_TEST_PYTHON").map_or_else(default, PathBuf::from);
    assert!(path.exists(), "{} does not exist: run make setup", path.display());
    path
}

/// The library beside this test's own program.
fn library() -> PathBuf {
    let name = format!(
        "{}zae_limiter_python{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    );
    env::current_exe().unwrap().with_file_name(name)
}

fn run(program: impl AsRef<OsStr>, folder: &Path, arguments: &[&str], variables: &[(&str, &OsStr)]) {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    // A maturin that runs under cargo must not take its settings for its own.
    let of_cargo = |name: &OsStr| name.to_string_lossy().starts_with("PYO3_");
    for (name, _) in env::vars_os().filter(|(name, _)| of_cargo(name)) {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let status = command.status().unwrap();
    assert!(
        status.success(),
        "{arguments:?} in {}: {status}",
        folder.display()
    );
}

/// Locks of `parking_lot` keep their waiting threads in a table of the process, which a fork copies without the threads: a forked worker
/// would lose wake-ups.
#[test]
fn no_lock_of_a_wheel_is_broken_by_a_fork() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "-p",
            "zae-limiter-python",
            "--all-features",
        ])
        .args(["-e", "normal", "--prefix", "none"])
        .current_dir(folder())
        // Other commands may unify the features of the workspace; a wheel has its own.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .unwrap();
    let crates = String::from_utf8(output.stdout).unwrap();
    assert!(crates.contains("tokio v"), "{crates}");
    let broken: Vec<_> = crates
        .lines()
        .filter(|line| line.starts_with("parking_lot"))
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
}

/// The blocks of a page that import the package.
fn programs(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder().join("..").join(page)).unwrap();
    let blocks = text.split("```python\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks
        .filter(|block| block.contains("\nfrom zae_limiter_rs import"))
        .collect()
}

#[test]
fn the_wheel_installs_in_a_clean_venv_and_passes_its_tests() {
    let scratch = tempfile::tempdir().unwrap();
    let (here, python) = (scratch.path(), tools());
    let text = |path: &Path| path.to_str().unwrap().to_owned();

    let cargo = folder().join("scripts/built-cargo");
    let library = library();
    let variables = [
        ("CARGO", cargo.as_os_str()),
        ("ZAE_BUILT_LIBRARY", library.as_os_str()),
    ];
    let wheels = text(&here.join("wheels"));
    let (manifest, interpreter) = (text(&folder().join("Cargo.toml")), text(&python));
    let build = [
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--manifest-path",
        &manifest,
        "--out",
        &wheels,
    ];
    let options = ["--interpreter", &interpreter, "--compatibility", "linux"];
    let options = if cfg!(target_os = "linux") {
        &options[..]
    } else {
        &options[..2]
    };
    run(&python, here, &[&build[..], options].concat(), &variables);

    run(&python, here, &["-m", "venv", "clean"], &[]);
    let clean = here.join(if cfg!(windows) {
        "clean/Scripts/python.exe"
    } else {
        "clean/bin/python"
    });
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--find-links",
    ];
    run(
        &clean,
        here,
        &[&install[..], &[&wheels, "zae-limiter-rs"]].concat(),
        &[],
    );
    // Nothing but the wheel is there.
    for page in [
        "python/README.md",
        "docs/guide/from-python.md",
        "docs/guide/coming-from-python.md",
    ] {
        let programs = programs(page);
        assert!(!programs.is_empty(), "{page} has no program");
        for program in programs {
            // multiprocessing needs a file.
            std::fs::write(here.join("program.py"), program).unwrap();
            run(&clean, here, &["program.py"], &[]);
        }
    }

    // The tools see the installed package, and not its sources.
    let place =
        "import zae_limiter_rs, pathlib; print(pathlib.Path(zae_limiter_rs.__file__).parents[1], end='')";
    let installed = Command::new(&clean)
        .current_dir(here)
        .args(["-c", place])
        .output()
        .unwrap();
    let installed = String::from_utf8(installed.stdout).unwrap();
    let path = [("PYTHONPATH", OsStr::new(&installed))];
    let tests = text(&folder().join("tests"));
    let settings = text(&folder().join("pyproject.toml"));
    run(
        &python,
        here,
        &[
            "-P",
            "-m",
            "pytest",
            "-c",
            &settings,
            "-p",
            "no:cacheprovider",
            &tests,
        ],
        &path,
    );

    let types = ["-m", "mypy", "--config-file", &settings, "--cache-dir", "types"];
    run(&python, here, &types, &path);
    let own_tests = [
        "--strict",
        "--cache-dir",
        "types",
        "--ignore-missing-imports",
        &tests,
    ];
    run(&python, here, &[&["-m", "mypy"][..], &own_tests].concat(), &path);
    run(
        &python,
        here,
        &["-m", "mypy.stubtest", "zae_limiter_rs._core"],
        &path,
    );
    let generate = text(&folder().join("scripts/generate-sync.py"));
    run(&python, here, &[&generate, "--check"], &[]);
}
