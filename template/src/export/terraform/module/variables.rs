//! The variables: the name, every option of a stack, and where the functions' archives come from.

use serde_json::{Value, json};
use zae_limiter_schema::StackName;

use super::super::text::escape;
use super::print::Part;
use crate::options::{Accepts, Field, FieldKind, StackOptions};
use crate::{Error, VERSION};

/// A variable of the module.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) kind: String,
    /// The default; a required variable has none.
    pub(super) default: Option<Value>,
    validations: Vec<Validation>,
}

struct Validation {
    condition: String,
    message: String,
}

/// The variables, with the options as defaults.
pub(super) fn all(options: &StackOptions) -> Result<Vec<Variable>, Error> {
    let mut given =
        serde_json::to_value(options.to_builder()).map_err(|source| Error::OptionsValue { source })?;
    let windows: Vec<_> = options
        .snapshot_windows()
        .iter()
        .map(|window| window.as_str())
        .collect();
    given["snapshot_windows"] = json!(windows);
    let mut variables = vec![name()];
    variables.extend(
        StackOptions::fields()
            .into_iter()
            .map(|field| of_option(&field, &given[field.name])),
    );
    variables.push(release());
    variables.push(Variable {
        name: "write_version_record".to_owned(),
        description: "Whether to write the record of the table's version. Set it to false for an existing table that has one."
            .to_owned(),
        kind: "bool".to_owned(),
        default: Some(json!(true)),
        validations: vec![],
    });
    Ok(variables)
}

pub(super) fn parts(variables: &[Variable]) -> Vec<Part> {
    variables
        .iter()
        .map(|variable| Part::new(block(variable)))
        .collect()
}

fn block(variable: &Variable) -> String {
    let default = match &variable.default {
        None => String::new(),
        Some(Value::Null) => "default = null\n".to_owned(),
        Some(value) => format!("default = {}\n nullable = false\n", literal(value)),
    };
    let validations = variable.validations.iter().map(|validation| {
        format!(
            "validation {{\n condition = {}\n error_message = \"{}\"\n }}\n",
            validation.condition,
            escape(&validation.message)
        )
    });
    format!(
        "variable \"{}\" {{\n description = \"{}\"\n type = {}\n {default}{}}}",
        variable.name,
        escape(&variable.description),
        variable.kind,
        validations.collect::<Vec<_>>().concat()
    )
}

/// A value in Terraform's language.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", escape(text)),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("\"{}\" = {}", escape(key), literal(value)))
                .collect();
            if fields.is_empty() {
                "{}".to_owned()
            } else {
                format!("{{ {} }}", fields.join(", "))
            }
        }
        plain => plain.to_string(),
    }
}

fn name() -> Variable {
    let most = StackName::MAX_LENGTH;
    Variable {
        name: "name".to_owned(),
        description: "Name of the table. The names of all other resources start with it.".to_owned(),
        kind: "string".to_owned(),
        default: None,
        validations: vec![Validation {
            condition: format!(
                "can(regex(\"^[A-Za-z][A-Za-z0-9-]{{2,{}}}$\", var.name))",
                most - 1
            ),
            message: format!(
                "name must start with a letter and have 3 to {most} letters, digits and hyphens."
            ),
        }],
    }
}

fn release() -> Variable {
    let sums = "object({ aggregator = optional(string), archiver = optional(string) })";
    let hex = "alltrue([for sum in values(var.release.sha256) : sum == null || can(regex(\"^[0-9a-f]{64}$\", sum))])";
    Variable {
        name: "release".to_owned(),
        description: "Release to download the functions' archives from, with their SHA-256 checksums; url is the address of \
                      the project's releases, such as `https://github.com/OWNER/REPO/releases/download`. Needs curl."
            .to_owned(),
        kind: format!(
            "object({{ url = string, version = optional(string, \"{VERSION}\"), sha256 = {sums} }})"
        ),
        default: Some(Value::Null),
        validations: vec![
            Validation {
                condition: format!("var.release == null ? true : {hex}"),
                message: "release.sha256 must have 64 lower-case hexadecimal digits for each function.".to_owned(),
            },
            Validation {
                condition: "var.release == null ? true : can(regex(\"^https://[!#-&(-~]+$\", var.release.url))"
                    .to_owned(),
                message: "release.url must start with https:// and have no quotes.".to_owned(),
            },
            Validation {
                condition: "var.release == null ? true : can(regex(\"^[0-9]+[.][0-9]+[.][0-9]+$\", var.release.version))"
                    .to_owned(),
                message: "release.version must be a version such as 1.2.3.".to_owned(),
            },
        ],
    }
}

fn of_option(field: &Field, value: &Value) -> Variable {
    let kind = match field.kind {
        FieldKind::Flag => "bool",
        FieldKind::Number => "number",
        FieldKind::Text => "string",
        FieldKind::Windows => "list(string)",
        FieldKind::Tags => "map(string)",
    };
    Variable {
        name: field.name.to_owned(),
        description: description(field),
        kind: kind.to_owned(),
        default: Some(value.clone()),
        validations: validations(field),
    }
}

/// A default is said once. That of an option which is unset by default says what happens without it.
fn description(field: &Field) -> String {
    match field.name {
        "code_directory" => "Directory with `aggregator.zip` and `archiver.zip`.".to_owned(),
        "code_bucket" => {
            "Name of an existing bucket for the functions' archives. Default: they are sent to Lambda directly.".to_owned()
        }
        _ if field.default.is_null() => field.description.to_owned(),
        _ => field
            .description
            .split_once(" Default: ")
            .map_or(field.description, |(before, _)| before)
            .to_owned(),
    }
}

fn validations(field: &Field) -> Vec<Validation> {
    let name = field.name;
    let var = format!("var.{name}");
    let rules: Vec<(String, String)> = match field.accepts {
        Accepts::Anything => vec![],
        Accepts::Range { least, most } => vec![(
            format!("{var} >= {least} && {var} <= {most} && floor({var}) == {var}"),
            format!("{name} must be a whole number between {least} and {most}."),
        )],
        Accepts::Numbers(numbers) => {
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            let list = numbers.join(", ");
            vec![(
                format!("contains([{list}], {var})"),
                format!("{name} must be one of {list}."),
            )]
        }
        Accepts::OneOf(words) => vec![(
            format!("contains({}, {var})", literal(&json!(words))),
            format!("{name} must be one of {}.", words.join(", ")),
        )],
        Accepts::Text {
            pattern,
            never,
            longest,
        } => {
            let mut conditions = vec![format!("can(regex(\"{}\", {var}))", escape(pattern))];
            conditions.extend(never.map(|never| format!("!can(regex(\"{}\", {var}))", escape(never))));
            conditions.extend(longest.map(|longest| format!("length({var}) <= {longest}")));
            let most = longest
                .map(|longest| format!(" and have at most {longest} characters"))
                .unwrap_or_default();
            vec![(
                conditions.join(" && "),
                format!("{name} must match {pattern}{most}."),
            )]
        }
        Accepts::Windows => vec![(
            format!(
                "length({var}) > 0 && alltrue([for window in {var} : contains([\"hourly\", \"daily\", \"monthly\"], window)])"
            ),
            format!("{name} must be one or more of hourly, daily, monthly."),
        )],
        Accepts::Tags => tags(),
    };
    let rule = |(condition, message): (String, String)| Validation {
        condition: if field.default.is_null() {
            format!("{var} == null ? true : ({condition})")
        } else {
            condition
        },
        message,
    };
    rules.into_iter().map(rule).collect()
}

fn tags() -> Vec<(String, String)> {
    let most = crate::resources::tags::MAX_USER_TAGS;
    let all = |condition: &str| format!("alltrue([for key, value in var.tags : {condition}])");
    let characters = r"^[\\p{L}\\p{N} _.:/=+@-]*$";
    vec![
        (
            format!("length(var.tags) <= {most}"),
            format!("tags must be at most {most}: AWS allows 50 on a resource and the module sets the rest."),
        ),
        (
            all("length(key) >= 1 && length(key) <= 128 && length(value) <= 256"),
            "The keys of tags must have 1 to 128 characters, the values at most 256.".to_owned(),
        ),
        (
            all("!startswith(lower(key), \"aws:\")"),
            "The keys of tags must not start with aws:, which is reserved.".to_owned(),
        ),
        (
            all("!contains([\"ManagedBy\", \"Application\"], key) && !startswith(key, \"zae-limiter:\")"),
            "The tags ManagedBy, Application and zae-limiter:* are set by the module itself.".to_owned(),
        ),
        (
            all(&format!(
                "can(regex(\"{characters}\", key)) && can(regex(\"{characters}\", value))"
            )),
            "tags must have only letters, digits, spaces and _ . : / = + - @.".to_owned(),
        ),
    ]
}
