//! A change of an item, borrowed from the text of its stream record.

use crate::cursor::{Cursor, Json};
use crate::image::Text;

/// What a stream record says about an item. Texts are copied only if they have escapes, and whoever needs an image reads it.
#[derive(Debug)]
pub struct ItemChange<'a> {
    /// `INSERT`, `MODIFY` or `REMOVE`.
    pub event_name: Text<'a>,
    /// The stream.
    pub stream_arn: Option<Text<'a>>,
    /// When the change was made, in epoch seconds.
    made_at: Option<f64>,
    /// The position of the change in the stream.
    pub sequence_number: Option<Text<'a>>,
    /// The key: an [`Image`](crate::Image), like the two that follow.
    pub keys: Json<'a>,
    /// The item before the change; null if there was none.
    pub old_image: Json<'a>,
    /// The item after the change; null if it was removed.
    pub new_image: Json<'a>,
}

impl<'a> ItemChange<'a> {
    /// Reads a record.
    pub fn read(record: Json<'a>) -> Result<Self, String> {
        let (mut event_name, mut stream_arn) = (None, None);
        let (mut has_images, mut made_at, mut sequence_number) = (false, None, None);
        let (mut keys, mut old_image, mut new_image) = (Json::NULL, Json::NULL, Json::NULL);
        let mut read_images = |cursor: &mut Cursor<'a>, name: Text<'a>| {
            match &*name {
                "ApproximateCreationDateTime" => made_at = seconds(cursor)?,
                "SequenceNumber" => sequence_number = text_or_null(cursor)?,
                "Keys" => keys = cursor.value()?,
                "OldImage" => old_image = cursor.value()?,
                "NewImage" => new_image = cursor.value()?,
                _ => drop(cursor.value()?),
            }
            Ok(())
        };
        record.cursor().members(|cursor, name| {
            match &*name {
                "eventName" => event_name = Some(cursor.text()?),
                "eventSourceARN" => stream_arn = text_or_null(cursor)?,
                "dynamodb" => {
                    has_images = true;
                    cursor.members(&mut read_images)?;
                }
                _ => drop(cursor.value()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| format!("it has no field {field}");
        if !has_images {
            return Err(missing("dynamodb"));
        }
        Ok(Self {
            event_name: event_name.ok_or_else(|| missing("eventName"))?,
            stream_arn,
            made_at,
            sequence_number,
            keys,
            old_image,
            new_image,
        })
    }

    /// When the change was made, in epoch milliseconds.
    #[allow(clippy::cast_possible_truncation)]
    pub fn made_at_millis(&self) -> Option<i64> {
        let seconds = self.made_at?;
        // Both conversions saturate, and the caller refuses what is out of range.
        let millis = (seconds.fract() * 1e3) as i64;
        (seconds.trunc() as i64).checked_mul(1_000)?.checked_add(millis)
    }
}

fn text_or_null<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, String> {
    let mut after = cursor.clone();
    if after.value()?.is_null() {
        *cursor = after;
        return Ok(None);
    }
    cursor.text().map(Some)
}

fn seconds(cursor: &mut Cursor<'_>) -> Result<Option<f64>, String> {
    let value = cursor.value()?.as_str();
    serde_json::from_str(value).map_err(|_| format!("{value} is not a number of seconds"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::value::RawValue;

    use super::*;

    fn change(text: &str) -> Result<ItemChange<'_>, String> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        ItemChange::read(raw.into())
    }

    #[test]
    fn every_field_is_read_whatever_the_order() {
        let text = r#" {"dynamodb": {"NewImage": {"a": {"N": "1"}}, "SizeBytes": 3, "Keys": {}, "SequenceNumber": "7"},
            "eventSourceARN": "arn", "other": [{"eventName": "x"}], "eventName": "INSERT"} "#;
        let change = change(text).unwrap();
        assert_eq!(
            (&*change.event_name, change.stream_arn.as_deref()),
            ("INSERT", Some("arn"))
        );
        assert_eq!(change.sequence_number.as_deref(), Some("7"));
        assert_eq!(change.new_image.as_str(), r#"{"a": {"N": "1"}}"#);
        assert_eq!(change.keys.as_str(), "{}");
        assert!(change.old_image.is_null());
    }

    #[test]
    fn what_is_missing_or_null_is_absent_unless_it_is_needed() {
        let found =
            change(r#"{"eventName": "REMOVE", "eventSourceARN": null, "dynamodb": {"OldImage": null}}"#);
        let found = found.unwrap();
        assert!(found.old_image.is_null() && found.new_image.is_null());
        assert_eq!((found.made_at_millis(), found.stream_arn), (None, None));
        for (text, problem) in [
            ("17", "an object was expected at byte 0"),
            (r#"{"dynamodb": {}}"#, "it has no field eventName"),
            (r#"{"eventName": "INSERT"}"#, "it has no field dynamodb"),
            (
                r#"{"eventName": "INSERT", "dynamodb": []}"#,
                "an object was expected at byte 36",
            ),
            (r#"{"eventName": 1}"#, "a string was expected at byte 14"),
            (r#"{"eventSourceARN": 1}"#, "a string was expected at byte 19"),
            (
                r#"{"eventName": "INSERT", "dynamodb": {"ApproximateCreationDateTime": "now"}}"#,
                r#""now" is not a number of seconds"#,
            ),
        ] {
            assert_eq!(change(text).unwrap_err(), problem, "{text}");
        }
    }

    #[test]
    fn the_time_is_read_to_the_millisecond() {
        let millis = |seconds: &str| {
            let images = format!(r#"{{"ApproximateCreationDateTime": {seconds}}}"#);
            change(&format!(r#"{{"eventName": "INSERT", "dynamodb": {images}}}"#))
                .unwrap()
                .made_at_millis()
        };
        assert_eq!(millis("1769889600"), Some(1_769_889_600_000));
        assert_eq!(millis("1.7698896005E9"), Some(1_769_889_600_500));
        assert_eq!(millis("1e300"), None);
        assert_eq!(millis("null"), None);
    }
}
