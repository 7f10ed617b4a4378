//! An OpenAPI document as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// The parts of the page, in order: the tag of their operations, and their title.
const PARTS: [(&str, &str); 8] = [
    ("leases", "Leases"),
    ("limits", "Limits"),
    ("modes", "Modes"),
    ("prices", "Prices"),
    ("entities", "Entities"),
    ("usage", "Usage snapshots"),
    ("audit", "Audit trail"),
    ("operation", "Operation"),
];

/// An operation: method and path, and what the document says about it.
type Operation<'a> = (String, &'a Value);

/// The whole document.
pub(super) fn document(document: &Value) -> String {
    let mut by_tag: BTreeMap<&str, Vec<Operation<'_>>> = BTreeMap::new();
    for (path, operations) in members(&document["paths"]) {
        for (method, operation) in members(operations) {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            let name = format!("{} {path}", method.to_uppercase());
            by_tag.entry(tag).or_default().push((name, operation));
        }
    }
    let mut page = String::new();
    for (tag, title) in PARTS {
        let operations = by_tag
            .remove(tag)
            .unwrap_or_else(|| panic!("no operation has the tag {tag}"));
        writeln!(page, "## {title}\n").unwrap();
        for operation in operations {
            page.push_str(&operation_section(&operation));
        }
    }
    assert!(
        by_tag.is_empty(),
        "no part of the page has the tags {:?}",
        by_tag.keys()
    );
    page.push_str("## Schemas\n\n");
    let schemas: Vec<_> = members(&document["components"]["schemas"])
        .map(|(name, schema)| schema_section(name, schema))
        .collect();
    page.push_str(&schemas.join("\n"));
    page
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A text of the document in one line, for a paragraph or a cell.
fn text(value: &Value) -> String {
    let words = value.as_str().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn operation_section((name, operation): &Operation<'_>) -> String {
    let mut section = format!(
        "### {name}\n\n{}.",
        text(&operation["summary"]).trim_end_matches('.')
    );
    let description = text(&operation["description"]);
    if !description.is_empty() {
        write!(section, " {description}").unwrap();
    }
    section.push_str("\n\n");
    let parameters: Vec<_> = items(&operation["parameters"]).collect();
    if !parameters.is_empty() {
        section.push_str("| Parameter | In | Type | Meaning |\n|---|---|---|---|\n");
        for parameter in parameters {
            let optional = optional(parameter["required"] == true);
            writeln!(
                section,
                "| `{}`{optional} | {} | {} | {} |",
                text(&parameter["name"]),
                text(&parameter["in"]),
                type_of(&parameter["schema"]),
                text(&parameter["description"])
            )
            .unwrap();
        }
        section.push('\n');
    }
    if let Some(body) = content(&operation["requestBody"]) {
        let optional = optional(operation["requestBody"]["required"] == true);
        writeln!(section, "Body{optional}: {body}\n").unwrap();
    }
    section.push_str("| Status | Body | Meaning |\n|---|---|---|\n");
    for (status, response) in members(&operation["responses"]) {
        let body = content(response).unwrap_or_else(|| "none".to_owned());
        writeln!(
            section,
            "| {status} | {body} | {} |",
            text(&response["description"])
        )
        .unwrap();
    }
    section.push('\n');
    section
}

/// Marks what may be left out.
fn optional(required: bool) -> &'static str {
    if required { "" } else { " (optional)" }
}

/// The type of the first kind of content.
fn content(message: &Value) -> Option<String> {
    let (media_type, content) = members(&message["content"]).next()?;
    let schema = &content["schema"];
    // Problem details stand there in full, once per status.
    let is_problem = media_type == "application/problem+json" && schema["properties"]["detail"].is_object();
    Some(if is_problem {
        type_of(&json!({ "$ref": "#/components/schemas/ProblemBody" }))
    } else if schema.is_object() && media_type.contains("json") {
        type_of(schema)
    } else {
        format!("`{media_type}`")
    })
}

/// What a field means; a field that may be null can have it at one of its alternatives.
fn meaning(schema: &Value) -> String {
    let described = items(&schema["oneOf"]).chain([schema]);
    let texts: Vec<_> = described.map(|part| text(&part["description"])).collect();
    texts
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// A type in words.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[`{name}`](#{})", name.to_lowercase());
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(|value| format!("`{}`", text(value)))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let alternatives: Vec<_> = items(&schema["oneOf"]).collect();
    if !alternatives.is_empty() {
        let null = |schema: &&&Value| schema["type"] == "null";
        let mut words: Vec<_> = alternatives
            .iter()
            .filter(|it| !null(it))
            .map(|it| type_of(it))
            .collect();
        words.extend(alternatives.iter().find(null).map(|_| "null".to_owned()));
        return words.join(" or ");
    }
    match &schema["type"] {
        Value::Array(types) => types
            .iter()
            .map(|name| named(&text(name), schema))
            .collect::<Vec<_>>()
            .join(" or "),
        Value::String(name) => named(name, schema),
        _ => "any JSON".to_owned(),
    }
}

fn named(name: &str, schema: &Value) -> String {
    let of = |inner: &Value| {
        if inner.is_object() {
            format!(" of {}", type_of(inner))
        } else {
            String::new()
        }
    };
    match name {
        "array" => format!("list{}", of(&schema["items"])),
        "object" => format!("object{}", of(&schema["additionalProperties"])),
        name => name.to_owned(),
    }
}

fn schema_section(name: &str, schema: &Value) -> String {
    let mut section = format!("### {name}\n\n");
    let description = text(&schema["description"]);
    if !description.is_empty() {
        writeln!(section, "{description}\n").unwrap();
    }
    let parts: Vec<_> = items(&schema["allOf"]).chain([schema]).collect();
    for base in parts.iter().filter(|part| part["$ref"].is_string()) {
        writeln!(section, "All fields of {}, and\n", type_of(base)).unwrap();
    }
    let fields: Vec<_> = parts
        .iter()
        .flat_map(|part| members(&part["properties"]).map(move |field| (part, field)))
        .collect();
    if fields.is_empty() {
        writeln!(section, "{}", values(schema)).unwrap();
        return section;
    }
    section.push_str("| Field | Type | Meaning |\n|---|---|---|\n");
    for (part, (field, schema)) in fields {
        let required = items(&part["required"]).any(|name| name == field);
        writeln!(
            section,
            "| `{field}`{} | {} | {} |",
            optional(required),
            type_of(schema),
            meaning(schema)
        )
        .unwrap();
    }
    section
}

/// A schema without fields: the values that it allows.
fn values(schema: &Value) -> String {
    let described: Vec<_> = items(&schema["oneOf"])
        .filter(|value| value["enum"].is_array())
        .map(|value| format!("- {}: {}", type_of(value), text(&value["description"])))
        .collect();
    if described.is_empty() {
        format!("One of {}.", type_of(schema))
    } else {
        described.join("\n")
    }
}
