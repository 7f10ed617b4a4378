//! The examples.

use std::collections::BTreeSet;

use serde_json::json;
use zae_limiter_template::StackOptions;

use crate::terraform::compare::{files_below, ids, module};
use crate::terraform::evaluate::{Module, labels};

const EXAMPLES: [(&str, &str); 5] = [
    ("basic", ""),
    ("cloudformation", "modules/cloudformation/"),
    ("complete", ""),
    ("existing-table", ""),
    ("limits", ""),
];

#[test]
fn every_example_has_the_files_of_a_root_module() {
    let files = files_below("examples/");
    let names: BTreeSet<_> = files.keys().map(|path| path.split('/').next().unwrap()).collect();
    assert_eq!(names, EXAMPLES.map(|(name, _)| name).into());
    for (name, _) in EXAMPLES {
        for file in [
            "README.md",
            "main.tf",
            "outputs.tf",
            "variables.tf",
            "versions.tf",
        ] {
            assert!(files.contains_key(&format!("{name}/{file}")), "{name}/{file}");
        }
    }
}

#[test]
fn examples_set_variables_that_exist_and_read_outputs_that_exist() {
    for (name, folder) in EXAMPLES {
        let called = Module::new(&files_below(folder), folder, ids());
        let named = |kind: &'static str| -> BTreeSet<String> {
            called
                .blocks(kind)
                .map(|block| block.labels()[0].as_str().to_owned())
                .collect()
        };
        let (variables, outputs) = (named("variable"), named("output"));
        let resources: BTreeSet<_> = called
            .blocks("resource")
            .map(|block| {
                let (kind, name) = labels(block);
                format!("{kind}.{name}")
            })
            .collect();
        let example = files_below(&format!("examples/{name}/"));
        let body = hcl::parse(&example["main.tf"]).unwrap();
        let call = body
            .blocks()
            .find(|block| block.identifier() == "module")
            .unwrap();
        let arguments: BTreeSet<_> = call
            .body()
            .attributes()
            .map(|argument| argument.key().to_owned())
            .collect();
        for argument in arguments.iter().filter(|argument| *argument != "source") {
            assert!(variables.contains(argument), "{name}: {argument}");
        }
        let text = [example["main.tf"].as_str(), &example["outputs.tf"]].concat();
        for rest in text.split("module.limiter.").skip(1) {
            let used: String = rest
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "_.".contains(*c))
                .collect();
            assert!(
                outputs.contains(&used) || resources.contains(&used),
                "{name}: {used}"
            );
        }
        if name == "complete" {
            let missing: Vec<_> = StackOptions::fields()
                .into_iter()
                .map(|field| field.name)
                .filter(|field| !arguments.contains(*field))
                .collect();
            let elsewhere = [
                "archive_bucket",
                "code_bucket",
                "code_directory",
                "aggregator_code_key",
                "archiver_code_key",
            ];
            assert_eq!(missing, elsewhere, "the complete example lacks options");
        }
    }
}

/// An example whose values the module refuses would be found at the first plan.
#[test]
fn the_complete_example_has_values_that_the_module_accepts() {
    let example = files_below("examples/complete/");
    let body = hcl::parse(&example["main.tf"]).unwrap();
    let call = body
        .blocks()
        .find(|block| block.identifier() == "module")
        .unwrap();
    let mut given = serde_json::Map::new();
    for argument in call.body().attributes() {
        let value = match argument.key() {
            "source" => continue,
            "release" => {
                json!({ "url": "https://example.com", "version": "1.2.3", "sha256": { "aggregator": "a".repeat(64), "archiver": "b".repeat(64) } })
            }
            "kms_key_arn" => json!(crate::variants::KEY),
            "alarm_sns_topic" => json!(crate::variants::TOPIC),
            "aggregator_role_arn" | "archiver_role_arn" => json!(null),
            _ => {
                let value: hcl::Value = argument.expr().clone().into();
                serde_json::to_value(&value).unwrap()
            }
        };
        given.insert(argument.key().to_owned(), value);
    }
    if let Err(broken) = module().evaluate(&given) {
        panic!("{broken:#?}");
    }
}
