//! Events about thresholds that cannot be sent.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Aggregator, Alerts, MAX_EVENTS, ThresholdEvent, metric};
use zae_limiter_function::{CallError, Function as _, Invocation, Level, Report};
use zae_limiter_schema::WindowKind;

use super::support::{Letters, STREAM, Script, batch, good};

/// A record by which an entity has used this much of a quota of 500, with thresholds at 80 and 100 percent.
fn using(number: u64, entity: &str, used: u64) -> Json {
    let millis = |tokens: u64| json!({"N": (tokens * 1_000).to_string()});
    json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1", "eventSourceARN": STREAM,
        "dynamodb": {
            "ApproximateCreationDateTime": 1_769_903_998, "SequenceNumber": number.to_string(), "SizeBytes": 1,
            "Keys": {"PK": {"S": format!("ENTITY#{entity}")}, "SK": {"S": "#BUCKET#gpt-4"}},
            "NewImage": {
                "q_spend_us": millis(used), "q_spend_cp": millis(500), "q_spend_tc": millis(used),
                "q_spend_pe": {"N": "1772323200000"}, "q_spend_al": {"S": "80 100"}, "ev": {"N": "1"},
            },
        },
    })
}

/// A bus with responses for each entity, the first one first, and a record of what it was sent.
#[derive(Default)]
struct Bus {
    responses: RefCell<BTreeMap<&'static str, Vec<Result<(), CallError>>>>,
    calls: RefCell<Vec<Vec<String>>>,
    /// Every call fails.
    down: Option<CallError>,
}

impl Bus {
    fn responding(entity: &'static str, responses: Vec<Result<(), CallError>>) -> Self {
        Self {
            responses: RefCell::new([(entity, responses)].into()),
            ..Self::default()
        }
    }
}

impl Alerts for Bus {
    async fn send(&self, events: &[&ThresholdEvent]) -> Result<Vec<Result<(), CallError>>, CallError> {
        let names = events
            .iter()
            .map(|event| format!("{} {}", event.entity, event.threshold));
        self.calls.borrow_mut().push(names.collect());
        if let Some(error) = &self.down {
            return Err(error.clone());
        }
        let mut responses = self.responses.borrow_mut();
        let mut respond = |entity: &str| match responses.get_mut(entity) {
            Some(left) if !left.is_empty() => left.remove(0),
            _ => Ok(()),
        };
        Ok(events
            .iter()
            .map(|event| respond(event.entity.as_str()))
            .collect())
    }
}

struct Outcome {
    failed: Vec<String>,
    report: Report,
    letters: Vec<String>,
}

async fn process(table: &Script, bus: &Bus, records: &[Json]) -> Outcome {
    let letters = Letters::default();
    let aggregator = Aggregator::new(table, &letters, vec![WindowKind::Daily], 30).with_alerts(Some(bus));
    let mut report = Report::new(Level::Info, &[]);
    let invocation = Invocation::within(Duration::from_secs(20));
    let response = aggregator.handle(&batch(records), &invocation, &mut report).await;
    let failed = response.unwrap().batch_item_failures.into_iter();
    let failed = failed.map(|item| item.item_identifier.unwrap()).collect();
    let reasons = letters.kept.borrow();
    let reason = |letter: &Json| format!("{} {}", letter["sequenceNumber"], letter["reason"]);
    Outcome {
        failed,
        report,
        letters: reasons.iter().map(reason).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_has_all_that_its_receiver_needs() {
    let (table, bus) = (Script::default(), Bus::default());
    let done = process(&table, &bus, &[good(1, "a"), using(2, "team-1", 412)]).await;
    assert_eq!((done.failed.len(), done.letters.len()), (0, 0));
    assert_eq!(done.report.counted(metric::THRESHOLDS), 1);
    assert_eq!(*bus.calls.borrow(), [["team-1 80"]]);
    assert_eq!(
        *table.marked.borrow(),
        ["#THRESHOLD#gpt-4#spend#2026-03-01T00:00:00Z#80#500"]
    );
}

/// A reset ends the period one millisecond later, which is no new period for those who are told.
#[tokio::test(start_paused = true)]
async fn an_event_and_its_mark_tell_periods_apart_by_the_second() {
    let ending = |number: u64, end: &str| {
        let mut record = using(number, "team-1", 400);
        record["dynamodb"]["NewImage"]["q_spend_pe"] = json!({ "N": end });
        record
    };
    let (table, bus) = (Script::default(), Bus::default());
    let ends = ["1772323200000", "1772323200001", "1772323201000"];
    let records = [ending(1, ends[0]), ending(2, ends[1]), ending(3, ends[2])];
    process(&table, &bus, &records).await;
    assert_eq!(*bus.calls.borrow(), [["team-1 80", "team-1 80"]]);
    assert_eq!(table.marked.borrow().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_does_not_take_is_sent_again_and_nothing_else() {
    let throttled = || Err(CallError::Throttled("ThrottlingException".to_owned()));
    let bus = Bus::responding("b", vec![throttled(), throttled()]);
    let records = ["a", "b", "c"].map(|entity| using(1, entity, 400));
    let done = process(&Script::default(), &bus, &records).await;
    assert_eq!((done.failed.len(), done.letters.len()), (0, 0));
    assert_eq!(
        *bus.calls.borrow(),
        [vec!["a 80", "b 80", "c 80"], vec!["b 80"], vec!["b 80"]]
    );
    assert_eq!(done.report.counted(metric::THRESHOLDS), 3);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_not_sent_in_time_is_delivered_again_and_its_usage_is_counted() {
    let bus = Bus {
        down: Some(CallError::Unavailable("no response".to_owned())),
        ..Bus::default()
    };
    let records = [good(1, "a"), using(2, "b", 400), good(3, "c")];
    let done = process(&Script::default(), &bus, &records).await;
    assert_eq!(done.failed, ["2"]);
    assert_eq!(done.report.counted(metric::SNAPSHOTS), 3);
    assert_eq!(done.letters, [] as [String; 0]);
}

/// Only an operator can grant the permission, and usage must not wait for that.
#[tokio::test(start_paused = true)]
async fn without_the_permission_the_record_is_a_dead_letter_and_usage_is_counted() {
    for error in [
        CallError::Denied("AccessDeniedException: not authorized to perform events:PutEvents".to_owned()),
        CallError::Refused("MalformedDetail".to_owned()),
    ] {
        let bus = Bus {
            down: Some(error.clone()),
            ..Bus::default()
        };
        let records = [good(1, "a"), using(2, "b", 400), good(3, "c")];
        let done = process(&Script::default(), &bus, &records).await;
        assert_eq!(done.failed, [] as [String; 0]);
        assert_eq!(done.report.counted(metric::SNAPSHOTS), 3);
        let reason = format!(r#""2" "threshold 80% of spend of b on gpt-4 cannot be sent: {error}""#);
        assert_eq!(done.letters, [reason]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_threshold_that_another_record_has_marked_is_not_sent_again() {
    let (table, bus) = (
        Script {
            marking: Some(Ok(false)),
            ..Script::default()
        },
        Bus::default(),
    );
    let done = process(&table, &bus, &[using(1, "a", 400)]).await;
    assert_eq!((done.failed.len(), done.letters.len()), (0, 0));
    assert_eq!(*bus.calls.borrow(), [[""; 0]; 0]);
    // Nothing is sent before the mark is made.
    let table = Script {
        marking: Some(Err(CallError::Throttled("slow down".to_owned()))),
        ..Script::default()
    };
    let done = process(&table, &bus, &[using(1, "a", 400)]).await;
    assert_eq!(done.failed, ["1"]);
    assert!(bus.calls.borrow().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_has_no_more_events_than_eventbridge_takes() {
    let bus = Bus::default();
    let names: Vec<_> = (0..17).map(|n| format!("user-{n}")).collect();
    let records: Vec<_> = names.iter().map(|entity| using(1, entity, 500)).collect();
    process(&Script::default(), &bus, &records).await;
    let sizes: Vec<_> = bus.calls.borrow().iter().map(Vec::len).collect();
    assert_eq!(sizes, [MAX_EVENTS, MAX_EVENTS, MAX_EVENTS, 4]);
}

#[tokio::test(start_paused = true)]
async fn without_a_destination_no_threshold_is_marked() {
    let (table, letters) = (Script::default(), Letters::default());
    let aggregator = Aggregator::new(&table, &letters, vec![WindowKind::Daily], 30);
    let mut report = Report::new(Level::Info, &[]);
    let invocation = Invocation::within(Duration::from_secs(20));
    let records = batch(&[using(1, "a", 400)]);
    aggregator
        .handle(&records, &invocation, &mut report)
        .await
        .unwrap();
    assert!(table.marked.borrow().is_empty());
}
