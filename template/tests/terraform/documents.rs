//! Defaults, examples and the README.

use std::collections::BTreeSet;

use serde_json::json;
use zae_limiter_template::{LambdaFunction, StackName, StackOptions, export};

use crate::terraform::compare::{evaluated, folder, ids, module, with_code};
use crate::terraform::evaluate::{Module, labels};
use crate::variants;

#[test]
fn options_of_an_export_are_the_defaults_of_its_variables() {
    let options = with_code(variants::everything());
    let files = export::terraform(&options).unwrap();
    let files = files.into_iter().map(|file| (file.path, file.contents)).collect();
    let exported = Module::new(&files, &folder(), ids());
    let bare = json!({ "name": "limiter" });
    let by_default = exported.evaluate(bare.as_object().unwrap()).unwrap();
    let by_variables = evaluated(&StackName::parse("limiter").unwrap(), &options);
    assert_eq!(by_default.resources, by_variables.resources);
}

#[test]
fn examples_set_variables_that_exist_and_read_outputs_that_exist() {
    let module = module();
    let named = |kind: &'static str| -> BTreeSet<String> {
        module
            .blocks(kind)
            .map(|block| block.labels()[0].as_str().to_owned())
            .collect()
    };
    let (variables, outputs) = (named("variable"), named("output"));
    let resources: BTreeSet<_> = module
        .blocks("resource")
        .map(|block| {
            let (kind, name) = labels(block);
            format!("{kind}.{name}")
        })
        .collect();
    let files = export::terraform(&StackOptions::default()).unwrap();
    let examples: Vec<_> = files
        .iter()
        .filter(|file| file.path.starts_with("examples/"))
        .collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let body = hcl::parse(&example.contents).unwrap();
        let call = body
            .blocks()
            .find(|block| block.identifier() == "module")
            .unwrap();
        for argument in call
            .body()
            .attributes()
            .filter(|argument| argument.key() != "source")
        {
            assert!(
                variables.contains(argument.key()),
                "{}: {}",
                example.path,
                argument.key()
            );
        }
        for rest in example.contents.split("module.limiter.").skip(1) {
            let used: String = rest
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "_.".contains(*c))
                .collect();
            assert!(
                outputs.contains(&used) || resources.contains(&used),
                "{}: {used}",
                example.path
            );
        }
        if example.path.contains("complete") {
            let set = call.body().attributes().count();
            assert!(
                set > StackOptions::fields().len() - 5,
                "the complete example sets {set} variables"
            );
        }
    }
}

#[test]
fn the_readme_lists_every_variable_and_output_and_addresses_that_exist() {
    let module = module();
    let files = export::terraform(&StackOptions::default()).unwrap();
    let readme = &files
        .iter()
        .find(|file| file.path == "README.md")
        .unwrap()
        .contents;
    for block in module.blocks("variable").chain(module.blocks("output")) {
        let row = format!("| `{}` |", block.labels()[0].as_str());
        assert!(readme.contains(&row), "{row}");
    }
    let resources: BTreeSet<_> = module
        .blocks("resource")
        .map(|block| {
            let (kind, name) = labels(block);
            format!("{kind}.{name}")
        })
        .collect();
    let mut named = 0;
    for rest in readme.split("module.limiter.").skip(1) {
        let address: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "_.".contains(*c))
            .collect();
        assert!(resources.contains(&address), "{address}");
        named += 1;
    }
    assert!(named >= 5, "{named}");
    for function in LambdaFunction::ALL {
        assert!(readme.contains(&format!("{function}.zip")), "{function}");
    }
}
