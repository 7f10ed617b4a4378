//! The files for people who deploy with other tools.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use zae_limiter_template::export;
use zae_limiter_template::{
    CodeBucket, CodeLocation, FunctionCode, LambdaFunction, StackName, StackOptions, render,
};

use crate::variants;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn rendered() -> PathBuf {
    root().join("template/rendered")
}

fn paths_below(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if path == ".terraform" || path == ".terraform.lock.hcl" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            paths.extend(paths_below(&entry.path(), &format!("{path}/")));
        } else {
            paths.insert(path);
        }
    }
    paths
}

#[test]
fn the_folder_rendered_is_what_the_code_renders() {
    let files = export::files(&StackOptions::default()).unwrap();
    let paths: BTreeSet<_> = files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(paths_below(&rendered(), ""), paths, "run: make template");
    for file in files {
        let written = fs::read_to_string(rendered().join(&file.path)).unwrap();
        assert!(
            written == file.contents,
            "{} differs from the code; run: make template",
            file.path
        );
    }
}

#[test]
fn a_stack_of_the_exported_template_is_the_same_as_one_that_we_deploy() {
    let bucket = CodeBucket::of(&StackOptions::builder().code_bucket("archives").build().unwrap());
    let object = |key: &str| CodeLocation::Object {
        bucket: bucket.clone(),
        key: key.to_owned(),
    };
    let code = FunctionCode::none()
        .with(LambdaFunction::Aggregator, object("a.zip"))
        .with(LambdaFunction::Archiver, object("b.zip"));
    let given = [
        ("CodeBucket", "archives"),
        ("AggregatorCodeKey", "a.zip"),
        ("ArchiverCodeKey", "b.zip"),
    ];
    let parameters: BTreeMap<_, _> = given
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let variants = [
        StackOptions::builder(),
        variants::everything(),
        variants::nothing_optional(),
        variants::enterprise(),
        variants::alternatives(),
    ];
    for options in variants.map(|variant| variant.build().unwrap()) {
        let exported = export::cloudformation(&options).unwrap();
        let ours = render(&StackName::parse("limiter").unwrap(), &options, &code).unwrap();
        assert!(!exported.deploys_the_same_as(&ours));
        let deployed = exported.resolved("limiter", &parameters);
        assert_eq!(deployed.what_deploys(), ours.what_deploys());
    }
}

#[test]
fn the_book_has_the_grafana_dashboard_with_the_panels_of_the_model() {
    let book = root().join("docs/operate/grafana.json");
    assert_eq!(
        fs::read_to_string(book).unwrap(),
        export::grafana(),
        "run: make template"
    );
}

#[test]
fn the_export_has_every_file_of_the_terraform_modules() {
    let folder = root().join("terraform");
    let files = export::terraform(&StackOptions::default()).unwrap();
    let paths: BTreeSet<_> = files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(
        paths_below(&folder, ""),
        paths,
        "list the files in template/src/export/terraform.rs"
    );
    for file in files {
        let written = fs::read_to_string(folder.join(&file.path)).unwrap();
        assert!(written == file.contents, "{}; run: make template", file.path);
    }
}

/// Terraform reads the file when the module is the root; a call of the module takes the values from it.
#[test]
fn options_of_an_export_are_values_of_the_modules_variables() {
    let named = |options: &StackOptions| {
        let files = export::terraform(options).unwrap();
        files
            .into_iter()
            .find(|file| file.path == "zae-limiter.auto.tfvars.json")
    };
    assert!(named(&StackOptions::default()).is_none());
    let options = StackOptions::builder()
        .lambda_memory(512)
        .snapshot_windows("monthly,hourly");
    let values = named(&options.build().unwrap()).unwrap().contents;
    let values: Value = serde_json::from_str(&values).unwrap();
    assert_eq!(
        values,
        json!({ "lambda_memory": 512, "snapshot_windows": ["hourly", "monthly"] })
    );
}

/// Formatting is judged by Terraform itself where it is installed.
#[test]
fn the_modules_are_formatted_as_terraform_formats_them() {
    let checked = Command::new("terraform")
        .args(["fmt", "-check", "-diff", "-recursive"])
        .arg(root().join("terraform"))
        .output();
    let Ok(output) = checked else {
        eprintln!("skipped: terraform is not installed");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
