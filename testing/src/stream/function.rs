//! A function as Lambda sees it, and how Lambda understands its response.

use serde::Deserialize;

/// The invocation failed as a whole: an error, a crash, a time-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed(pub String);

/// Something that can be invoked.
pub trait Invoke {
    /// Invokes it with an event; the response is JSON.
    fn invoke(&self, event: &str) -> impl Future<Output = Result<String, Failed>>;
}

/// What Lambda makes of a response to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All records are done with.
    Done,
    /// Everything before this place of the batch is done with.
    From(usize),
    /// Nothing is done with.
    Nothing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    batch_item_failures: Option<Vec<Item>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    item_identifier: Option<String>,
}

impl Verdict {
    /// Reads the response to a batch with these sequence numbers. An empty or null list is success. A number that is not of
    /// the batch, or none where there should be one, makes the whole batch fail; otherwise the lowest one counts.
    pub fn of(response: &Result<String, Failed>, numbers: &[&str]) -> Self {
        let Ok(response) = response else {
            return Self::Nothing;
        };
        let response = response.trim();
        if response.is_empty() || response == "null" || response == "{}" {
            return Self::Done;
        }
        let Ok(Response { batch_item_failures }) = serde_json::from_str(response) else {
            return Self::Nothing;
        };
        let failures = batch_item_failures.unwrap_or_default();
        let place = |item: &Item| {
            let identifier = item.item_identifier.as_deref()?;
            numbers.iter().position(|number| *number == identifier)
        };
        match failures.iter().map(place).collect::<Option<Vec<_>>>() {
            None => Self::Nothing,
            Some(places) => places.into_iter().min().map_or(Self::Done, Self::From),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood_as_lambda_documents_them() {
        let verdict = |response: &str| Verdict::of(&Ok(response.to_owned()), &["7", "8", "10"]);
        for success in [
            "",
            "null",
            "{}",
            r#"{"batchItemFailures":[]}"#,
            r#"{"batchItemFailures":null}"#,
        ] {
            assert_eq!(verdict(success), Verdict::Done, "{success}");
        }
        let failing = |list: &str| verdict(&format!(r#"{{"batchItemFailures":[{list}]}}"#));
        assert_eq!(
            failing(r#"{"itemIdentifier":"10"},{"itemIdentifier":"8"}"#),
            Verdict::From(1)
        );
        for wrong in [
            r#"{"itemIdentifier":""}"#,
            r#"{"itemIdentifier":null}"#,
            r#"{"wrong":"8"}"#,
            r#"{"itemIdentifier":"9"},{"itemIdentifier":"10"}"#,
        ] {
            assert_eq!(failing(wrong), Verdict::Nothing, "{wrong}");
        }
        assert_eq!(verdict("surprise"), Verdict::Nothing);
        assert_eq!(
            Verdict::of(&Err(Failed("crash".to_owned())), &["7"]),
            Verdict::Nothing
        );
    }
}
