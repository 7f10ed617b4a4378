//! YAML that YAML 1.1 and YAML 1.2 read alike.
//!
//! CloudFormation and most of its tools read YAML 1.1, in which `yes`, `on` and `2012-10-17` are not strings. A string is
//! therefore quoted unless it cannot be read as anything else.

use serde_json::Value;

/// The value as YAML, in blocks, with a newline at the end.
pub(super) fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => block(&mut out, value, 0),
        Value::Array(items) if !items.is_empty() => block(&mut out, value, 0),
        scalar => {
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
    out
}

/// Writes a map or a list, starting at the beginning of a line.
fn block(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                indent(out, depth);
                field(out, key, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                indent(out, depth);
                out.push('-');
                element(out, item, depth);
            }
        }
        _ => {}
    }
}

fn field(out: &mut String, key: &str, value: &Value, depth: usize) {
    out.push_str(&text(key));
    out.push(':');
    after(out, value, depth);
}

/// Writes what stands after a key or a hyphen: on the same line, or as a block below it.
fn after(out: &mut String, value: &Value, depth: usize) {
    if is_block(value) {
        out.push('\n');
        block(out, value, depth + 1);
    } else {
        out.push(' ');
        out.push_str(&inline(value));
        out.push('\n');
    }
}

/// Writes what stands after a hyphen: a map begins on the same line.
fn element(out: &mut String, item: &Value, depth: usize) {
    match item {
        Value::Object(fields) if !fields.is_empty() => {
            for (place, (key, value)) in fields.iter().enumerate() {
                if place == 0 {
                    out.push(' ');
                } else {
                    indent(out, depth + 1);
                }
                field(out, key, value, depth + 1);
            }
        }
        other => after(out, other, depth),
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        // Numbers, true, false, null, {} and [] are the same in JSON and in both versions of YAML.
        other => other.to_string(),
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn text(string: &str) -> String {
    if stands_bare(string) {
        string.to_owned()
    } else if string
        .chars()
        .any(|c| c.is_control() || c == '\u{2028}' || c == '\u{2029}' || c == '\u{feff}')
    {
        // A JSON string is a double-quoted string of YAML, except that YAML takes these for line breaks and a mark.
        let json = Value::from(string).to_string();
        json.replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029")
            .replace('\u{85}', "\\u0085")
            .replace('\u{feff}', "\\ufeff")
    } else {
        format!("'{}'", string.replace('\'', "''"))
    }
}

/// Words that YAML 1.1 takes for a truth value or for nothing.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

fn stands_bare(string: &str) -> bool {
    // A letter first: no number, date, time, sign, directive, anchor or tag starts with one.
    let first = string.starts_with(|c: char| c.is_ascii_alphabetic());
    let inner = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c) || c == ':';
    // `: ` ends a key, and so does a colon at the end; a space at the end is lost.
    let unambiguous = !string.contains(": ") && !string.ends_with([':', ' ']);
    first
        && string.chars().all(inner)
        && unambiguous
        && !WORDS.contains(&string.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_yaml_1_1_misreads_is_quoted() {
        for word in [
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "true",
            "Null",
            "~",
            "",
            "2012-10-17",
            "1e3",
            "0x1f",
            "1:30",
        ] {
            assert_eq!(text(word), format!("'{word}'"));
        }
        for word in [
            "*", "-1", ".inf", "- a", "a: b", "a:", "a #b", " a", "a ", "!Ref", "{}", "@a", "`a", "%a", "=",
        ] {
            assert!(text(word).starts_with('\''), "{word}");
        }
    }

    #[test]
    fn names_of_types_and_actions_stand_bare() {
        for word in [
            "AWS::DynamoDB::Table",
            "dynamodb:GetItem",
            "Counts usage from changes",
            "provided.al2023",
        ] {
            assert_eq!(text(word), word);
        }
    }

    #[test]
    fn lists_and_maps_nest() {
        let value = json!({ "A": [{ "B": 1, "C": [true, "yes"] }, [2]], "D": {}, "E": [] });
        let yaml = "A:\n  - B: 1\n    C:\n      - true\n      - 'yes'\n  -\n    - 2\nD: {}\nE: []\n";
        assert_eq!(to_string(&value), yaml);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[yYnNoOfFeEsS~0-9:. #'\"-]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("\\PC{1,8}", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_reads_back(value in any_value()) {
            let read: Value = serde_yaml::from_str(&to_string(&value)).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
