//! The Terraform module of native resources, evaluated and compared with the CloudFormation template.

#![allow(clippy::unwrap_used, clippy::panic)]

mod cloudformation;
mod evaluate;
mod functions;
mod schema;
#[path = "../variants/mod.rs"]
mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use zae_limiter_template::{
    Accepts, FunctionCode, LambdaFunction, MANAGED_BY_TERRAFORM, StackName, StackOptions,
    StackOptionsBuilder, Template, export, render, stack_tags,
};

use cloudformation::Resource;
use evaluate::{Evaluated, Module, attribute, labels};
use schema::Schema;

fn folder() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered/terraform");
    folder.to_str().unwrap().to_owned()
}

fn snake_case(name: &str) -> String {
    let name = name
        .replace("DynamoDB", "Dynamodb")
        .replace("DLQ", "Dlq")
        .replace("GSI", "Gsi");
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// The logical ids of the stack, by the names of the module's resources.
fn ids() -> BTreeMap<String, String> {
    let lines = include_str!("../../logical-ids.txt").lines();
    lines
        .map(|line| line.split_once(' ').unwrap().0)
        .map(|id| (snake_case(id), id.to_owned()))
        .collect()
}

/// The module with the default options, parsed once.
fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(parsed)
}

fn parsed() -> Module {
    let files = export::terraform(&StackOptions::default()).unwrap();
    let files = files.into_iter().map(|file| (file.path, file.contents)).collect();
    Module::new(&files, &folder(), ids())
}

/// The options as variables of the module, with the functions' archives as objects that exist.
fn variables(name: &str, options: &StackOptions) -> Map<String, Value> {
    let given = serde_json::to_value(options.to_builder()).unwrap();
    let mut variables = given.as_object().unwrap().clone();
    let windows: Vec<_> = options
        .snapshot_windows()
        .iter()
        .map(ToString::to_string)
        .collect();
    variables.insert("snapshot_windows".into(), json!(windows));
    variables.insert("name".into(), json!(name));
    variables
}

fn with_code(options: StackOptionsBuilder) -> StackOptions {
    let options = options
        .code_bucket("code")
        .aggregator_code_key("a.zip")
        .archiver_code_key("b.zip");
    options.build().unwrap()
}

/// The template's values with tokens for references, as the evaluator has them.
fn resolved(value: &Value, log_groups: &BTreeSet<&str>) -> Value {
    let token = |id: &str, attribute: &str| {
        // The ARN of a log group covers its streams; Terraform's does not.
        let streams = if log_groups.contains(id) && attribute == "Arn" {
            ":*"
        } else {
            ""
        };
        format!("<{id}.{attribute}>{streams}")
    };
    match value {
        Value::Object(fields) if fields.len() == 1 => match fields.iter().next().unwrap() {
            (key, Value::String(id)) if key == "Ref" => json!(format!("<{id}>")),
            (key, Value::Array(parts)) if key == "Fn::GetAtt" => {
                json!(token(parts[0].as_str().unwrap(), parts[1].as_str().unwrap()))
            }
            (key, Value::String(text)) if key == "Fn::Sub" => {
                let mut out = String::new();
                for (place, part) in text.split("${").enumerate() {
                    let Some((name, rest)) = part.split_once('}').filter(|_| place > 0) else {
                        out += part;
                        continue;
                    };
                    let reference = match name.split_once('.') {
                        Some((id, attribute)) => token(id, attribute),
                        None => format!("<{name}>"),
                    };
                    out.extend([reference.as_str(), rest]);
                }
                json!(out)
            }
            (key, value) => json!({ key: resolved(value, log_groups) }),
        },
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), resolved(value, log_groups)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| resolved(item, log_groups)).collect(),
        leaf => leaf.clone(),
    }
}

/// Numbers alike, whole or not; JSON in text parsed; dimensions in any order.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let value = match (key.as_str(), value) {
                    ("DashboardBody" | "Pattern", Value::String(text)) => serde_json::from_str(text).unwrap(),
                    ("Dimensions", Value::Array(items)) => {
                        let by_name = items
                            .iter()
                            .map(|item| (item["Name"].as_str().unwrap().to_owned(), item["Value"].clone()));
                        Value::Object(by_name.collect())
                    }
                    _ => value.clone(),
                };
                (key.clone(), normal(&value))
            };
            fields.iter().map(field).collect()
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        leaf => leaf.clone(),
    }
}

fn expected(
    name: &StackName,
    options: &StackOptions,
    template: &Template,
    evaluated: &Evaluated,
    schema: &Schema,
) -> BTreeMap<String, Resource> {
    let log_groups: BTreeSet<_> = template
        .resources()
        .filter(|(_, resource)| resource["Type"] == "AWS::Logs::LogGroup")
        .map(|(id, _)| id)
        .collect();
    let retained: BTreeSet<_> = template.retained().collect();
    let mut expected = BTreeMap::new();
    let ids = ids();
    let made = cloudformation::stack(&evaluated.resources, &ids);
    for (id, resource) in template.resources() {
        let mut properties = resolved(&resource["Properties"], &log_groups);
        let mut tags: BTreeMap<_, _> = stack_tags(name, options)
            .into_iter()
            .map(|tag| (tag.key, tag.value))
            .collect();
        tags.insert("ManagedBy".to_owned(), MANAGED_BY_TERRAFORM.to_owned());
        if let Some(own) = properties.as_object_mut().unwrap().remove("Tags") {
            for tag in own.as_array().unwrap() {
                tags.insert(
                    tag["Key"].as_str().unwrap().to_owned(),
                    tag["Value"].as_str().unwrap().to_owned(),
                );
            }
        }
        let made = made
            .get(id)
            .unwrap_or_else(|| panic!("the module does not make {id}"));
        assert_eq!(resource["Type"], made.kind, "{id}");
        let kind = evaluated
            .resources
            .keys()
            .find(|(kind, name)| ids.get(name).is_some_and(|known| known == id) && schema.has_tags(kind));
        expected.insert(
            id.to_owned(),
            Resource {
                kind: made.kind,
                properties: normal(&properties),
                retained: retained.contains(id),
                tags: kind.map(|_| tags),
            },
        );
    }
    expected
}

fn evaluated(name: &StackName, options: &StackOptions) -> Evaluated {
    let evaluated = module().evaluate(&variables(name.as_str(), options));
    evaluated.unwrap_or_else(|broken| panic!("{broken:#?}"))
}

/// Resource by resource, property by property, in both directions; then the outputs, and the provider's schema.
fn compare(name: &str, options: StackOptionsBuilder) {
    let options = with_code(options);
    let name = StackName::parse(name).unwrap();
    let template = render(&name, &options, &FunctionCode::of(&options)).unwrap();
    let evaluated = evaluated(&name, &options);
    let mut made = cloudformation::stack(&evaluated.resources, &ids());
    for resource in made.values_mut() {
        resource.properties = normal(&resource.properties);
    }
    let schema = Schema::read();
    let expected = expected(&name, &options, &template, &evaluated, &schema);
    let ids = |resources: &BTreeMap<String, Resource>| resources.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(ids(&made), ids(&expected), "the same resources");
    for (id, resource) in &made {
        assert_eq!(*resource, expected[id], "{id}");
    }
    compare_outputs(&evaluated, &template);
    for (section, instances) in [
        ("resource_schemas", &evaluated.resources),
        ("data_source_schemas", &evaluated.data),
    ] {
        for ((kind, name), value) in instances.iter().filter(|((kind, _), _)| kind != "terraform_data") {
            let findings = schema.findings(section, kind, value);
            assert!(findings.is_empty(), "{kind}.{name}: {findings:#?}");
        }
    }
}

fn compare_outputs(evaluated: &Evaluated, template: &Template) {
    let expected: BTreeMap<_, _> = template
        .output_names()
        .map(|name| {
            let value = &template.to_value()["Outputs"][name]["Value"];
            (snake_case(name), resolved(value, &BTreeSet::new()))
        })
        .collect();
    let made: BTreeMap<_, _> = evaluated
        .outputs
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // An existing bucket or role is named whether or not something uses it.
    let unused = |name: &str| name.starts_with("audit_archive_bucket") || name.ends_with("_role_arn");
    for (name, value) in &made {
        assert!(
            expected.get(name) == Some(value) || (unused(name) && !expected.contains_key(name)),
            "{name}: {value}"
        );
    }
    for name in expected.keys() {
        assert!(made.contains_key(name), "{name} is missing");
    }
}

#[test]
fn the_module_is_the_template_for_every_variant() {
    let variants = [
        StackOptions::builder(),
        variants::everything(),
        variants::nothing_optional(),
        variants::enterprise(),
        variants::alternatives(),
        StackOptions::builder().create_iam(false),
        StackOptions::builder()
            .enable_aggregator(false)
            .enable_dashboard(true),
        StackOptions::builder()
            .enable_audit_archival(false)
            .enable_dashboard(true),
        variants::nothing_optional().enable_dashboard(true),
    ];
    for options in variants {
        compare("limiter", options);
    }
    compare(variants::LONGEST_NAME, variants::everything());
}

/// Each option at a value that is not its default, alone.
#[test]
fn every_option_does_to_the_module_what_it_does_to_the_template() {
    for field in StackOptions::fields() {
        let value = match (&field.default, field.accepts) {
            _ if [
                "code_bucket",
                "code_directory",
                "aggregator_code_key",
                "archiver_code_key",
            ]
            .contains(&field.name) =>
            {
                continue;
            }
            (Value::Bool(on), _) => json!(!on),
            (_, Accepts::Range { least, .. }) if field.default == json!(least) => json!(least + 1),
            (_, Accepts::Range { least, .. }) => json!(least),
            (_, Accepts::Numbers(numbers)) => json!(numbers.last()),
            (_, Accepts::OneOf(words)) => json!(words.iter().find(|word| field.default != **word)),
            (_, Accepts::Windows) => json!(["monthly", "hourly"]),
            (_, Accepts::Tags) => json!({ "team": "search" }),
            _ => match field.name {
                "kms_key_arn" => json!(variants::KEY),
                "alarm_sns_topic" => json!(variants::TOPIC),
                "archive_bucket" => json!("company-archive"),
                "permission_boundary" => json!("team/boundary"),
                "role_name_format" | "policy_name_format" => json!("a-{}-b"),
                "aggregator_role_arn" | "archiver_role_arn" => json!("arn:aws:iam::123456789012:role/mine"),
                other => panic!("give {other} a value"),
            },
        };
        let mut options = json!({ field.name: value });
        if field.name == "create_iam" {
            options["aggregator_role_arn"] = json!("arn:aws:iam::123456789012:role/mine");
        }
        if field.name == "audit_archive_object_lock_mode" {
            options["audit_archive_object_lock_days"] = json!(30);
        }
        compare("limiter", serde_json::from_value(options).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_module_is_the_template_for_any_options(
        on in prop::collection::vec(any::<bool>(), 12),
        memory in 128_i64..=3008,
        timeout in 1_i64..=900,
        pct in 1_i64..=100,
        errors in 0_i64..=99,
        name in "[a-zA-Z][a-zA-Z0-9-]{2,54}",
    ) {
        let options = StackOptions::builder()
            .enable_aggregator(on[0])
            .enable_audit_archival(on[1])
            .enable_alarms(on[2])
            .create_iam(on[3])
            .create_iam_roles(on[3] && on[4])
            .enable_tracing(on[5])
            .enable_dashboard(on[6])
            // A region makes names longer.
            .regional_iam_names(on[7] && name.len() <= 40)
            .lambda_memory(memory)
            .lambda_timeout(timeout)
            .lambda_duration_threshold_pct(pct)
            .alarm_error_rate_pct(errors);
        let options = if on[8] { options.kms_key_arn(variants::KEY) } else { options };
        let options = if on[9] { options.archive_bucket("archive") } else { options };
        let options = if on[10] { options.aggregator_role_arn("arn:aws:iam::123456789012:role/a") } else { options };
        let options = if on[11] { options.archiver_role_arn("arn:aws:iam::123456789012:role/b") } else { options };
        compare(&name, options);
    }
}

/// The comparison must be able to fail.
#[test]
fn a_module_that_differs_is_noticed() {
    let name = StackName::parse("limiter").unwrap();
    let options = with_code(StackOptions::builder());
    let evaluated = evaluated(&name, &options);
    let schema = Schema::read();
    let queue = &evaluated.resources[&("aws_sqs_queue".to_owned(), "aggregator_dlq".to_owned())];
    for (attribute, value) in [
        ("visibility", json!(1)),
        ("visibility_timeout_seconds", json!("x")),
        ("arn", json!("a")),
    ] {
        let mut changed = queue.clone();
        changed[attribute] = value;
        assert_eq!(
            schema
                .findings("resource_schemas", "aws_sqs_queue", &changed)
                .len(),
            1,
            "{attribute}"
        );
    }
    let mut resources = evaluated.resources;
    let key = ("aws_sqs_queue".to_owned(), "aggregator_dlq".to_owned());
    resources.get_mut(&key).unwrap()["delay_seconds"] = json!(1);
    let extra = std::panic::catch_unwind(|| cloudformation::stack(&resources, &ids()));
    assert!(extra.is_err(), "an attribute that CloudFormation does not have");
}

#[test]
fn every_option_is_a_variable_with_its_default() {
    let module = module();
    let declared: BTreeMap<_, _> = module
        .blocks("variable")
        .map(|block| (block.labels()[0].as_str().to_owned(), block))
        .collect();
    let own = ["name", "release", "write_version_record"];
    let options: BTreeSet<_> = StackOptions::fields()
        .iter()
        .map(|field| field.name)
        .chain(own)
        .collect();
    assert_eq!(
        declared.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        options
    );
    for field in StackOptions::fields() {
        let default = attribute(declared[field.name].body(), "default")
            .unwrap()
            .to_string();
        let default: String = default.split_whitespace().collect();
        let expected = match &field.default {
            Value::String(_) if field.accepts == Accepts::Windows => "[\"hourly\",\"daily\"]".to_owned(),
            other => other.to_string(),
        };
        assert_eq!(default, expected, "{}", field.name);
    }
}

/// Our own rules and those of the module, on the same values.
#[test]
fn the_module_refuses_what_we_refuse() {
    let cases = [
        ("usage_retention_days", json!(90), true),
        ("usage_retention_days", json!(0), false),
        ("usage_retention_days", json!(3651), false),
        ("pitr_recovery_days", json!(36), false),
        ("pitr_recovery_days", json!(null), true),
        ("log_retention_days", json!(2), false),
        ("log_retention_days", json!(3653), true),
        ("snapshot_windows", json!(["monthly"]), true),
        ("snapshot_windows", json!([]), false),
        ("snapshot_windows", json!(["weekly"]), false),
        ("stream_start", json!("latest"), true),
        ("stream_start", json!("LATEST"), false),
        ("kms_key_arn", json!(variants::KEY), true),
        ("kms_key_arn", json!("alias/mine"), false),
        ("archive_bucket", json!("a..b"), false),
        ("archive_bucket", json!("a.b"), true),
        ("archive_bucket", json!("A"), false),
        ("role_name_format", json!("x"), false),
        (
            "role_name_format",
            json!(format!("{}{{}}", "x".repeat(54))),
            false,
        ),
        ("role_name_format", json!("pb-{}"), true),
        ("permission_boundary", json!("a b"), false),
        ("tags", json!({ "team": "search" }), true),
        ("tags", json!({ "AWS:x": "y" }), false),
        ("tags", json!({ "ManagedBy": "me" }), false),
        ("tags", json!({ "zae-limiter:x": "me" }), false),
        ("tags", json!({ "": "x" }), false),
        ("tags", json!({ "a": "b#" }), false),
        ("tags", json!({ "a".repeat(129): "b" }), false),
        ("tags", json!({ "a": "b".repeat(257) }), false),
        ("create_iam_roles", json!(true), true),
        ("audit_archive_object_lock_days", json!(36_501), false),
    ];
    let module = module();
    for (field, value, fine) in cases {
        let ours = StackOptions::from_value(json!({ field: value }));
        assert_eq!(ours.is_ok(), fine, "{field} = {value}: {ours:?}");
        let mut given = variables("limiter", &with_code(StackOptions::builder()));
        given.insert(field.to_owned(), value.clone());
        assert_eq!(module.evaluate(&given).is_ok(), fine, "{field} = {value}");
    }
    for (name, fine) in [
        ("abc", true),
        ("ab", false),
        ("1ab", false),
        ("a_b", false),
        (variants::LONGEST_NAME, true),
    ] {
        assert_eq!(StackName::parse(name).is_ok(), fine, "{name}");
        let given = variables(name, &with_code(StackOptions::builder()));
        assert_eq!(module.evaluate(&given).is_ok(), fine, "{name}");
    }
}

#[test]
fn the_module_refuses_options_that_contradict_each_other() {
    let module = module();
    let cases = [
        (
            json!({ "create_iam_roles": true, "create_iam": false }),
            "create_iam_roles",
        ),
        (
            json!({ "archive_bucket": "archive", "audit_archive_object_lock_days": 1 }),
            "audit_archive_object_lock_days",
        ),
        (
            json!({ "aggregator_code_key": "a.zip", "archiver_code_key": "b.zip" }),
            "aggregator_code_key",
        ),
        (
            json!({ "role_name_format": format!("{}-{{}}", "x".repeat(50)) }),
            "role",
        ),
    ];
    for (options, message) in cases {
        let mut given = options.as_object().unwrap().clone();
        given.insert("name".into(), json!("a-name-of-a-stack"));
        given.entry("code_directory").or_insert_with(|| json!("archives"));
        let broken = module.evaluate(&given).map(|_| ()).unwrap_err();
        assert!(broken.iter().all(|line| line.contains(message)), "{broken:?}");
    }
    let none = json!({ "name": "limiter" });
    let broken = std::panic::catch_unwind(|| module.evaluate(none.as_object().unwrap()).map(|_| ()));
    assert!(!matches!(broken, Ok(Ok(()))), "functions without code");
}

fn function(given: &Value) -> (Evaluated, Value) {
    let evaluated = module().evaluate(given.as_object().unwrap()).unwrap();
    let function =
        evaluated.resources[&("aws_lambda_function".to_owned(), "aggregator_function".to_owned())].clone();
    (evaluated, function)
}

#[test]
fn archives_come_from_a_directory_a_release_or_a_bucket() {
    let (_, local) = function(&json!({ "name": "limiter", "code_directory": "built" }));
    assert_eq!(local["filename"], "built/aggregator.zip");
    assert_eq!(
        local["source_code_hash"],
        "<base64sha256 of built/aggregator.zip>"
    );
    assert!(local.get("s3_bucket").is_none());

    let sums = json!({ "aggregator": "a".repeat(64), "archiver": "b".repeat(64) });
    let release = json!({ "url": "https://example.com/releases", "version": "1.2.3", "sha256": sums });
    let (evaluated, released) = function(&json!({ "name": "limiter", "release": release }));
    let file = format!("./.terraform/zae-limiter/{}.zip", "a".repeat(64));
    assert_eq!(released["filename"], file.as_str());
    let download = &evaluated.resources[&("terraform_data".to_owned(), "aggregator_archive".to_owned())];
    let command = download["provisioner"][0]["command"].as_str().unwrap();
    assert!(
        command.contains("https://example.com/releases/v1.2.3/zae-limiter-aggregator-x86_64.zip"),
        "{command}"
    );
    assert!(
        command.ends_with(&format!("grep --quiet '^{} '", "a".repeat(64))),
        "{command}"
    );

    let (evaluated, uploaded) =
        function(&json!({ "name": "limiter", "code_directory": "built", "code_bucket": "code" }));
    assert_eq!(
        (&uploaded["s3_bucket"], &uploaded["s3_key"]),
        (&json!("code"), &json!("<aggregator_archive.Key>"))
    );
    let object = &evaluated.resources[&("aws_s3_object".to_owned(), "aggregator_archive".to_owned())];
    assert_eq!(
        object["key"], "limiter/<sha256 of built/aggregator.zip>.zip",
        "two modules in one bucket have two objects"
    );
}

#[test]
fn what_cloudformation_retains_and_the_version_record_survive() {
    let evaluated = evaluated(
        &StackName::parse("limiter").unwrap(),
        &with_code(StackOptions::builder()),
    );
    let protected: Vec<_> = evaluated
        .resources
        .iter()
        .filter(|(_, value)| value["lifecycle"][0]["prevent_destroy"] == "true")
        .map(|((kind, _), _)| kind.as_str())
        .collect();
    assert_eq!(
        protected,
        ["aws_dynamodb_table", "aws_dynamodb_table_item", "aws_s3_bucket"]
    );
    let record = &evaluated.resources[&("aws_dynamodb_table_item".to_owned(), "version".to_owned())];
    assert_eq!(
        record["lifecycle"][0]["ignore_changes"]
            .as_str()
            .unwrap()
            .split_whitespace()
            .collect::<String>(),
        "[item]"
    );
    let item: Value = serde_json::from_str(record["item"].as_str().unwrap()).unwrap();
    // Without the release of a function Python clients leave our functions alone.
    assert_eq!(item["lambda_version"], json!({ "NULL": true }));
    assert_eq!(item["schema_version"], json!({ "S": "0.8.0" }));
}

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
