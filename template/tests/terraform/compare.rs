//! The module, evaluated, and the template, resolved, in one form.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use zae_limiter_template::{
    FunctionCode, MANAGED_BY_TERRAFORM, StackName, StackOptions, StackOptionsBuilder, Template, export,
    render, stack_tags,
};

use crate::terraform::cloudformation;
use crate::terraform::cloudformation::Resource;
use crate::terraform::evaluate::{Evaluated, Module};
use crate::terraform::schema::Schema;

pub(crate) fn folder() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../terraform");
    folder.to_str().unwrap().to_owned()
}

pub(crate) fn snake_case(name: &str) -> String {
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
pub(crate) fn ids() -> BTreeMap<String, String> {
    let lines = include_str!("../../logical-ids.txt").lines();
    lines
        .map(|line| line.split_once(' ').unwrap().0)
        .map(|id| (snake_case(id), id.to_owned()))
        .collect()
}

/// The module with the default options, parsed once.
pub(crate) fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(parsed)
}

pub(crate) fn parsed() -> Module {
    Module::new(&files_below(""), &folder(), ids())
}

/// The exported files of a folder, by their paths in it.
pub(crate) fn files_below(folder: &str) -> BTreeMap<String, String> {
    let files = export::terraform(&StackOptions::default()).unwrap();
    let below = files
        .into_iter()
        .filter_map(|file| Some((file.path.strip_prefix(folder)?.to_owned(), file.contents)));
    below.collect()
}

/// The options as variables of the module, with the functions' archives as objects that exist.
pub(crate) fn variables(name: &str, options: &StackOptions) -> Map<String, Value> {
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

pub(crate) fn with_code(options: StackOptionsBuilder) -> StackOptions {
    let options = options
        .code_bucket("code")
        .aggregator_code_key("a.zip")
        .archiver_code_key("b.zip");
    options.build().unwrap()
}

/// The template's values with tokens for references, as the evaluator has them.
pub(crate) fn resolved(value: &Value, log_groups: &BTreeSet<&str>) -> Value {
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
pub(crate) fn normal(value: &Value) -> Value {
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

/// The resources of a template, with these tags on everything that has tags.
pub(crate) fn expected(
    template: &Template,
    tags: &BTreeMap<String, String>,
    made: &BTreeMap<String, Resource>,
) -> BTreeMap<String, Resource> {
    let log_groups: BTreeSet<_> = template
        .resources()
        .filter(|(_, resource)| resource["Type"] == "AWS::Logs::LogGroup")
        .map(|(id, _)| id)
        .collect();
    let mut expected = BTreeMap::new();
    for (id, resource) in template.resources() {
        let mut properties = resolved(&resource["Properties"], &log_groups);
        let mut tags = tags.clone();
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
        expected.insert(
            id.to_owned(),
            Resource {
                kind: made.kind,
                properties: normal(&properties),
                retained: resource["DeletionPolicy"]
                    .as_str()
                    .is_some_and(|policy| policy.starts_with("Retain")),
                has_tags: made.has_tags,
                tags: made.has_tags.then_some(tags),
            },
        );
    }
    expected
}

pub(crate) fn evaluated(name: &StackName, options: &StackOptions) -> Evaluated {
    let evaluated = module().evaluate(&variables(name.as_str(), options));
    evaluated.unwrap_or_else(|broken| panic!("{broken:#?}"))
}

/// Resource by resource, property by property, in both directions; then the outputs, and the provider's schema.
pub(crate) fn compare(name: &str, options: StackOptionsBuilder) {
    let options = with_code(options);
    let name = StackName::parse(name).unwrap();
    let template = render(&name, &options, &FunctionCode::of(&options)).unwrap();
    let evaluated = evaluated(&name, &options);
    let mut tags: BTreeMap<_, _> = stack_tags(&name, &options)
        .into_iter()
        .map(|tag| (tag.key, tag.value))
        .collect();
    tags.insert("ManagedBy".to_owned(), MANAGED_BY_TERRAFORM.to_owned());
    compare_resources(&evaluated, &template, &ids(), &tags);
    compare_outputs(&evaluated, &template);
}

/// The resources of a module and those of a template, which have these tags; and the provider's schema.
pub(crate) fn compare_resources(
    evaluated: &Evaluated,
    template: &Template,
    ids: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) {
    let mut made = cloudformation::stack(&evaluated.resources, ids);
    for resource in made.values_mut() {
        resource.properties = normal(&resource.properties);
    }
    let expected = expected(template, tags, &made);
    let ids = |resources: &BTreeMap<String, Resource>| resources.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(ids(&made), ids(&expected), "the same resources");
    for (id, resource) in &made {
        assert_eq!(*resource, expected[id], "{id}");
    }
    let schema = Schema::read();
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

pub(crate) fn compare_outputs(evaluated: &Evaluated, template: &Template) {
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
