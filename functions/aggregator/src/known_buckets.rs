//! The latest state of each bucket in a batch.

use std::collections::HashMap;
use std::rc::Rc;

use zae_limiter_function::{Image, ItemChange, Json};

use crate::Digest;

/// Buckets beyond this number are parsed every time, which bounds the memory of a batch.
const MAX_BUCKETS: usize = 1_000;

/// A bucket in one state.
#[derive(Debug)]
pub(crate) struct Bucket<'a> {
    json: Json<'a>,
    pub(crate) image: Image<'a>,
    pub(crate) digest: Digest,
}

impl<'a> Bucket<'a> {
    fn of(json: Json<'a>, image: Image<'a>) -> Rc<Self> {
        let digest = Digest::of(&image);
        Rc::new(Self { json, image, digest })
    }
}

/// The latest state of each bucket in a batch, by key. The old image of the next record is usually that same state, so it is not parsed
/// again.
#[derive(Debug, Default)]
pub(crate) struct KnownBuckets<'a> {
    left: HashMap<Json<'a>, Rc<Bucket<'a>>>,
}

impl<'a> KnownBuckets<'a> {
    /// The bucket before and after a change.
    pub(crate) fn before_and_after(
        &mut self,
        change: &ItemChange<'a>,
    ) -> Result<(Rc<Bucket<'a>>, Rc<Bucket<'a>>), String> {
        let left = self.left.get(&change.keys);
        let old = if let Some(left) = left.filter(|left| left.json == change.old_image) {
            left.clone()
        } else {
            let image = Image::read(change.old_image).map_err(|error| format!("OldImage: {error}"))?;
            Bucket::of(change.old_image, image)
        };
        let image = Image::read_like(&old.image, change.new_image);
        let image = image.map_err(|error| format!("NewImage: {error}"))?;
        let new = Bucket::of(change.new_image, image);
        if left.is_some() || self.left.len() < MAX_BUCKETS {
            self.left.insert(change.keys, new.clone());
        }
        Ok((old, new))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use zae_limiter_function::Batch;

    use super::*;
    use crate::Reading;
    use crate::rules::Rules;

    fn image(consumed: u64) -> String {
        format!(r#"{{"b_rpm_tc":{{"N":"{consumed}000"}},"ev":{{"N":"{consumed}"}}}}"#)
    }

    const STREAM: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/2026-01-31T00:00:00.000";

    fn record(number: usize, bucket: usize, old: &str, new: &str) -> String {
        format!(
            concat!(
                r#"{{"eventName":"MODIFY","eventSourceARN":"{4}","dynamodb":{{"ApproximateCreationDateTime":1769889600,"#,
                r##""Keys":{{"PK":{{"S":"ENTITY#user-{1}"}},"SK":{{"S":"#BUCKET#gpt-4"}}}},"##,
                r#""OldImage":{2},"NewImage":{3},"SequenceNumber":"{0}"}}}}"#
            ),
            number, bucket, old, new, STREAM
        )
    }

    fn batch(records: &[String]) -> Batch {
        serde_json::from_str(&format!(r#"{{"Records":[{}]}}"#, records.join(","))).unwrap()
    }

    #[test]
    fn a_record_reads_the_same_after_whatever_other_records() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut last = vec![0_u64; MAX_BUCKETS + 100];
        let records: Vec<_> = (0..20_000)
            .map(|number| {
                // Half of the records hit five hot buckets; the rest spread over more buckets than are kept.
                let buckets = if random.bool() { 5 } else { last.len() };
                let bucket = random.usize(..buckets);
                let old = match random.u8(..10) {
                    // The previous record is missing.
                    0 => last[bucket] + 1,
                    // The record is delivered again.
                    1 => last[bucket].saturating_sub(1),
                    _ => last[bucket],
                };
                last[bucket] = old + 1;
                let old = match random.u8(..10) {
                    0 => format!(r#"{{"ev":{{"N":"{old}"}},"b_rpm_tc":{{"N":"{old}000"}}}}"#),
                    1 => "null".to_owned(),
                    _ => image(old),
                };
                record(number, bucket, &old, &image(last[bucket]))
            })
            .collect();
        let batch = batch(&records);
        let mut known = KnownBuckets::default();
        for record in batch.records() {
            let change = record.change().unwrap();
            let after_others = Reading::by(Rules::default(), &change, &mut known).unwrap();
            assert_eq!(after_others, Reading::of(&change).unwrap());
        }
        assert_eq!(known.left.len(), MAX_BUCKETS);
    }

    #[test]
    fn an_image_that_cannot_be_read_is_named() {
        let batch = batch(&[
            record(1, 1, r#"{"ev":{"N":1}}"#, "null"),
            record(2, 1, "null", r#"{"ev":1}"#),
        ]);
        let problem = |index: usize| {
            let change = batch.record(index).unwrap().change().unwrap();
            Reading::of(&change).unwrap_err().to_string()
        };
        assert_eq!(problem(0), "OldImage: a string was expected at byte 11");
        assert_eq!(problem(1), "NewImage: an object was expected at byte 6");
    }

    #[test]
    fn a_state_that_the_last_record_has_left_is_not_read_again() {
        let batch = batch(&[
            record(1, 1, "null", &image(1)),
            record(2, 2, "null", &image(7)),
            record(3, 1, &image(1), &image(2)),
            record(4, 1, &image(3), &image(4)),
        ]);
        let mut known = KnownBuckets::default();
        let states: Vec<_> = batch
            .records()
            .map(|record| known.before_and_after(&record.change().unwrap()).unwrap())
            .collect();
        assert!(Rc::ptr_eq(&states[0].1, &states[2].0));
        assert!(!Rc::ptr_eq(&states[2].1, &states[3].0));
        assert_eq!(states[3].0.digest, Digest::of(&states[3].0.image));
    }
}
