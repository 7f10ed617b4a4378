//! The object that archives an event.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use serde_dynamo::{AttributeValue, Item};
use zae_limiter_schema::keys::attribute;
use zae_limiter_schema::{Timestamp, Ulid};

use crate::line;

/// Why an event cannot be archived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// An object of the archive. Its name and bytes depend on the event and on nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `audit/year=YYYY/month=MM/day=DD/{event_id}.jsonl.gz`, by the day of the event.
    pub key: String,
    /// One line of JSON, compressed.
    pub body: Vec<u8>,
    /// When the event happened.
    pub at: Timestamp,
}

impl Object {
    /// The `Content-Type` of every object.
    pub const CONTENT_TYPE: &'static str = "application/x-ndjson";
    /// The `Content-Encoding` of every object.
    pub const CONTENT_ENCODING: &'static str = "gzip";
    /// The beginning of every key.
    pub const PREFIX: &'static str = "audit/";

    /// The object for an audit event as the table stores it.
    ///
    /// Only the attributes that form the key must be valid. An archive must not leave out events that it does not
    /// understand.
    ///
    /// ```
    /// use zae_limiter_archiver::Object;
    ///
    /// let event = serde_dynamo::to_item(std::collections::HashMap::from([
    ///     ("event_id", "01ARYZ6S410000000000000000"),
    ///     ("timestamp", "2016-07-30T22:36:16Z"),
    /// ]))?;
    /// let object = Object::of(&event)?;
    /// assert_eq!(object.key, "audit/year=2016/month=07/day=30/01ARYZ6S410000000000000000.jsonl.gz");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(event: &Item) -> Result<Self, Malformed> {
        let id = text(event, attribute::EVENT_ID)?;
        let id = Ulid::parse(id).ok_or_else(|| Malformed(format!("event_id {id:.60?} is not a ULID")))?;
        let at = Timestamp::parse(text(event, attribute::TIMESTAMP)?)
            .map_err(|error| Malformed(error.to_string()))?;
        let day = at.to_string();
        let (year, month, day) = (&day[..4], &day[5..7], &day[8..10]);
        let line = line(event)
            .map_err(|error| Malformed(format!("the event cannot be written as JSON: {error}")))?;
        Ok(Self {
            key: format!(
                "{}year={year}/month={month}/day={day}/{id}.jsonl.gz",
                Self::PREFIX
            ),
            body: compressed(line.as_bytes()).map_err(|error| Malformed(error.to_string()))?,
            at,
        })
    }
}

fn text<'a>(event: &'a Item, name: &str) -> Result<&'a str, Malformed> {
    match event.get(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(Malformed(format!("attribute {name} is missing or not a string"))),
    }
}

/// The header has no time, and 255 ("unknown") as the operating system: the bytes do not depend on where and when they
/// were made.
fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::new(6));
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashMap;
    use std::io::Read as _;

    use super::*;

    fn event() -> Item {
        let n = |digits: &str| AttributeValue::N(digits.to_owned());
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let details = HashMap::from([
            (
                "records_deleted".to_owned(),
                n("12345678901234567890123456789012345678"),
            ),
            (
                "tags".to_owned(),
                AttributeValue::Ss(vec!["b".to_owned(), "a".to_owned()]),
            ),
            ("parent_id".to_owned(), AttributeValue::Null(true)),
            (
                "sizes".to_owned(),
                AttributeValue::Ns(vec!["2.50".to_owned(), "1".to_owned()]),
            ),
            ("raw".to_owned(), AttributeValue::B(vec![0, 255])),
            (
                "list".to_owned(),
                AttributeValue::L(vec![AttributeValue::Bool(true), s("x\ny")]),
            ),
        ]);
        Item::from(HashMap::from([
            ("PK".to_owned(), s("AUDIT#user-1")),
            ("SK".to_owned(), s("#AUDIT#01ARYZ6S410000000000000000")),
            ("ttl".to_owned(), n("1999999999")),
            ("event_id".to_owned(), s("01ARYZ6S410000000000000000")),
            ("timestamp".to_owned(), s("2016-07-30T22:36:16Z")),
            ("action".to_owned(), s("entity_deleted")),
            ("entity_id".to_owned(), s("user-1")),
            ("principal".to_owned(), AttributeValue::Null(true)),
            ("resource".to_owned(), AttributeValue::Null(true)),
            ("zone".to_owned(), s("a newer version's")),
            ("details".to_owned(), AttributeValue::M(details)),
        ]))
    }

    #[test]
    fn an_object_holds_every_field_but_key_and_expiry_with_all_digits() {
        let object = Object::of(&event()).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&object.body[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"event_id":"01ARYZ6S410000000000000000","timestamp":"2016-07-30T22:36:16Z","#,
                r#""action":"entity_deleted","entity_id":"user-1","principal":null,"resource":null,"#,
                r#""details":{"list":[true,"x\ny"],"parent_id":null,"raw":"AP8=","#,
                r#""records_deleted":12345678901234567890123456789012345678,"#,
                r#""sizes":[1,2.50],"tags":["a","b"]},"zone":"a newer version's"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn the_same_event_always_gives_the_same_bytes() {
        let first = Object::of(&event()).unwrap();
        assert!((0..20).all(|_| Object::of(&event()).unwrap() == first));
        // Magic, deflate, no flags, no time; then the level's mark and 255.
        assert_eq!(first.body[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
        assert_eq!(first.body[9], 255);
    }

    #[test]
    fn an_event_without_a_name_or_day_says_what_is_missing() {
        let without = |name: &str| {
            let mut map: HashMap<String, AttributeValue> = event().into();
            map.remove(name);
            Object::of(&Item::from(map)).unwrap_err().to_string()
        };
        assert!(without("event_id").contains("event_id"));
        assert!(without("timestamp").contains("timestamp"));
    }
}
