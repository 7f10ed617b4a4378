//! The packed functions: what their own benchmarks printed, and the size of their archives.

use std::path::Path;

use crate::results::Results;

pub(crate) const RECORDS: &str = "aggregator, records per second";
pub(crate) const ARCHIVES: [(&str, &str); 3] = [
    ("aggregator", "archive of the aggregator, MB"),
    ("archiver", "archive of the archiver, MB"),
    ("provisioner", "archive of the provisioner, MB"),
];

/// What another benchmark of `scripts/bench` printed before; empty if it did not run.
pub(crate) fn printed(variable: &str) -> String {
    let file = std::env::var_os(variable);
    file.and_then(|file| std::fs::read_to_string(file).ok())
        .unwrap_or_default()
}

/// Adds the best rate of the aggregator and the sizes.
pub(crate) fn measure(results: &mut Results) {
    let printed = printed("ZAE_BENCH_FUNCTIONS");
    // The name of a function heads its lines.
    let lines = printed.lines();
    let lines = lines.skip_while(|line| !line.starts_with("aggregator "));
    let lines = lines.take_while(|line| !line.starts_with("archiver "));
    let before = lines.filter_map(|line| line.split_once(" records/s"));
    let number = |(text, _): (&str, &str)| text.rsplit(' ').next()?.replace(',', "").parse::<f64>().ok();
    if let Some(best) = before.filter_map(number).reduce(f64::max) {
        results.single.push((RECORDS, best));
    }
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x86_64"
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/functions");
    for (function, name) in ARCHIVES {
        let archive = folder.join(architecture).join(format!("{function}.zip"));
        if let Ok(archive) = std::fs::metadata(archive) {
            results.single.push((name, archive.len() as f64 / 1e6));
        }
    }
}
