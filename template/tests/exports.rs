//! The files for people who deploy with other tools.

use crate::variants;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use hcl::{Body, Expression};
use zae_limiter_template::export::{self, File};
use zae_limiter_template::{
    CodeBucket, CodeLocation, FunctionCode, LambdaFunction, StackName, StackOptions, Template, render,
};

fn rendered() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered")
}

fn paths_below(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
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
    let files = export::files(&StackOptions::default()).unwrap();
    let rendered = contents(&files, "grafana/zae-limiter.json");
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate/grafana.json");
    let copied = fs::read_to_string(book).unwrap();
    assert_eq!(
        copied, rendered,
        "run: cp template/rendered/grafana/zae-limiter.json docs/operate/grafana.json"
    );
}

fn module(options: &StackOptions) -> Vec<File> {
    export::terraform_wrapper(options).unwrap()
}

fn contents<'a>(files: &'a [File], path: &str) -> &'a str {
    &files
        .iter()
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("{path} is missing"))
        .contents
}

fn parse(files: &[File], path: &str) -> Body {
    hcl::parse(contents(files, path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn labelled(body: &Body, kind: &str) -> BTreeSet<String> {
    let blocks = body.blocks().filter(|block| block.identifier() == kind);
    blocks
        .filter_map(|block| block.labels().last())
        .map(|label| label.as_str().to_owned())
        .collect()
}

fn options() -> Vec<StackOptions> {
    let all = [
        StackOptions::builder(),
        variants::everything(),
        variants::nothing_optional(),
        variants::enterprise(),
        StackOptions::builder().enable_audit_archival(false),
    ];
    all.into_iter().map(|options| options.build().unwrap()).collect()
}

#[test]
fn the_module_passes_exactly_the_parameters_that_the_template_takes() {
    for options in options() {
        let files = module(&options);
        let template = Template::parse(contents(&files, "template.json")).unwrap();
        let main = parse(&files, "main.tf");
        let stack = main.blocks().find(|block| {
            block
                .labels()
                .first()
                .is_some_and(|l| l.as_str() == "aws_cloudformation_stack")
        });
        let stack = stack.unwrap().body();
        let passed = stack
            .attributes()
            .find(|attribute| attribute.key() == "parameters")
            .map(|attribute| {
                let Expression::Object(object) = attribute.expr() else {
                    panic!("parameters are no object")
                };
                object.keys().map(ToString::to_string).collect::<BTreeSet<_>>()
            });
        let taken = template
            .to_value()
            .get("Parameters")
            .and_then(|parameters| parameters.as_object());
        let taken = taken.map(|parameters| parameters.keys().cloned().collect::<BTreeSet<_>>());
        assert_eq!(passed, taken);
        let capabilities = stack
            .attributes()
            .find(|attribute| attribute.key() == "capabilities")
            .unwrap();
        assert_eq!(
            *capabilities.expr(),
            Expression::from(vec!["CAPABILITY_NAMED_IAM"])
        );
    }
}

#[test]
fn the_module_has_an_output_for_each_of_the_templates() {
    for options in options() {
        let files = module(&options);
        let template = Template::parse(contents(&files, "template.json")).unwrap();
        let outputs = parse(&files, "outputs.tf");
        let mut read = BTreeSet::new();
        for block in outputs.blocks() {
            let value = block
                .body()
                .attributes()
                .find(|attribute| attribute.key() == "value")
                .unwrap();
            let text = value.expr().to_string();
            read.insert(
                text.split('"')
                    .nth(1)
                    .unwrap_or_else(|| panic!("{text}"))
                    .to_owned(),
            );
        }
        assert_eq!(read, template.output_names().map(str::to_owned).collect());
        assert_eq!(outputs.blocks().count(), read.len());
    }
}

#[test]
fn every_variable_that_is_used_is_declared_and_the_other_way_round() {
    for options in options() {
        let files = module(&options);
        let declared = labelled(&parse(&files, "variables.tf"), "variable");
        let main = contents(&files, "main.tf");
        let used: BTreeSet<_> = main
            .split("var.")
            .skip(1)
            .map(|rest| {
                rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(used, declared);
    }
}

#[test]
fn the_example_sets_the_variables_that_have_no_default() {
    for options in options() {
        let files = module(&options);
        let variables = parse(&files, "variables.tf");
        let required: BTreeSet<_> = variables
            .blocks()
            .filter(|block| {
                !block
                    .body()
                    .attributes()
                    .any(|attribute| attribute.key() == "default")
            })
            .map(|block| block.labels()[0].as_str().to_owned())
            .collect();
        let example = parse(&files, "example/main.tf");
        let call = example
            .blocks()
            .find(|block| block.identifier() == "module")
            .unwrap();
        let mut set: BTreeSet<_> = call
            .body()
            .attributes()
            .map(|attribute| attribute.key().to_owned())
            .collect();
        set.remove("source");
        assert_eq!(set, required);
        let outputs = labelled(&parse(&files, "outputs.tf"), "output");
        let text = contents(&files, "example/main.tf");
        for rest in text.split("module.limiter.").skip(1) {
            let used = rest.split_whitespace().next().unwrap();
            assert!(outputs.contains(used), "{used} is no output");
        }
    }
}

#[test]
fn the_module_writes_the_version_record_that_keeps_old_clients_off_our_functions() {
    let files = module(&StackOptions::default());
    let main = parse(&files, "main.tf");
    let item = main.blocks().find(|block| {
        block
            .labels()
            .first()
            .is_some_and(|l| l.as_str() == "aws_dynamodb_table_item")
    });
    let item = item.unwrap().body();
    let text = item
        .attributes()
        .find(|attribute| attribute.key() == "item")
        .unwrap()
        .expr()
        .to_string();
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(" ");
    for expected in [
        "lambda_version",
        "NULL = true",
        "client_min_version",
        "\"0.0.0\"",
        "schema_version",
        "\"0.8.0\"",
    ] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    let lifecycle = item
        .blocks()
        .find(|block| block.identifier() == "lifecycle")
        .unwrap();
    assert!(
        lifecycle
            .body()
            .attributes()
            .any(|attribute| attribute.key() == "ignore_changes")
    );
}

#[test]
fn the_template_of_the_module_fits_a_request() {
    for options in options() {
        assert!(contents(&module(&options), "template.json").len() <= Template::LONGEST_BODY);
    }
}

/// Formatting is judged by Terraform itself where it is installed; parsing is judged everywhere.
#[test]
fn the_module_is_formatted_as_terraform_wants_it() {
    for (number, options) in options().iter().enumerate() {
        let mut files = module(options);
        files.extend(export::terraform(options).unwrap().into_iter().map(|file| File {
            path: format!("native/{}", file.path),
            ..file
        }));
        let folder = env::temp_dir().join(format!("zae-limiter-terraform-{}-{number}", std::process::id()));
        for file in files
            .iter()
            .filter(|file| Path::new(&file.path).extension() == Some("tf".as_ref()))
        {
            assert!(hcl::parse(&file.contents).is_ok(), "{}", file.path);
            assert!(
                file.contents.ends_with("}\n") && !file.contents.contains('\t'),
                "{}",
                file.path
            );
            let path = folder.join(&file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &file.contents).unwrap();
        }
        let checked = Command::new("terraform")
            .args(["fmt", "-check", "-diff", "-recursive"])
            .arg(&folder)
            .output();
        fs::remove_dir_all(&folder).unwrap();
        if let Ok(output) = checked {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            );
        }
    }
}

#[test]
fn archives_of_two_modules_in_one_bucket_are_two_objects() {
    let files = module(&StackOptions::default());
    let main = contents(&files, "main.tf");
    for function in ["aggregator", "archiver"] {
        let key = format!("key         = \"${{var.name}}/${{filesha256(var.{function}_zip)}}.zip\"");
        assert!(main.contains(&key), "{main}");
    }
}

#[test]
fn the_longest_name_of_a_module_is_the_longest_whose_names_all_fit() {
    let longest = |options: StackOptions| {
        let files = module(&options);
        let variables = contents(&files, "variables.tf").to_owned();
        let rest = variables.split_once("[A-Za-z0-9-]{2,").unwrap().1;
        1 + rest.split_once('}').unwrap().0.parse::<usize>().unwrap()
    };
    assert_eq!(longest(StackOptions::default()), 53);
    // Without functions it is the longest that a stack's name may be.
    assert_eq!(longest(variants::nothing_optional().build().unwrap()), 55);
    let formatted = StackOptions::builder().role_name_format("a-company-prefix-{}-PowerUser");
    let formatted = formatted.build().unwrap();
    let most = longest(formatted.clone());
    assert!(most < 53, "{most}");
    let name = |length: usize| StackName::parse("a".repeat(length)).unwrap();
    assert!(formatted.check_name(&name(most)).is_ok());
    assert!(formatted.check_name(&name(most + 1)).is_err());
}
