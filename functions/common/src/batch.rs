//! A batch of stream records, each kept as text until it is needed.

use aws_lambda_events::dynamodb::EventRecord;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The event that Lambda hands to a function that reads a DynamoDB stream.
///
/// Records are decoded one at a time. One that cannot be decoded affects no other and becomes a dead letter as it was
/// delivered, and the largest batch is never decoded in memory as a whole.
#[derive(Debug, Deserialize)]
pub struct Batch {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

impl Batch {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records in the order of the stream.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        self.records.iter().map(|raw| Record { raw })
    }

    /// The record at an index of the batch.
    pub fn record(&self, index: usize) -> Option<Record<'_>> {
        self.records.get(index).map(|raw| Record { raw })
    }
}

/// One record of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    raw: &'a RawValue,
}

/// The field by which a failed record is reported.
#[derive(Deserialize)]
struct Head {
    dynamodb: HeadChange,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HeadChange {
    sequence_number: String,
}

impl<'a> Record<'a> {
    /// The whole record as it was delivered.
    pub fn raw(self) -> &'a RawValue {
        self.raw
    }

    /// The whole record, decoded. An error names the field, such as `dynamodb.NewImage.ev`.
    pub fn decode(self) -> Result<EventRecord, String> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.problem())
    }

    /// Why it cannot be decoded. Decodes it again, since keeping track of the field costs time.
    fn problem(self) -> String {
        let mut json = serde_json::Deserializer::from_str(self.raw.get());
        let decoded: Result<EventRecord, _> = serde_path_to_error::deserialize(&mut json);
        let error = decoded.err().map(|error| error.to_string());
        format!("it is not a stream record: {}", error.unwrap_or_default())
    }

    /// Its sequence number, even if the rest cannot be decoded.
    pub fn sequence_number(self) -> Option<String> {
        serde_json::from_str::<Head>(self.raw.get())
            .ok()
            .map(|head| head.dynamodb.sequence_number)
            .filter(|number| !number.is_empty())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn one_unreadable_record_leaves_the_others_readable() {
        let batch: Batch = serde_json::from_str(
            r#"{"Records": [
                {"dynamodb": {"SequenceNumber": "7", "NewImage": {"x": {"N": 3}}}, "eventName": "MODIFY"},
                17,
                {"awsRegion": "r", "eventID": "1", "eventName": "INSERT", "dynamodb":
                    {"SequenceNumber": "9", "SizeBytes": 1, "ApproximateCreationDateTime": 1.7e9}}
            ]}"#,
        )
        .unwrap();
        let records: Vec<_> = batch.records().collect();
        assert_eq!(records.len(), 3);
        assert!(records[0].decode().is_err());
        assert!(records[1].decode().is_err());
        assert_eq!(records[0].sequence_number().as_deref(), Some("7"));
        assert_eq!(records[1].sequence_number(), None);
        assert_eq!(records[2].decode().unwrap().event_name, "INSERT");
    }

    #[test]
    fn an_error_names_the_image_and_the_attribute_that_cannot_be_read() {
        for (image, field) in [
            (r#""OldImage": {"ev": {"N": 1}}"#, "dynamodb.OldImage.ev.N"),
            (r#""OldImage": {}, "NewImage": {"ev": 1}"#, "dynamodb.NewImage.ev"),
            (r#""Keys": 7"#, "dynamodb.Keys"),
        ] {
            let record = format!(
                r#"{{"awsRegion": "r", "eventID": "1", "eventName": "MODIFY", "dynamodb": {{"SizeBytes": 1, {image}}}}}"#
            );
            let batch: Batch = serde_json::from_str(&format!(r#"{{"Records": [{record}]}}"#)).unwrap();
            let problem = batch.record(0).unwrap().decode().unwrap_err();
            assert!(
                problem.starts_with(&format!("it is not a stream record: {field}: ")),
                "{problem}"
            );
        }
    }
}
