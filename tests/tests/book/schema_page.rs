//! The page about the table schema against the crate `schema`: its table definition and one example of every record.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use zae_limiter_schema::keys::prefix;
use zae_limiter_schema::table::TABLE;

use crate::book::pages;

/// Which section describes the records of a snapshot, by the start of its name.
const SECTIONS: [(&str, &str); 8] = [
    ("entity", "Entity"),
    ("bucket", "Bucket"),
    ("config", "Configuration"),
    ("usage", "Usage snapshot"),
    ("audit", "Audit event"),
    ("version", "System records"),
    ("registry_of_resources", "System records"),
    ("registry_of_entity", "System records"),
];

/// What stands for the values of the examples.
const PLACEHOLDERS: [(&str, &str); 6] = [
    ("PARENT#org-1", "PARENT#{parent}"),
    ("user-1", "{entity}"),
    ("org-1", "{entity}"),
    ("gpt-4", "{resource}"),
    ("2026-01-01T00:00:00Z", "{window}"),
    ("2026-01-01", "{window}"),
];

fn page() -> String {
    pages::read("docs/understand/schema.md")
}

/// Every example of a record: the section that describes it, and its attributes with their values.
fn examples() -> Vec<(String, &'static str, BTreeMap<String, String>)> {
    let folder = pages::root().join("schema/tests/records/snapshots");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let snapshots = files.filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
    snapshots
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let name = name.rsplit("__").next().unwrap().to_owned();
            let (_, section) = SECTIONS
                .iter()
                .find(|(start, _)| name.starts_with(start))
                .expect("a section");
            let text = std::fs::read_to_string(&path).unwrap();
            let json = &text[text.find("\n{").unwrap()..];
            let item: BTreeMap<String, Value> = serde_json::from_str(json).unwrap();
            let text_of = |value: &Value| value["S"].as_str().unwrap_or_default().to_owned();
            let attributes = item
                .iter()
                .map(|(name, value)| (name.clone(), text_of(value)))
                .collect();
            (name, *section, attributes)
        })
        .collect()
}

/// A key with placeholders for the example's values.
fn pattern(name: &str, key: &str) -> String {
    let mut key = key.to_owned();
    if let (true, Some((start, _))) = (key.starts_with(prefix::AUDIT_EVENT), key.rsplit_once('#')) {
        key = format!("{start}#{{event}}");
    }
    if key.starts_with(prefix::AUDIT) {
        key = format!("{}{{subject}}", prefix::AUDIT);
    }
    // The window of a month is the start of those of days and hours.
    if name.starts_with("usage") {
        key = key.replace("2026-01#", "{window}#");
        key = key
            .strip_suffix("#2026-01")
            .map_or(key.clone(), |start| format!("{start}#{{window}}"));
    }
    for (example, placeholder) in PLACEHOLDERS {
        key = key.replace(example, placeholder);
    }
    key
}

/// The name of an attribute with placeholders for limits, slots and resources.
fn attribute(section: &str, example: &str, name: &str) -> String {
    let limits = ["rpm", "tpm", "rps", "tpd"];
    if example.starts_with("registry_of_entity") && !["PK", "SK"].contains(&name) {
        return "{resource}".to_owned();
    }
    if section == "Usage snapshot" && limits.contains(&name) {
        return "{limit}".to_owned();
    }
    if let Some(digit) = name.strip_prefix("o_") {
        assert_eq!(digit.len(), 1, "{name}");
        return "o_{slot}".to_owned();
    }
    let mut name = name.to_owned();
    for limit in limits {
        name = name.replace(&format!("_{limit}_"), "_{limit}_");
    }
    name
}

#[test]
fn it_has_the_table_and_every_index() {
    let page = page();
    let rows = pages::rows(pages::section(&page, "Table and indexes"));
    let cells = |row: &[String]| {
        row.iter()
            .map(|cell| cell.trim_matches('`').to_owned())
            .collect::<Vec<_>>()
    };
    let table = &TABLE.key;
    assert_eq!(
        cells(&rows[1])[..3],
        ["table", table.partition, table.sort].map(str::to_owned)
    );
    assert_eq!(rows.len(), 2 + TABLE.indexes.len());
    for (row, index) in rows[2..].iter().zip(TABLE.indexes) {
        let expected = [
            index.name,
            index.key.partition,
            index.key.sort,
            index.projection.as_str(),
        ];
        assert_eq!(cells(row)[..4], expected.map(str::to_owned));
    }
    let text = pages::section(&page, "Table and indexes");
    assert!(text.contains(&format!("TTL attribute is `{}`", TABLE.time_to_live)));
    assert!(text.contains(&format!("`{}`", TABLE.stream.as_str())));
}

#[test]
fn it_has_the_key_of_every_record() {
    let page = page();
    for (name, section, attributes) in examples() {
        let text = pages::section(&page, section);
        for key in [
            "PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "GSI3PK", "GSI3SK",
        ] {
            if let Some(value) = attributes.get(key) {
                let pattern = pattern(&name, value);
                let default = pattern.replace("_default_", "{resource}");
                let described =
                    text.contains(&format!("`{pattern}`")) || text.contains(&format!("`{default}`"));
                assert!(
                    described,
                    "{name}: {key} = {value}: `{pattern}` is not in section {section}"
                );
            }
        }
    }
}

#[test]
fn it_has_every_attribute_and_no_other() {
    let page = page();
    let mut written: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, section, attributes) in examples() {
        let names = attributes
            .keys()
            .filter(|key| !["PK", "SK"].contains(&key.as_str()));
        let names = names.map(|key| attribute(section, &name, key));
        written.entry(section).or_default().extend(names);
    }
    for (section, written) in written {
        let text = pages::section(&page, section);
        let rows = pages::rows(text);
        let listed: BTreeSet<String> = if section == "System records" {
            let cells = rows[1..].iter().filter_map(|row| row.last());
            cells.flat_map(|cell| pages::code_spans(cell)).collect()
        } else {
            let start = rows.iter().position(|row| row[0] == "Attribute").unwrap();
            rows[start + 1..]
                .iter()
                .flat_map(|row| pages::code_spans(&row[0]))
                .collect()
        };
        assert_eq!(listed, written, "section {section}");
    }
}

#[test]
fn it_names_the_version_of_the_format() {
    let version = zae_limiter_schema::VersionRecord::SCHEMA_VERSION;
    assert!(page().contains(&format!("schema version {version}")));
}
