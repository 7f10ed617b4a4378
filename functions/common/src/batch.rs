//! A batch of stream records, each kept as text until it is needed.

use aws_lambda_events::dynamodb::EventRecord;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ItemChange;

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

    /// The whole record, decoded, or why that is not possible.
    pub fn decode(self) -> Result<EventRecord, String> {
        serde_json::from_str(self.raw.get()).map_err(|error| format!("it is not a stream record: {error}"))
    }

    /// What it says about an item, or why that is not possible.
    pub fn change(self) -> Result<ItemChange<'a>, String> {
        ItemChange::read(self.raw.into()).map_err(|error| format!("it is not a stream record: {error}"))
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
    use crate::Image;

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
        assert!(Image::read(records[0].change().unwrap().new_image).is_err());
        assert!(records[1].change().is_err());
        assert_eq!(records[0].sequence_number().as_deref(), Some("7"));
        assert_eq!(records[1].sequence_number(), None);
        assert_eq!(records[2].decode().unwrap().event_name, "INSERT");
        assert_eq!(&*records[2].change().unwrap().event_name, "INSERT");
    }
}
