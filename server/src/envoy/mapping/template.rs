//! Names made from the values of a descriptor: `user-{user_id}`.

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The value of this key.
    Value(String),
}

impl Template {
    /// Placeholders must be in `keys`.
    pub(super) fn parse(text: &str, keys: &[&str]) -> Result<Self, String> {
        let mut parts = vec![];
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(open);
            let inside = from.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let Some((key, after)) = inside else {
                return Err(format!("{text:?} has a brace that stands alone"));
            };
            if !keys.contains(&key) {
                return Err(format!("{{{key}}} is not a key of match"));
            }
            parts.extend((!before.is_empty()).then(|| Part::Text(before.to_owned())));
            parts.push(Part::Value(key.to_owned()));
            rest = after;
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.to_owned())));
        Ok(Self { parts })
    }

    /// The text with each placeholder replaced.
    pub(super) fn render<'a>(&'a self, value: impl Fn(&'a str) -> &'a str) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Value(key) => value(key),
        });
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parse(text: &str) -> Result<Template, String> {
        Template::parse(text, &["user", "model"])
    }

    #[test]
    fn placeholders_are_replaced() {
        for (text, rendered) in [
            ("{user}", "USER"),
            ("a-{user}/{model}-b", "a-USER/MODEL-b"),
            ("plain", "plain"),
        ] {
            let shown = parse(text)
                .unwrap()
                .render(|key| if key == "user" { "USER" } else { "MODEL" });
            assert_eq!(shown, rendered);
        }
    }

    #[test]
    fn braces_and_unknown_keys_are_errors() {
        for (text, problem) in [
            ("{user", "stands alone"),
            ("user}", "stands alone"),
            ("{other}", "{other} is not a key of match"),
            ("{}", "{} is not a key of match"),
        ] {
            assert!(parse(text).unwrap_err().contains(problem), "{text}");
        }
    }
}
