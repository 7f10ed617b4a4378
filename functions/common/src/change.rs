//! A change of an item, borrowed from the text of its stream record.

use serde::Deserialize;

use crate::image::{Attributes, Image, Text};

/// What a stream record says about an item. Only what is needed to count is parsed, and no text is copied.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemChange<'a> {
    /// `INSERT`, `MODIFY` or `REMOVE`.
    #[serde(borrow)]
    pub event_name: Text<'a>,
    /// The stream.
    #[serde(borrow, default, rename = "eventSourceARN")]
    pub stream_arn: Option<Text<'a>>,
    /// The item before and after the change.
    #[serde(borrow, rename = "dynamodb")]
    pub images: Images<'a>,
}

/// An item before and after a change.
#[derive(Debug, Deserialize)]
#[serde(from = "Delivered<'a>", bound(deserialize = "'de: 'a"))]
pub struct Images<'a> {
    /// When the change was made, in epoch seconds.
    made_at: Option<f64>,
    /// The position of the change in the stream.
    pub sequence_number: Option<Text<'a>>,
    /// The key.
    pub keys: Image<'a>,
    /// The item before the change; empty if there was none.
    pub old_image: Image<'a>,
    /// The item after the change; empty if it was removed.
    pub new_image: Image<'a>,
}

/// The same with attributes in the order of delivery.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Delivered<'a> {
    #[serde(default)]
    approximate_creation_date_time: Option<f64>,
    #[serde(borrow, default)]
    sequence_number: Option<Text<'a>>,
    #[serde(borrow, default)]
    keys: Attributes<'a>,
    #[serde(borrow, default)]
    old_image: Attributes<'a>,
    #[serde(borrow, default)]
    new_image: Attributes<'a>,
}

impl<'a> From<Delivered<'a>> for Images<'a> {
    fn from(delivered: Delivered<'a>) -> Self {
        let new_image = Image::from(delivered.new_image);
        Self {
            made_at: delivered.approximate_creation_date_time,
            sequence_number: delivered.sequence_number,
            keys: delivered.keys.into(),
            old_image: Image::like(&new_image, delivered.old_image),
            new_image,
        }
    }
}

impl Images<'_> {
    /// When the change was made, in epoch milliseconds.
    #[allow(clippy::cast_possible_truncation)]
    pub fn made_at_millis(&self) -> Option<i64> {
        let seconds = self.made_at?;
        // Both conversions saturate, and the caller refuses what is out of range.
        let millis = (seconds.fract() * 1e3) as i64;
        (seconds.trunc() as i64).checked_mul(1_000)?.checked_add(millis)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn images_are_sorted_alike_whether_or_not_they_have_the_same_names() {
        let names = |old: &str| {
            let text =
                format!(r#"{{"OldImage": {old}, "NewImage": {{"b": {{"N": "1"}}, "a": {{"N": "2"}}}}}}"#);
            let images: Images<'_> = serde_json::from_str(&text).unwrap();
            let [old, new] = [&images.old_image, &images.new_image].map(|image| {
                let names: Vec<_> = image.iter().map(|(name, _)| name.to_owned()).collect();
                names.concat()
            });
            (old, new)
        };
        assert_eq!(
            names(r#"{"b": {"N": "5"}, "a": {"N": "6"}}"#),
            ("ab".to_owned(), "ab".to_owned())
        );
        assert_eq!(
            names(r#"{"a": {"N": "5"}, "b": {"N": "6"}}"#),
            ("ab".to_owned(), "ab".to_owned())
        );
        assert_eq!(names(r#"{"b": {"N": "5"}}"#), ("b".to_owned(), "ab".to_owned()));
        assert_eq!(names("null"), (String::new(), "ab".to_owned()));
    }

    #[test]
    fn an_absent_image_is_empty() {
        let change: ItemChange<'_> =
            serde_json::from_str(r#"{"eventName": "REMOVE", "dynamodb": {"OldImage": null}}"#).unwrap();
        assert_eq!(change.images.old_image.iter().len(), 0);
        assert_eq!(change.images.made_at_millis(), None);
    }

    #[test]
    fn the_time_is_read_to_the_millisecond() {
        let millis = |seconds: &str| {
            let text = format!(r#"{{"ApproximateCreationDateTime": {seconds}}}"#);
            serde_json::from_str::<Images<'_>>(&text)
                .unwrap()
                .made_at_millis()
        };
        assert_eq!(millis("1769889600"), Some(1_769_889_600_000));
        assert_eq!(millis("1.7698896005E9"), Some(1_769_889_600_500));
        assert_eq!(millis("1e300"), None);
        assert_eq!(millis("null"), None);
    }
}
