//! The archiver behind an event source mapping, with everything that can go wrong.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use zae_limiter_archiver::{Archiver, Object, Store};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::AuditEvent;
use zae_limiter_testing::stream::{
    Chaos, Cloud, Failed, Invoke, Lambda, Mapping, Options, ServiceFault, audit_trail,
};

/// Both a store and a queue that misbehave.
#[derive(Clone)]
struct Unreliable {
    chaos: Rc<Chaos>,
    crash: Rc<Notify>,
    kept: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
}

impl Unreliable {
    async fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), CallError> {
        tokio::task::yield_now().await;
        let fault = self.chaos.fault(name);
        if matches!(
            fault,
            ServiceFault::None | ServiceFault::LostResponse | ServiceFault::Late
        ) {
            let before = self.kept.borrow_mut().insert(name.to_owned(), bytes.to_vec());
            assert!(
                before.is_none_or(|before| before == bytes),
                "an event that comes again gives the same bytes"
            );
        }
        match fault {
            ServiceFault::None => Ok(()),
            ServiceFault::Crash => {
                self.crash.notify_one();
                std::future::pending().await
            }
            _ => Err(CallError::Unavailable("no response".to_owned())),
        }
    }
}

impl Store for Unreliable {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        self.keep(&object.key, &object.body).await
    }
}

impl DeadLetters for Unreliable {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        self.keep(&letter.to_message(), &[]).await
    }
}

struct InProcess {
    archiver: Archiver<Unreliable, Unreliable>,
    cloud: Unreliable,
}

impl Invoke for InProcess {
    async fn invoke(&self, event: &str) -> Result<String, Failed> {
        self.cloud.chaos.begin_invocation();
        let batch: Batch = serde_json::from_str(event).unwrap();
        let mut report = Report::new(Level::Info, &[]);
        let invocation = Invocation::within(Duration::from_secs(10));
        let response = tokio::select! {
            biased;
            () = self.cloud.crash.notified() => return Err(Failed("killed".to_owned())),
            response = self.archiver.handle(&batch, &invocation, &mut report) => response,
        };
        Ok(serde_json::to_string(&response.unwrap()).unwrap())
    }
}

/// The archive holds exactly these events, each under its own day, with every field.
fn assert_archived(events: &BTreeMap<String, AuditEvent>, objects: &BTreeMap<String, Vec<u8>>) {
    let missing: Vec<_> = events
        .keys()
        .filter(|key| !objects.contains_key(*key))
        .take(3)
        .collect();
    assert_eq!(missing, [] as [&String; 0]);
    assert_eq!(events.len(), objects.len());
    for (key, event) in events {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&objects[key][..])
            .read_to_string(&mut text)
            .unwrap();
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["event_id"], event.id.to_string());
        assert_eq!(line["entity_id"], event.subject.to_string());
        assert_eq!(line["timestamp"], event.timestamp.to_string());
        assert_eq!(line["action"], event.action.as_str());
        assert_eq!(line["principal"].as_str(), event.principal.as_deref());
        assert!(line["details"]["limits"][0]["capacity"].is_u64());
        assert_eq!(line.get("ttl"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn the_archive_has_every_event_exactly_once_with_random_faults() {
    for seed in 0..4 {
        let trail = audit_trail(seed, 5_000);
        let cloud = Unreliable {
            chaos: Rc::new(Chaos::new(seed, 40)),
            crash: Rc::default(),
            kept: Rc::default(),
        };
        let function = InProcess {
            archiver: Archiver::new(cloud.clone(), cloud.clone()),
            cloud,
        };
        function.cloud.chaos.begin_outage(12);
        let options = Options {
            rewinds: 20,
            overlaps: 10,
            replays: 1,
            ..Options::archiver()
        };
        let mut mapping = Mapping::new(&trail.stream, options, seed);
        mapping.run(&function).await;
        assert_eq!(mapping.discarded, []);
        let mut objects = function.cloud.kept.borrow().clone();
        let letters: BTreeSet<_> = objects.extract_if(.., |name, _| name.starts_with('{')).collect();
        assert_eq!(letters.len(), trail.malformed);
        assert_archived(&trail.events, &objects);
        assert!(function.cloud.chaos.faults.get() > 500 && mapping.deliveries > 7_000);
    }
}

#[tokio::test]
async fn the_binary_archives_every_event_exactly_once_through_crashes_and_lost_responses() {
    let events = match std::env::var("ZAE_FLEET").as_deref() {
        Ok("long") => 20_000,
        _ => 1_500,
    };
    let trail = audit_trail(9, events);
    let cloud = Cloud::start(Chaos::new(9, 40));
    let binary = env!("CARGO_BIN_EXE_zae-limiter-archiver");
    let lambda = Lambda::new(binary, &cloud, &[("ARCHIVE_BUCKET_NAME", "archive")]);
    let options = Options {
        rewinds: 20,
        replays: 1,
        ..Options::archiver()
    };
    let mut mapping = Mapping::new(&trail.stream, options, 9);
    // How the weather turns out depends on the timing of calls: what the test is about is arranged.
    cloud.begin_crash(5);
    cloud.begin_outage(3);
    mapping.run(&lambda).await;
    assert_eq!(mapping.discarded, []);
    cloud.settle();
    let objects = cloud.objects();
    assert!(
        objects
            .values()
            .all(|object| object.content_type == "application/x-ndjson")
    );
    assert!(objects.values().all(|object| object.content_encoding == "gzip"));
    assert_archived(
        &trail.events,
        &objects
            .into_iter()
            .map(|(key, object)| (key, object.body))
            .collect(),
    );
    let letters: BTreeSet<_> = cloud.letters().into_iter().collect();
    assert_eq!(letters.len(), trail.malformed);
    assert!(cloud.rewritten() > 100 && lambda.starts().len() >= 2);
}
