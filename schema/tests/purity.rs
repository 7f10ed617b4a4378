//! This crate is pure: nothing under it does I/O, runs tasks or knows AWS.

use std::process::Command;

#[test]
fn no_async_runtime_no_http_and_no_aws_sdk_is_under_this_crate_not_even_for_tests() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", env!("CARGO_PKG_NAME")])
        .args([
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let (names, complaint) = (
        String::from_utf8_lossy(&tree.stdout),
        String::from_utf8_lossy(&tree.stderr),
    );
    assert!(tree.status.success(), "{complaint}");
    let names: Vec<_> = names.lines().filter_map(|line| line.split(' ').next()).collect();
    for used in ["zae-limiter-schema", "serde_dynamo", "proptest"] {
        assert!(names.contains(&used), "{used} is missing: is this the tree?");
    }
    let impure = |name: &&&str| {
        [
            "tokio", "aws", "async", "hyper", "http", "reqwest", "futures", "mio",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    };
    assert_eq!(
        names.iter().filter(impure).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
}
