//! Small helpers for Terraform's language.

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
