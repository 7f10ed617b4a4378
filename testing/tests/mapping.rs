//! The stream simulator follows Lambda's documented rules for DynamoDB streams.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// Responses are what a function would return, be they good or bad.
#![allow(clippy::unnecessary_wraps)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use zae_limiter_schema::Timestamp;
use zae_limiter_template::filters;
use zae_limiter_testing::stream::{Failed, Invoke, ItemChange, Mapping, Options, Stream};

/// Responds by a rule and remembers the numbers of every batch.
struct Recording<R> {
    rule: R,
    batches: RefCell<Vec<Vec<String>>>,
}

impl<R: Fn(usize, &[String]) -> Result<String, Failed>> Recording<R> {
    fn new(rule: R) -> Self {
        Self {
            rule,
            batches: RefCell::default(),
        }
    }

    fn sizes(&self) -> Vec<usize> {
        self.batches.borrow().iter().map(Vec::len).collect()
    }
}

impl<R: Fn(usize, &[String]) -> Result<String, Failed>> Invoke for Recording<R> {
    async fn invoke(&self, event: &str) -> Result<String, Failed> {
        let event: Value = serde_json::from_str(event).unwrap();
        let records = event["Records"].as_array().unwrap();
        assert!(
            records.iter().all(|record| record.get("shardId").is_none()),
            "events carry no shard id"
        );
        let numbers: Vec<_> = records
            .iter()
            .map(|record| record["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned())
            .collect();
        let invocation = self.batches.borrow().len();
        let response = (self.rule)(invocation, &numbers);
        self.batches.borrow_mut().push(numbers);
        response
    }
}

fn done() -> Result<String, Failed> {
    Ok(r#"{"batchItemFailures":[]}"#.to_owned())
}

fn failing(number: &str) -> Result<String, Failed> {
    Ok(format!(
        r#"{{"batchItemFailures":[{{"itemIdentifier":"{number}"}}]}}"#
    ))
}

/// Buckets of some entities, one change a second.
fn stream(changes: i64) -> Stream {
    let mut stream = Stream::new(Timestamp::from_seconds(1_000), 10_u128.pow(21));
    for at in 0..changes {
        write(&mut stream, 1_000_000 + at);
    }
    stream
}

fn write(stream: &mut Stream, at: i64) {
    let pk = format!("ENTITY#{}", at % 5);
    stream.push(&ItemChange {
        kind: "MODIFY",
        pk: &pk,
        sk: "#BUCKET#x",
        at,
        old: None,
        new: Some("{}"),
    });
}

fn options(batch_size: usize) -> Options {
    Options {
        batch_size,
        ..Options::aggregator()
    }
}

#[tokio::test]
async fn every_record_comes_once_and_in_order_when_all_goes_well() {
    let stream = stream(500);
    let function = Recording::new(|_, _| done());
    Mapping::new(&stream, options(64), 1).run(&function).await;
    let delivered: Vec<u128> = function
        .batches
        .borrow()
        .iter()
        .flatten()
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(delivered.len(), 500);
    assert!(delivered.is_sorted());
    assert!(function.sizes().iter().all(|size| *size <= 64));
}

#[tokio::test]
async fn what_the_filter_leaves_out_never_reaches_the_function() {
    let mut stream = stream(20);
    for (kind, sk) in [
        ("REMOVE", "#BUCKET#x"),
        ("INSERT", "#META"),
        ("MODIFY", "#USAGE#x#2026-01"),
    ] {
        stream.push(&ItemChange {
            kind,
            pk: "ENTITY#1",
            sk,
            at: 1_000_100,
            old: None,
            new: None,
        });
    }
    let function = Recording::new(|_, _| done());
    Mapping::new(&stream, options(1_000), 1).run(&function).await;
    assert_eq!(function.sizes().iter().sum::<usize>(), 20);
}

#[tokio::test]
async fn a_partial_failure_is_retried_from_the_lowest_reported_number_on() {
    let stream = stream(10);
    let function = Recording::new(|invocation, numbers| match invocation {
        0 => Ok(format!(
            r#"{{"batchItemFailures":[{{"itemIdentifier":"{}"}},{{"itemIdentifier":"{}"}}]}}"#,
            numbers[7], numbers[4]
        )),
        _ => done(),
    });
    Mapping::new(&stream, options(10), 4).run(&function).await;
    let batches = function.batches.borrow();
    let first = batches[0].len();
    assert!(first > 7, "the seed gives a full batch");
    assert_eq!(batches[1], batches[0][4..]);
}

#[tokio::test]
async fn a_failed_invocation_is_halved_until_the_bad_record_stands_alone_and_order_is_kept() {
    let stream = stream(64);
    let bad = RefCell::new(None);
    let function = Recording::new(|_, numbers| {
        let bad = bad
            .borrow_mut()
            .get_or_insert_with(|| numbers[numbers.len() / 3].clone())
            .clone();
        if numbers.contains(&bad) && numbers.len() > 1 {
            Err(Failed("crash".to_owned()))
        } else {
            done()
        }
    });
    let mut mapping = Mapping::new(&stream, options(64), 4);
    mapping.run(&function).await;
    assert_eq!(mapping.discarded, []);
    let batches = function.batches.borrow();
    let bad = bad.borrow().clone().unwrap();
    assert!(batches.iter().any(|batch| *batch == [bad.clone()]));
    let done: Vec<u128> = batches
        .iter()
        .filter(|batch| batch.len() == 1 || !batch.contains(&bad))
        .flatten()
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(done.is_sorted() && done.len() == 64);
}

#[tokio::test]
async fn bounded_retries_give_a_batch_up_to_the_on_failure_destination_as_a_range() {
    let stream = stream(30);
    let function = Recording::new(|_, numbers| failing(&numbers[0]));
    let mut mapping = Mapping::new(
        &stream,
        Options {
            maximum_retry_attempts: Some(2),
            ..options(30)
        },
        4,
    );
    mapping.run(&function).await;
    let first = &mapping.discarded[0];
    assert_eq!(first.condition, "RetryAttemptsExhausted");
    assert_eq!(
        (&first.start, &first.end),
        (
            &function.batches.borrow()[0][0],
            function.batches.borrow()[0].last().unwrap()
        )
    );
    assert_eq!(
        function.sizes()[..3],
        [first.records; 3],
        "one attempt and two retries"
    );
    assert_eq!(
        mapping.discarded.iter().map(|range| range.records).sum::<usize>(),
        30
    );
}

#[tokio::test]
async fn an_outage_longer_than_the_maximum_age_gives_up_what_is_older_and_names_the_range() {
    let stream = stream(30);
    let function = Recording::new(|_, numbers| failing(&numbers[0]));
    let options = Options {
        pace: 3_600,
        ..options(30)
    };
    let mut mapping = Mapping::new(&stream, options, 4);
    mapping.run(&function).await;
    assert!(
        mapping
            .discarded
            .iter()
            .all(|range| range.condition == "RecordAgeExceeded")
    );
    assert_eq!(
        mapping.discarded.iter().map(|range| range.records).sum::<usize>(),
        30
    );
    assert!(mapping.invocations > 20, "22 hours, an hour each");
}

#[tokio::test]
async fn an_outage_of_a_dozen_invocations_loses_nothing_without_a_bound_on_retries() {
    let stream = stream(30);
    let function = Recording::new(|invocation, numbers| {
        if invocation < 12 {
            failing(&numbers[0])
        } else {
            done()
        }
    });
    let mut mapping = Mapping::new(&stream, options(30), 4);
    mapping.run(&function).await;
    assert_eq!(mapping.discarded, []);
    let last = function.batches.borrow()[11].clone();
    assert_eq!(function.batches.borrow()[12], last);
}

#[tokio::test]
async fn a_parent_shard_is_done_with_before_its_children_and_a_replay_starts_over() {
    let mut stream = stream(50);
    stream.split(0);
    (0..200).for_each(|at| write(&mut stream, 1_000_050 + at));
    stream.split(1);
    (0..200).for_each(|at| write(&mut stream, 1_000_250 + at));
    let function = Recording::new(|_, _| done());
    Mapping::new(
        &stream,
        Options {
            replays: 1,
            ..options(16)
        },
        2,
    )
    .run(&function)
    .await;
    let numbers: Vec<u128> = function
        .batches
        .borrow()
        .iter()
        .flatten()
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(numbers.len() > 600, "{}", numbers.len());
    let start = numbers
        .iter()
        .rposition(|number| *number == 10_u128.pow(21))
        .unwrap();
    let replayed = &numbers[start..];
    assert_eq!(replayed.len(), 450, "the replay delivers everything");
    assert!(
        replayed[..50].iter().max() < replayed[50..].iter().min(),
        "the parent comes first"
    );
}

#[tokio::test]
async fn a_lost_checkpoint_delivers_again_what_was_done_with_and_skips_nothing() {
    let stream = stream(300);
    let function = Recording::new(|_, _| done());
    let rewinding = Options {
        rewinds: 40,
        ..options(16)
    };
    let mut mapping = Mapping::new(&stream, rewinding, 3);
    mapping.run(&function).await;
    let batches = function.batches.borrow();
    let delivered: BTreeSet<_> = batches.iter().flatten().collect();
    assert_eq!(delivered.len(), 300);
    assert!(mapping.deliveries > 300 && mapping.deliveries == batches.iter().map(Vec::len).sum::<usize>());
    let number = |batch: &Vec<String>| batch[0].parse::<u128>().unwrap();
    let goes_back = batches.windows(2).any(|pair| number(&pair[1]) < number(&pair[0]));
    assert!(goes_back, "the same records come again in other batches");
}

#[tokio::test]
async fn an_overlap_hands_one_batch_to_two_invocations() {
    let stream = stream(40);
    let function = Recording::new(|_, _| done());
    let overlapping = Options {
        overlaps: 100,
        ..options(16)
    };
    Mapping::new(&stream, overlapping, 3).run(&function).await;
    let batches = function.batches.borrow();
    assert!(batches.chunks(2).all(|pair| pair[0] == pair[1]), "{batches:?}");
    assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 80);
}

#[tokio::test]
async fn the_filters_are_those_of_the_stacks_template() {
    let keys = [
        ("ENTITY#user-1", "#BUCKET#gpt-4"),
        ("ENTITY#user-1", "#USAGE#gpt-4#2026-01-31T12:00:00Z"),
        ("ENTITY#user-1", "#META"),
        ("AUDIT#user-1", "#AUDIT#01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("AUDIT#$SYSTEM", "#BUCKET#x"),
        ("SYSTEM#", "#CONFIG"),
    ];
    for (options, pattern) in [
        (Options::aggregator(), filters::aggregator()),
        (Options::archiver(), filters::archiver()),
    ] {
        for (pk, sk) in keys {
            for kind in ["INSERT", "MODIFY", "REMOVE"] {
                let keys = json!({ "PK": { "S": pk }, "SK": { "S": sk } });
                let record = json!({ "eventName": kind, "dynamodb": { "Keys": keys } });
                assert_eq!(
                    (options.filter)(kind, pk, sk),
                    pattern.matches(&record),
                    "{kind} {pk} {sk}"
                );
            }
        }
    }
}

#[tokio::test]
async fn batches_of_one_shard_run_in_parallel_and_each_item_stays_in_order() {
    let mut stream = stream(300);
    stream.split(0);
    for at in 300..600 {
        write(&mut stream, 1_000_000 + at);
    }
    let function = Counting::default();
    let options = Options {
        parallelization_factor: 4,
        ..options(10)
    };
    let mut mapping = Mapping::new(&stream, options, 5);
    mapping.run(&function).await;
    assert_eq!(mapping.deliveries, 600);
    assert!(
        function.most.get() > 1 && function.most.get() <= 4,
        "{:?}",
        function.most
    );
    let delivered = function.delivered.borrow();
    assert_eq!(delivered.len(), 5, "every entity");
    for numbers in delivered.values() {
        assert_eq!(numbers.len(), 120);
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}

/// Succeeds after a while, counts how many invocations run at once, and keeps the numbers of each item.
#[derive(Default)]
struct Counting {
    running: Cell<usize>,
    most: Cell<usize>,
    delivered: RefCell<BTreeMap<String, Vec<u128>>>,
}

impl Invoke for Counting {
    async fn invoke(&self, event: &str) -> Result<String, Failed> {
        self.running.set(self.running.get() + 1);
        self.most.set(self.most.get().max(self.running.get()));
        tokio::task::yield_now().await;
        let event: Value = serde_json::from_str(event).unwrap();
        for record in event["Records"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let item = text(&record["dynamodb"]["Keys"]["PK"]["S"]);
            let number = text(&record["dynamodb"]["SequenceNumber"]).parse().unwrap();
            self.delivered.borrow_mut().entry(item).or_default().push(number);
        }
        self.running.set(self.running.get() - 1);
        done()
    }
}
