//! Line numbers in YAML and JSON files, for error messages.

/// The line of a field, by its path such as `resources.gpt-4.limits[2]`; `None` if it is not in the text.
///
/// Looks for each name of the path after the one before it, so no parser with positions is needed. A name that contains a dot
/// is not found.
pub(crate) fn line_of(text: &str, path: &str) -> Option<usize> {
    let mut at = 0;
    for name in path.split('.') {
        let (name, index) = match name.split_once('[') {
            Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().ok()),
            None => (name, None),
        };
        at += key(&text[at..], name)?;
        if let Some(index) = index {
            at += entry(&text[at..], index).unwrap_or(0);
        }
    }
    Some(text[..at].matches('\n').count() + 1)
}

/// The position after a key.
fn key(text: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    text.match_indices(name).find_map(|(start, _)| {
        let end = start + name.len();
        let before = text[..start].chars().next_back();
        let after = text[end..].trim_start_matches(['"', '\'', ' ']);
        let whole = !before.is_some_and(is_part) && after.starts_with(':');
        whole.then_some(end)
    })
}

/// The position of an entry of a list that has a line for each.
fn entry(text: &str, index: usize) -> Option<usize> {
    let mut at = 0;
    let mut entries = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("- ") {
            if entries == index {
                return Some(at);
            }
            entries += 1;
        } else if at > 0 && line.contains(':') && entries == 0 {
            return None;
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_below_those_above_it() {
        let text =
            "system:\n  limits: [rpm:1]\nresources:\n  gpt-4:\n    limits:\n      - rpm:1\n      - tpm:x\n";
        assert_eq!(line_of(text, "system.limits"), Some(2));
        assert_eq!(line_of(text, "resources.gpt-4.limits"), Some(5));
        assert_eq!(line_of(text, "resources.gpt-4.limits[1]"), Some(7));
        assert_eq!(line_of(text, "system.limits[0]"), Some(2));
        assert_eq!(line_of(text, "entities"), None);
    }

    #[test]
    fn a_key_is_a_whole_word_in_yaml_and_json() {
        assert_eq!(
            line_of("lambda_memory_size: 1\nlambda_memory: 2\n", "lambda_memory"),
            Some(2)
        );
        assert_eq!(line_of("{\n  \"a\": 1,\n  \"b\" : 2\n}", "b"), Some(3));
        assert_eq!(line_of("{a: 1, b: 2}", "b"), Some(1));
    }
}
