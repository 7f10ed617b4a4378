//! The addresses of views. They are stable: people keep and share them.

use std::fmt;

use zae_limiter::pagination::Cursor;
use zae_limiter::{EntityId, Resource};

/// An address within the UI, with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    path: String,
    query: Vec<(String, String)>,
}

impl Url {
    pub(crate) fn to(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            query: vec![],
        }
    }

    pub(crate) fn overview() -> Self {
        Self::to("/ui")
    }

    pub(crate) fn entity(entity: &EntityId) -> Self {
        Self::to(format!("/ui/entities/{}", escaped(entity.as_str())))
    }

    pub(crate) fn resource(resource: &Resource) -> Self {
        Self::to(format!("/ui/resources/{}", escaped(resource.as_str())))
    }

    pub(crate) fn bucket(entity: &EntityId, resource: &Resource) -> Self {
        let (entity, resource) = (escaped(entity.as_str()), escaped(resource.as_str()));
        Self::to(format!("/ui/entities/{entity}/buckets/{resource}"))
    }

    pub(crate) fn bucket_events(entity: &EntityId, resource: &Resource) -> Self {
        let bucket = Self::bucket(entity, resource);
        Self::to(format!("{}/events", bucket.path))
    }

    /// The same with another parameter, in place of one of this name.
    pub(crate) fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.query.retain(|(present, _)| present != name);
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// The same with another parameter, if there is a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The page of a list after this place.
    pub(crate) fn after(self, cursor: &Cursor) -> Self {
        self.with("after", cursor)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if !self.query.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.query);
            write!(f, "?{}", query.finish())?;
        }
        Ok(())
    }
}

/// One segment of a path: everything but unreserved characters is percent-encoded, slashes too.
fn escaped(segment: &str) -> String {
    use fmt::Write as _;

    let mut text = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_are_escaped_in_paths_and_queries() {
        let (entity, resource) = (
            "ops@example.com".parse().unwrap(),
            "openai/gpt-4".parse().unwrap(),
        );
        assert_eq!(
            Url::bucket(&entity, &resource).to_string(),
            "/ui/entities/ops%40example.com/buckets/openai%2Fgpt-4"
        );
        let url = Url::to("/ui/usage")
            .with("resource", &resource)
            .with("from", "a b&c");
        assert_eq!(url.to_string(), "/ui/usage?resource=openai%2Fgpt-4&from=a+b%26c");
    }

    #[test]
    fn a_parameter_is_replaced_and_not_repeated() {
        let url = Url::to("/ui/usage")
            .with("window", "daily")
            .with("window", "hourly");
        assert_eq!(url.to_string(), "/ui/usage?window=hourly");
    }
}
