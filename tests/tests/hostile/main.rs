//! Input that somebody got wrong, or wrong on purpose: success or a clear error, never a panic, a loop or an admission.
//!
//! The targets are those of `fuzz/`, which `make fuzz` drives with libFuzzer. Here they get mutations of the committed corpus,
//! the same in every run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/client.rs"]
mod client;
#[path = "../../../fuzz/src/http.rs"]
mod http;
mod mutate;
#[path = "../../../fuzz/src/pure.rs"]
mod pure;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind};

use mutate::Mutator;

/// How many mutations each target gets.
fn mutations(target: &str) -> usize {
    match target {
        // Each is a connection.
        "http" => 1_000,
        _ => 10_000,
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = zae_limiter_testing::workspace().join("fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn survives(name: &str, target: fn(&[u8])) {
    let corpus = corpus(name);
    let mut mutator = Mutator::new(2026, &corpus);
    let inputs = corpus
        .iter()
        .cloned()
        .chain(std::iter::repeat_with(|| mutator.next()));
    for input in inputs.take(corpus.len() + mutations(name)) {
        let ended = catch_unwind(AssertUnwindSafe(|| target(&input)));
        assert!(
            ended.is_ok(),
            "{name} does not survive {:?}",
            String::from_utf8_lossy(&input)
        );
    }
}

macro_rules! targets {
    ($($name:ident: $target:path),+ $(,)?) => {
        $(#[test]
        fn $name() {
            survives(stringify!($name), $target);
        })+

        /// Those of `fuzz/src/lib.rs`, and every folder of the corpus.
        #[test]
        fn every_target_is_driven() {
            let mut driven = vec![$(stringify!($name).to_owned()),+];
            driven.sort();
            let folder = zae_limiter_testing::workspace().join("fuzz");
            let folders = std::fs::read_dir(folder.join("corpus")).unwrap();
            let mut corpora: Vec<_> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            corpora.sort();
            assert_eq!(driven, corpora);
            let list = std::fs::read_to_string(folder.join("src/lib.rs")).unwrap();
            for name in driven {
                assert!(list.contains(&format!("(\"{name}\", ")), "{name} is not fuzzed");
            }
        }
    };
}

targets! {
    items: pure::items,
    options: pure::options,
    limit: pure::limit,
    keys: pure::keys,
    stream: client::stream,
    limits_file: client::limits_file,
    command_line: client::command_line,
    cursor: client::cursor,
    http: http::body,
}
