//! The blocks that deploy a stack, each on a local cloud of its own, as a reader runs them: with the archives in the program and
//! AWS settings in the environment. They compile in every build, and run with the feature `bundled-functions`.
#![allow(
    clippy::all,
    clippy::pedantic,
    unused,
    reason = "examples show what a reader needs, and nothing else"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use zae_limiter::stack::{Health, Stack, StackName, StackOptions};
use zae_limiter::*;
use zae_limiter_testing::{MiniStack, workspace};

use crate::book::rust_blocks::Outcome;
use crate::book::{markdown, pages};

/// Set in the process that runs the block.
const INSIDE: &str = "ZAE_BOOK_INSIDE";

/// Runs this test again in a process whose environment leads to a fresh local cloud, and then looks at what was deployed.
fn in_a_fresh_cloud(test: &str, block: impl Future<Output = Outcome>) -> Outcome {
    if std::env::var_os(INSIDE).is_some() {
        return tokio::runtime::Runtime::new()?.block_on(block);
    }
    let cloud = MiniStack::start();
    let directory = tempfile::tempdir()?;
    std::fs::create_dir(directory.path().join("target"))?;
    std::os::unix::fs::symlink(archives(), directory.path().join("target/functions"))?;
    let output = Command::new(std::env::current_exe()?)
        .args([&format!("book::bundled::{test}"), "--exact", "--nocapture"])
        .current_dir(directory.path())
        .env_clear()
        .env("HOME", directory.path())
        .env("AWS_ENDPOINT_URL", cloud.endpoint())
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env(INSIDE, "true")
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    tokio::runtime::Runtime::new()?.block_on(has_stack_with_functions(&cloud))
}

/// The archives that are compiled into this program.
fn archives() -> PathBuf {
    let built = || workspace().join("target/functions");
    std::env::var_os("ZAE_LIMITER_FUNCTIONS").map_or_else(built, PathBuf::from)
}

async fn has_stack_with_functions(cloud: &MiniStack) -> Outcome {
    let aws = cloud.aws();
    let stacks = Stack::discover(&aws).await?;
    assert_eq!(stacks.len(), 1, "{stacks:?}");
    let stack = Stack::new(
        StackName::parse(&stacks[0].user_name)?,
        StackOptions::default(),
        &aws,
    );
    let status = stack.status().await?.ok_or("the stack is gone")?;
    assert_eq!(status.status, "CREATE_COMPLETE");
    for function in ["AggregatorFunctionArn", "ArchiverFunctionArn"] {
        assert!(status.outputs.contains_key(function), "{:?}", status.outputs);
    }
    let limiter = RateLimiter::builder(&stacks[0].user_name).sdk_config(aws).await?;
    assert!(
        limiter.repository().get_version().await?.is_some(),
        "no version record"
    );
    Ok(())
}

/// True if the code deploys from an application.
fn deploys(code: &str) -> bool {
    code.contains(".ensure(true)") || code.contains(".ensure_infrastructure()")
}

#[test]
fn every_block_that_deploys_from_an_application_is_run() {
    let mut found = 0;
    let source = |path: &str| markdown::documentation(&pages::read(path));
    let mut texts = pages::all();
    for path in [
        "limiter/src/builder/infrastructure.rs",
        "limiter/src/infrastructure.rs",
    ] {
        texts.insert(path.to_owned(), source(path));
    }
    for (path, text) in texts {
        let blocks = markdown::blocks(&text).into_iter();
        for block in blocks.filter(|block| block.language() == "rust" && deploys(&block.text)) {
            assert!(
                block.is("cloud"),
                "{path}, line {}: mark it with cloud",
                block.line
            );
            found += 1;
        }
    }
    assert!(found >= 6, "{found}");
}

include!(concat!(env!("OUT_DIR"), "/cloud_blocks.rs"));
