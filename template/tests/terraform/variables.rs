//! Each option alone as a variable: type, default, description and rule.

use std::collections::{BTreeMap, BTreeSet};

use hcl::Block;
use serde_json::{Value, json};
use zae_limiter_template::{Accepts, FieldKind, StackOptions};

use crate::terraform::candidates::around;
use crate::terraform::compare::module;
use crate::terraform::evaluate::attribute;

/// The variables that are no options.
const OWN: [&str; 4] = ["archive_bucket_name", "name", "release", "write_version_record"];

fn declared() -> BTreeMap<&'static str, &'static Block> {
    let variables = module().blocks("variable");
    variables
        .map(|block| (block.labels()[0].as_str(), block))
        .collect()
}

fn text(block: &Block, name: &str) -> String {
    let expression = attribute(block.body(), name).unwrap_or_else(|| panic!("{name} is missing"));
    expression.to_string()
}

#[test]
fn every_option_is_a_variable_and_every_variable_an_option() {
    let fields = StackOptions::fields();
    let options: BTreeSet<_> = fields.iter().map(|field| field.name).chain(OWN).collect();
    assert_eq!(declared().into_keys().collect::<BTreeSet<_>>(), options);
}

#[test]
fn every_variable_has_the_type_and_the_default_of_its_option() {
    for field in StackOptions::fields() {
        let block = declared()[field.name];
        let kind = match field.kind {
            FieldKind::Flag => "bool",
            FieldKind::Number => "number",
            FieldKind::Text => "string",
            FieldKind::Windows | FieldKind::List => "list(string)",
            FieldKind::Tags => "map(string)",
        };
        assert_eq!(text(block, "type"), kind, "{}", field.name);
        let default: String = text(block, "default").split_whitespace().collect();
        let expected = match &field.default {
            Value::String(_) if field.accepts == Accepts::Windows => "[\"hourly\",\"daily\"]".to_owned(),
            other => other.to_string(),
        };
        assert_eq!(default, expected, "{}", field.name);
        // Null means the default, as an option that is not set does.
        let nullable = attribute(block.body(), "nullable").map(ToString::to_string);
        let expected = (!field.default.is_null()).then(|| "false".to_owned());
        assert_eq!(nullable, expected, "{}", field.name);
    }
}

/// A variable shows its default apart from its description, so the description does not repeat it.
#[test]
fn every_variable_has_the_description_of_its_option() {
    for field in StackOptions::fields() {
        let expression = attribute(declared()[field.name].body(), "description").unwrap();
        let hcl::Expression::String(description) = expression else {
            panic!("{expression}")
        };
        let (ours, default) = field
            .description
            .split_once(" Default: ")
            .unwrap_or_else(|| panic!("{}", field.name));
        let expected = match field.name {
            // Terraform knows no place where a build puts the archives, and needs no bucket for them.
            "code_directory" => "Directory with `aggregator.zip` and `archiver.zip`.".to_owned(),
            "code_bucket" => format!("{ours} Default: they are sent to Lambda directly."),
            _ if field.default.is_null() => format!("{ours} Default: {default}"),
            _ => ours.to_owned(),
        };
        assert_eq!(*description, expected, "{}", field.name);
    }
}

/// Alone, with the bucket that a key needs.
fn accepted_by_us(field: &str, value: &Value) -> bool {
    let mut options = json!({ "code_bucket": "code" });
    // A VPC needs both, and accounts need a role to assume.
    if !value.as_array().is_some_and(Vec::is_empty) {
        match field {
            "trusted_accounts" => options["create_iam_roles"] = json!(true),
            "lambda_subnet_ids" => options["lambda_security_group_ids"] = json!(["sg-0a1b2c3d"]),
            "lambda_security_group_ids" => options["lambda_subnet_ids"] = json!(["subnet-0a1b2c3d"]),
            _ => {}
        }
    }
    options[field] = value.clone();
    StackOptions::from_value(options).is_ok()
}

#[test]
fn every_variable_accepts_what_its_option_accepts_and_nothing_else() {
    let mut differences = Vec::new();
    for field in StackOptions::fields() {
        let mut seen = BTreeSet::new();
        for value in around(&field) {
            let ours = accepted_by_us(field.name, &value);
            let given = json!({ "name": "limiter", field.name: value });
            let theirs = module().variables(given.as_object().unwrap()).is_ok();
            if ours != theirs {
                differences.push(format!("{} = {value}: accepted by us: {ours}", field.name));
            }
            seen.insert(ours);
        }
        if field.accepts != Accepts::Anything {
            assert_eq!(
                seen.len(),
                2,
                "give {} a value on each side of its rule",
                field.name
            );
        }
        let unset = json!({ "name": "limiter", field.name: null });
        if field.default.is_null() && module().variables(unset.as_object().unwrap()).is_err() {
            differences.push(format!("{} cannot be null", field.name));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}
