//! A DynamoDB stream: shards with parents, and records with numbers that grow in length.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use zae_limiter_schema::Timestamp;

/// One change of an item, with its images in DynamoDB's JSON.
#[derive(Debug, Clone)]
pub struct ItemChange<'a> {
    /// `INSERT`, `MODIFY` or `REMOVE`.
    pub kind: &'static str,
    /// The item's partition key.
    pub pk: &'a str,
    /// The item's sort key.
    pub sk: &'a str,
    /// When, in epoch seconds.
    pub at: i64,
    /// The item before.
    pub old: Option<&'a str>,
    /// The item after.
    pub new: Option<&'a str>,
}

/// A stream of one table.
#[derive(Debug)]
pub struct Stream {
    arn: String,
    pub(crate) shards: Vec<Shard>,
}

#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) id: String,
    pub(crate) parent: Option<usize>,
    pub(crate) records: Vec<Record>,
    children: Option<(usize, usize)>,
    depth: u32,
    next: u128,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: String,
    pub(crate) at: i64,
    pub(crate) json: String,
    /// What the mapping's filter looks at.
    pub(crate) kind: &'static str,
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Stream {
    /// A stream with one shard. Its label is the time at which it was made; numbers start at `first`.
    pub fn new(made: Timestamp, first: u128) -> Self {
        let label = made.to_string().replace('Z', ".000");
        let arn = format!("arn:aws:dynamodb:us-east-1:123456789012:table/limiter/stream/{label}");
        let shard = Shard::new(0, None, 0, first);
        Self {
            arn,
            shards: vec![shard],
        }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.records.len()).sum()
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All records as the event of one invocation, shard by shard.
    pub fn event(&self) -> String {
        event(self.shards.iter().flat_map(|shard| &shard.records))
    }

    /// Writes a change into the open shard of its item.
    pub fn push(&mut self, change: &ItemChange<'_>) {
        let place = self.shard_of(change.pk, change.sk);
        let shard = &mut self.shards[place];
        let number = shard.next.to_string();
        shard.next += 1 + u128::from(fastrand::u8(..));
        let json = json(&self.arn, &number, change);
        shard.records.push(Record {
            number,
            at: change.at,
            json,
            kind: change.kind,
            pk: change.pk.to_owned(),
            sk: change.sk.to_owned(),
        });
    }

    /// Closes a shard that is open and gives it two children, whose numbers are longer than any of its own. A shard whose
    /// numbers cannot become longer stays open.
    pub fn split(&mut self, chance: usize) {
        let open: Vec<_> = (0..self.shards.len())
            .filter(|at| self.shards[*at].children.is_none())
            .filter(|at| self.shards[*at].next < u128::MAX / 1_000)
            .collect();
        if open.is_empty() {
            return;
        }
        let parent = open[chance % open.len()];
        let (depth, next) = (self.shards[parent].depth + 1, self.shards[parent].next);
        let first = self.shards.len();
        // As in AWS's own example: 205… (23 digits), 820… (24), 168… (25).
        for (child, factor) in [(first, 19), (first + 1, 70)] {
            self.shards
                .push(Shard::new(child, Some(parent), depth, next * factor));
        }
        self.shards[parent].children = Some((first, first + 1));
    }

    fn shard_of(&self, pk: &str, sk: &str) -> usize {
        let hash = hash(pk, sk);
        let mut place = 0;
        while let Some((left, right)) = self.shards[place].children {
            place = if hash >> self.shards[place].depth & 1 == 0 {
                left
            } else {
                right
            };
        }
        place
    }
}

impl Shard {
    fn new(place: usize, parent: Option<usize>, depth: u32, next: u128) -> Self {
        Self {
            id: format!("shardId-{place:020}"),
            parent,
            records: Vec::new(),
            children: None,
            depth,
            next,
        }
    }
}

/// What decides where an item's records go.
pub(super) fn hash(pk: &str, sk: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (pk, sk).hash(&mut hasher);
    hasher.finish()
}

/// The event of an invocation.
pub(super) fn event<'r>(records: impl IntoIterator<Item = &'r Record>) -> String {
    let json: Vec<_> = records.into_iter().map(|record| record.json.as_str()).collect();
    format!(r#"{{"Records":[{}]}}"#, json.join(","))
}

/// The record as Lambda delivers it. There is no shard id in it.
fn json(arn: &str, number: &str, change: &ItemChange<'_>) -> String {
    let ItemChange {
        kind,
        pk,
        sk,
        at,
        old,
        new,
    } = change;
    let old = old
        .map(|image| format!(r#","OldImage":{image}"#))
        .unwrap_or_default();
    let new = new
        .map(|image| format!(r#","NewImage":{image}"#))
        .unwrap_or_default();
    format!(
        concat!(
            r#"{{"eventID":"{number:0>32}","eventName":"{kind}","eventVersion":"1.1","eventSource":"aws:dynamodb","#,
            r#""awsRegion":"us-east-1","dynamodb":{{"ApproximateCreationDateTime":{at}.0,"#,
            r#""Keys":{{"PK":{{"S":"{pk}"}},"SK":{{"S":"{sk}"}}}},"SequenceNumber":"{number}","SizeBytes":700,"#,
            r#""StreamViewType":"NEW_AND_OLD_IMAGES"{old}{new}}},"eventSourceARN":"{arn}"}}"#,
        ),
        number = number,
        kind = kind,
        at = at,
        pk = pk,
        sk = sk,
        old = old,
        new = new,
        arn = arn,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_stays_in_order_through_splits_and_numbers_grow_in_length() {
        let mut stream = Stream::new(Timestamp::from_seconds(1), 99_999_999_999_999_999_990);
        for change in 0..4_000 {
            if change % 1_000 == 500 {
                stream.split(change);
            }
            let pk = format!("ENTITY#{}", change % 7);
            stream.push(&ItemChange {
                kind: "MODIFY",
                pk: &pk,
                sk: "#BUCKET#x",
                at: 5,
                old: None,
                new: Some("{}"),
            });
        }
        assert_eq!((stream.shards.len(), stream.len()), (9, 4_000));
        for shard in &stream.shards {
            let numbers: Vec<u128> = shard
                .records
                .iter()
                .map(|record| record.number.parse().unwrap())
                .collect();
            assert!(numbers.is_sorted());
            let parent = shard.parent.map(|parent| &stream.shards[parent]);
            let before = parent
                .and_then(|parent| parent.records.last())
                .map(|last| last.number.clone());
            if let (Some(before), Some(first)) = (before, shard.records.first()) {
                assert!(first.number.len() > before.len(), "{before} {}", first.number);
            }
        }
    }
}
