//! Input that somebody got wrong, or wrong on purpose: success or a clear error, never a panic, a loop or an admission.
//!
//! The targets are those of `fuzz/`, which `make fuzz` drives with libFuzzer. Here they get mutations of the committed corpus,
//! the same in every run.

mod mutate;
mod table;
#[path = "../../../fuzz/targets/mod.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};

use mutate::Mutator;
use targets::TARGETS;

/// How many mutations each target gets.
fn mutations(target: &str) -> usize {
    match target {
        // Each is a connection.
        "http" | "http_query" => 1_000,
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

fn survives(name: &str) {
    let target = TARGETS.iter().find(|(target, _)| *target == name).unwrap().1;
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
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            survives(stringify!($name));
        })+

        /// Each of them, and with each folder of the corpus.
        #[test]
        fn every_target_is_driven() {
            let sorted = |mut names: Vec<String>| {
                names.sort();
                names
            };
            let driven = sorted(vec![$(stringify!($name).to_owned()),+]);
            let targets = TARGETS.iter().map(|(name, _)| (*name).to_owned());
            assert_eq!(driven, sorted(targets.collect()));
            let folders = std::fs::read_dir(zae_limiter_testing::workspace().join("fuzz/corpus")).unwrap();
            let corpora = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert_eq!(driven, sorted(corpora.collect()));
        }
    };
}

targets! {
    items,
    options,
    limit,
    money,
    keys,
    stream,
    limits_file,
    prices,
    command_line,
    cursor,
    http,
    http_query,
}
