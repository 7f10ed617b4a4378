//! Dead letters and batches that Lambda gave up are counted later, and exactly once.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use zae_limiter_function::{CallError, DeadLetterMessage, DeadLetterSource, Invocation};
use zae_limiter_testing::stream::{Chaos, Mapping, Options, bucket_changes};

use super::{Backend, InProcess, Memory};
use crate::rules::{Rule, Rules};
use crate::{Redriven, Settings, redrive};

/// A queue that gives its messages out in no particular order, some of them twice.
struct Queue {
    messages: RefCell<Vec<String>>,
    received: RefCell<bool>,
    random: RefCell<fastrand::Rng>,
}

impl Queue {
    fn of(mut messages: Vec<String>, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let again = messages.iter().filter(|_| random.u8(..4) == 0).cloned();
        let again: Vec<_> = again.collect();
        messages.extend(again);
        random.shuffle(&mut messages);
        Self {
            messages: RefCell::new(messages),
            received: RefCell::new(false),
            random: RefCell::new(random),
        }
    }
}

impl DeadLetterSource for Queue {
    async fn receive(&self) -> Result<Vec<DeadLetterMessage>, CallError> {
        if self.received.replace(true) {
            self.received.replace(false);
            return Ok(vec![]);
        }
        let messages = self.messages.borrow();
        let all = messages.iter().enumerate();
        Ok(all
            .map(|(index, body)| DeadLetterMessage {
                id: index.to_string(),
                receipt: body.clone(),
                body: body.clone(),
            })
            .collect())
    }

    async fn release(&self, _: &DeadLetterMessage) -> Result<(), CallError> {
        Ok(())
    }

    async fn delete(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        if self.random.borrow_mut().u8(..20) == 0 {
            // The message stays, and comes again with the next redrive.
            return Ok(());
        }
        let mut messages = self.messages.borrow_mut();
        let found = messages.iter().position(|body| *body == message.receipt);
        found.map(|index| messages.remove(index));
        Ok(())
    }
}

fn settings() -> Settings {
    Settings {
        table: "limiter".to_owned(),
        dead_letters: "dlq".to_owned(),
        windows: zae_limiter_schema::WindowKind::ALL.to_vec(),
        retention_days: 90,
        event_bus: None,
    }
}

impl<B: Backend> InProcess<B> {
    /// Redrives all letters until now, twice: an operator who is not sure that it worked may run it again.
    pub(super) async fn redrive_all(&self, seed: u64) {
        let queue = Queue::of(self.letters.kept.borrow().clone(), seed);
        self.redrive(&queue).await;
        self.redrive(&queue).await;
    }

    async fn redrive(&self, queue: &Queue) -> Redriven {
        let invocation = Invocation::within(Duration::from_mins(10));
        let redriven = redrive(
            self.table(),
            queue,
            Some(Rc::clone(&self.bus)),
            &settings(),
            &invocation,
        )
        .await;
        redriven.unwrap()
    }
}

/// Runs a workload during which DynamoDB rejects some snapshots for a while; the differences before and after two
/// redrives of the dead letters.
async fn rejected(seed: u64, rules: Rules) -> (usize, Vec<String>) {
    let workload = bucket_changes(seed, 3_000, 40);
    let function = InProcess::new(Memory::default(), Chaos::new(seed, 30).rejecting(), rules);
    for stream in &workload.streams {
        let options = Options {
            rewinds: 2,
            overlaps: 5,
            batch_size: 100,
            ..Options::aggregator()
        };
        Mapping::new(stream, options, seed).run(&function).await;
    }
    let before = function.differences(&workload.ledger).len();
    function.chaos.calm();
    let letters = function.letters.kept.borrow().clone();
    let queue = Queue::of(letters, seed);
    let first = function.redrive(&queue).await;
    assert!(first.done > 0, "{first:?}");
    // An operator who is not sure that it worked may run it again.
    let again = function.redrive(&queue).await;
    assert!(again.kept.len() >= workload.malformed, "{again:?}");
    let forgotten = function.report.borrow().counted(crate::metric::FORGOTTEN_GAPS);
    println!(
        "seed {seed}: {before} wrong before, {forgotten} gaps forgotten, {} letters",
        first.done
    );
    (before, function.differences(&workload.ledger))
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_counted_exactly_once_after_later_records_have_passed() {
    let mut missing = 0;
    for seed in 300..306 {
        let (before, after) = rejected(seed, Rules::default()).await;
        missing += before;
        assert_eq!(after, [] as [String; 0], "seed {seed}");
    }
    assert!(missing > 50, "{missing} snapshots were wrong before");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_forgets_what_it_has_passed_is_caught() {
    let (_, after) = rejected(300, Rules::without(Rule::Gaps)).await;
    assert!(!after.is_empty());
}

#[tokio::test(start_paused = true)]
async fn batches_that_lambda_gave_up_are_counted_when_the_stream_is_read_again() {
    let workload = bucket_changes(7, 3_000, 40);
    let function = InProcess::new(Memory::default(), Chaos::new(7, 40), Rules::default());
    let (mut discarded, options) = (
        0,
        Options {
            batch_size: 100,
            ..Options::aggregator()
        },
    );
    for stream in &workload.streams {
        let giving_up = Options {
            maximum_retry_attempts: Some(0),
            bisect: false,
            ..options.clone()
        };
        let mut mapping = Mapping::new(stream, giving_up, 7);
        mapping.run(&function).await;
        discarded += mapping.discarded.len();
    }
    println!(
        "{discarded} batches given up, {} gaps forgotten",
        function.report.borrow().counted(crate::metric::FORGOTTEN_GAPS)
    );
    assert!(discarded > 0 && !function.differences(&workload.ledger).is_empty());
    function.chaos.calm();
    for stream in &workload.streams {
        Mapping::new(stream, options.clone(), 7).run(&function).await;
    }
    assert_eq!(function.differences(&workload.ledger), [] as [String; 0]);
}
