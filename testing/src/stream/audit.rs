//! Audit events as a stream, and what the archive must hold.

use std::collections::BTreeMap;

use fastrand::Rng;
use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, EntityId, Item, Timestamp, Ulid, keys,
};

use super::{ItemChange, Stream};

/// What was written, and what the archive must hold.
#[derive(Debug)]
pub struct AuditTrail {
    /// The stream.
    pub stream: Stream,
    /// Each event by the key of its object.
    pub events: BTreeMap<String, AuditEvent>,
    /// How many records can never be archived.
    pub malformed: usize,
}

/// This many events over some hours, into the next month, with other items in between.
pub fn audit_trail(seed: u64, events: usize) -> AuditTrail {
    fastrand::seed(seed);
    let mut random = Rng::with_seed(seed);
    let start = Timestamp::parse("2026-02-28T20:00:00Z").unwrap();
    let mut trail = AuditTrail {
        stream: Stream::new(start, 9_999_999_999_999_999_999_000),
        events: BTreeMap::new(),
        malformed: 0,
    };
    for number in 0..events {
        let millis = i64::try_from(number * 25_200_000 / events).unwrap();
        let at = start.plus_millis(millis);
        let event = event(&mut random, at);
        let image = json(&event.to_item());
        let key = keys::audit(&event.subject.to_string(), event.id);
        let push = |stream: &mut Stream, kind, sk: &str| {
            let (pk, at) = (key.pk.as_str(), at.seconds());
            stream.push(&ItemChange {
                kind,
                pk,
                sk,
                at,
                old: None,
                new: Some(&image),
            });
        };
        push(&mut trail.stream, "INSERT", &key.sk);
        if number % 700 == 3 {
            trail.stream.split(number);
        }
        match number % 97 {
            5 => push(&mut trail.stream, "MODIFY", &key.sk),
            7 => push(&mut trail.stream, "REMOVE", &key.sk),
            11 => {
                let (pk, at, new) = ("AUDIT#x", at.seconds(), Some(r#"{"event_id":{"S":"no id"}}"#));
                trail.stream.push(&ItemChange {
                    kind: "INSERT",
                    pk,
                    sk: "#AUDIT#x",
                    at,
                    old: None,
                    new,
                });
                trail.malformed += 1;
            }
            _ => {}
        }
        let day = at.to_string();
        let (year, month, day) = (&day[..4], &day[5..7], &day[8..10]);
        let key = format!("audit/year={year}/month={month}/day={day}/{}.jsonl.gz", event.id);
        trail.events.insert(key, event);
    }
    trail
}

fn event(random: &mut Rng, at: Timestamp) -> AuditEvent {
    let entity = EntityId::parse(format!("user-{}", random.u8(..50))).unwrap();
    let limit = AttributeValue::M(
        [(
            "capacity".to_owned(),
            AttributeValue::N(random.u32(..).to_string()),
        )]
        .into(),
    );
    AuditEvent {
        id: Ulid::new(at, random.u128(..)),
        subject: AuditSubject::Entity(entity),
        timestamp: Timestamp::from_seconds(at.seconds()),
        action: AuditAction::LimitsSet,
        principal: random
            .bool()
            .then(|| "arn:aws:iam::123456789012:user/ops".to_owned()),
        resource: Some("gpt-4".to_owned()),
        details: [("limits".to_owned(), AttributeValue::L(vec![limit]))].into(),
        ttl: Some(at.seconds() + 7_776_000),
        unknown: BTreeMap::new(),
    }
}

fn json(item: &Item) -> String {
    serde_json::to_string(item).unwrap()
}
