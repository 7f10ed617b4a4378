//! Every threshold that is reached is sent under one ID, whatever goes wrong, and by one record only.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_testing::stream::{
    Chaos, Database, Mapping, Options, QuotaCrossing, Workload, bucket_changes,
};

use super::{Backend, Dynoxide, InProcess, Memory};
use crate::ThresholdEvent;
use crate::rules::Rules;

fn crossing(event: &ThresholdEvent) -> QuotaCrossing {
    assert_eq!((event.limit.as_str(), event.table.as_str()), ("spend", "limiter"));
    QuotaCrossing {
        entity: event.entity.to_string(),
        resource: event.resource.to_string(),
        percent: event.threshold.into(),
        amount: i64::try_from(event.cap).unwrap(),
        period_end: event.period_end.millis(),
    }
}

/// Crossings of which no event arrived, events of no crossing, IDs that several crossings have, crossings with several IDs, and
/// crossings that several records have sent.
fn problems(workload: &Workload, received: &[ThresholdEvent]) -> Vec<String> {
    let mut events: BTreeMap<QuotaCrossing, Vec<&ThresholdEvent>> = BTreeMap::new();
    for event in received {
        events.entry(crossing(event)).or_default().push(event);
    }
    let (mut problems, mut ids) = (Vec::new(), BTreeSet::new());
    let missed = workload
        .crossings
        .iter()
        .filter(|crossing| !events.contains_key(crossing));
    problems.extend(missed.map(|crossing| format!("missed: {crossing:?}")));
    for (crossing, copies) in events {
        if !workload.crossings.contains(&crossing) {
            problems.push(format!("invented: {crossing:?}"));
        }
        if copies.iter().any(|copy| *copy != copies[0]) {
            problems.push(format!("sent by several records: {crossing:?}"));
        }
        if !ids.insert(&copies[0].id) {
            problems.push(format!("shared ID: {crossing:?}"));
        }
    }
    problems
}

async fn run<B: Backend>(function: &InProcess<B>, workload: &Workload, options: &Options, seed: u64) {
    for stream in &workload.streams {
        Mapping::new(stream, options.clone(), seed).run(function).await;
    }
    function.table().settle();
}

fn options() -> Options {
    Options {
        batch_size: 100,
        rewinds: 8,
        overlaps: 5,
        replays: 1,
        ..Options::aggregator()
    }
}

#[tokio::test(start_paused = true)]
async fn every_crossing_is_sent_under_one_id_by_one_record_through_faults_replays_and_splits() {
    let (mut expected, mut copies) = (0, 0);
    for seed in 400..406 {
        let workload = bucket_changes(seed, 3_000, 40);
        let function = InProcess::new(Memory::default(), Chaos::new(seed, 30), Rules::default());
        run(&function, &workload, &options(), seed).await;
        let received = function.bus.received.borrow();
        assert_eq!(problems(&workload, &received), [] as [String; 0], "seed {seed}");
        assert_eq!(function.differences(&workload.ledger), [] as [String; 0]);
        expected += workload.crossings.len();
        copies += received.len();
    }
    println!("{expected} crossings, {copies} events");
    assert!(
        expected > 200 && copies > expected,
        "{expected} crossings, {copies} events"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_holds_with_the_expressions_of_dynamodb_and_parallel_batches() {
    let workload = bucket_changes(410, 3_000, 40);
    let function = InProcess::new(Dynoxide(Database::new()), Chaos::new(410, 30), Rules::default());
    let options = Options {
        parallelization_factor: 4,
        ..options()
    };
    run(&function, &workload, &options, 410).await;
    assert_eq!(
        problems(&workload, &function.bus.received.borrow()),
        [] as [String; 0]
    );
}

/// What is used goes up and down around a threshold.
#[tokio::test(start_paused = true)]
async fn without_marks_a_crossing_would_be_sent_by_several_records() {
    let workload = bucket_changes(400, 3_000, 40);
    let function = InProcess::new(Memory::default(), Chaos::new(400, 0), Rules::default());
    function.table().forgets_marks.set(true);
    run(&function, &workload, &Options::aggregator(), 400).await;
    let problems = problems(&workload, &function.bus.received.borrow());
    assert!(
        !problems.is_empty()
            && problems
                .iter()
                .all(|problem| problem.starts_with("sent by several"))
    );
}

#[tokio::test(start_paused = true)]
async fn without_faults_each_crossing_is_sent_once() {
    let workload = bucket_changes(401, 3_000, 40);
    let function = InProcess::new(Memory::default(), Chaos::new(401, 0), Rules::default());
    run(&function, &workload, &Options::aggregator(), 401).await;
    let received = function.bus.received.borrow();
    assert_eq!(problems(&workload, &received), [] as [String; 0]);
    assert_eq!(received.len(), workload.crossings.len());
}

#[tokio::test(start_paused = true)]
async fn crossings_of_dead_letters_are_sent_by_a_redrive() {
    let mut missing = 0;
    for seed in 420..424 {
        let workload = bucket_changes(seed, 3_000, 40);
        let function = InProcess::new(
            Memory::default(),
            Chaos::new(seed, 40).rejecting(),
            Rules::default(),
        );
        let once = Options {
            rewinds: 2,
            replays: 0,
            ..options()
        };
        run(&function, &workload, &once, seed).await;
        missing += problems(&workload, &function.bus.received.borrow()).len();
        function.chaos.calm();
        function.redrive_all(seed).await;
        let received = function.bus.received.borrow();
        assert_eq!(problems(&workload, &received), [] as [String; 0], "seed {seed}");
    }
    assert!(missing > 0, "no crossing was missing before");
}
