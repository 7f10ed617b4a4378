//! Small helpers for Terraform's language.

use std::collections::BTreeMap;

use zae_limiter_schema::{AttributeValue, Timestamp, VersionRecord};

use crate::VERSION;

/// An output's name as Terraform users write names.
pub(super) fn snake_case(name: &str) -> String {
    // Abbreviations are one word.
    let name = name
        .replace("DynamoDB", "Dynamodb")
        .replace("DLQ", "Dlq")
        .replace("GSI", "Gsi");
    let mut out = String::new();
    for (place, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && place > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Text for between quotes.
pub(super) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace("${", "$${")
        .replace("%{", "%%{")
}

/// Lines with their equals signs below each other, as `terraform fmt` wants them.
pub(super) fn aligned(lines: &[(String, String)], indent: usize) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(String, String)| format!("{:indent$}{name:<width$} = {value}\n", "");
    lines.iter().map(line).collect::<Vec<_>>().concat()
}

/// The attributes of the table's version record, by name, as Terraform writes them in an item.
pub(super) fn version_record() -> Vec<(String, String)> {
    let record = VersionRecord::current(Timestamp::from_seconds(0), format!("terraform:{VERSION}"));
    let attributes: BTreeMap<_, _> = record.to_item().into_inner().into_iter().collect();
    let line = |(name, value): (String, AttributeValue)| {
        let value = match (name.as_str(), value) {
            ("updated_at", _) => "{ S = timestamp() }".to_owned(),
            (_, AttributeValue::S(word)) => format!("{{ S = \"{}\" }}", escape(&word)),
            _ => "{ NULL = true }".to_owned(),
        };
        (name, value)
    };
    attributes.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_one_word() {
        assert_eq!(
            snake_case("GSI1ReadThrottleAlarmName"),
            "gsi1_read_throttle_alarm_name"
        );
        assert_eq!(snake_case("AggregatorDLQUrl"), "aggregator_dlq_url");
        assert_eq!(
            snake_case("DynamoDBReadThrottleAlarmName"),
            "dynamodb_read_throttle_alarm_name"
        );
    }

    #[test]
    fn templates_and_quotes_are_escaped() {
        assert_eq!(escape(r#"a "b" ${c} %{d}"#), r#"a \"b\" $${c} %%{d}"#);
    }
}
