//! A batch from the stream to the last snapshot.

use zae_limiter_function::{
    Batch, Budget, CallFailure, DeadLetters, DynamoDbEventResponse, Environment, Failures, Function,
    InvalidSetting, Level, Queue, Record, Report, Unreportable, pass_over, processing, reading, sdk_config,
    spread,
};
use zae_limiter_schema::WindowKind;

use crate::counting::{Counted, Counter};
use crate::{Change, DynamoDb, Entry, Group, Reading, Rules, Settings, Table, groups};

/// The function's metrics.
pub mod metric {
    pub use zae_limiter_function::metric::{DEAD_LETTERS, FAILURES, RECORDS};

    /// Records with something to count.
    pub const DELTAS: &str = "Deltas";
    /// Writes of snapshots.
    pub const SNAPSHOTS: &str = "Snapshots";
    /// Changes that a snapshot had counted before.
    pub const DUPLICATES: &str = "Duplicates";
    /// Limits left out because they are named like an attribute of the snapshot.
    pub const RESERVED_LIMITS: &str = "ReservedLimits";
    /// Records numbered below what their snapshot has counted, though newer.
    pub const SEQUENCE_REGRESSIONS: &str = "SequenceRegression";
}

/// The aggregator, over any table and any place for dead letters.
#[derive(Debug, Clone)]
pub struct Aggregator<T, D> {
    table: T,
    dead_letters: D,
    windows: Vec<WindowKind>,
    retention_days: u32,
    rules: Rules,
}

impl Aggregator<DynamoDb, Queue> {
    /// The aggregator that the environment describes. Clients are made here, once.
    pub async fn start(environment: Environment) -> Result<Self, InvalidSetting> {
        let settings = Settings::read(&environment)?;
        let config = sdk_config().await;
        let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&config), settings.table);
        let queue = Queue::new(aws_sdk_sqs::Client::new(&config), settings.dead_letters);
        Ok(Self::new(table, queue, settings.windows, settings.retention_days))
    }
}

impl<T, D> Aggregator<T, D> {
    /// An aggregator that counts these windows and keeps their snapshots for the given number of days.
    pub fn new(table: T, dead_letters: D, windows: Vec<WindowKind>, retention_days: u32) -> Self {
        let rules = Rules::default();
        Self {
            table,
            dead_letters,
            windows,
            retention_days,
            rules,
        }
    }

    /// The table it writes to.
    pub fn table(&self) -> &T {
        &self.table
    }

    /// The same with rules broken.
    #[doc(hidden)]
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Reads every record; what cannot be read becomes the reason of a dead letter.
    fn read(&self, batch: &Batch, report: &mut Report) -> (AtPlaces<Change>, AtPlaces<String>) {
        let (mut changes, mut unreadable) = (Vec::new(), Vec::new());
        for (place, record) in batch.records().enumerate() {
            match self.read_one(record) {
                Ok(reading) => {
                    reading.at.into_iter().for_each(|at| report.made_at(at));
                    report.count(metric::RESERVED_LIMITS, reading.reserved);
                    changes.extend(reading.change.map(|change| (place, change)));
                }
                Err(reason) => unreadable.push((place, reason)),
            }
        }
        (changes, unreadable)
    }

    fn read_one(&self, record: Record<'_>) -> Result<Reading, String> {
        reading(|| Reading::by(self.rules, &record.decode()?).map_err(|malformed| malformed.to_string()))
    }
}

/// Something about each of some records, by their places in the batch.
type AtPlaces<T> = Vec<(usize, T)>;

/// A group that was tried, and what to do about it.
type Tried<'g, 'c> = (&'g Group<'c>, Result<Counted<'c>, CallFailure>);

impl<T: Table, D: DeadLetters> Function for Aggregator<T, D> {
    const METRICS: &'static [&'static str] = &[
        metric::RECORDS,
        metric::DELTAS,
        metric::SNAPSHOTS,
        metric::DUPLICATES,
        metric::FAILURES,
        metric::DEAD_LETTERS,
        metric::RESERVED_LIMITS,
        metric::SEQUENCE_REGRESSIONS,
    ];

    async fn handle(
        &self,
        batch: &Batch,
        budget: Budget,
        report: &mut Report,
    ) -> Result<DynamoDbEventResponse, Unreportable> {
        report.count(metric::RECORDS, batch.len() as u64);
        let (changes, mut letters) = self.read(batch, report);
        report.count(metric::DELTAS, changes.len() as u64);
        let entries = changes.iter().map(|(place, change)| Entry {
            change,
            place: *place,
        });
        let groups = groups(&self.windows, entries);

        let mut failures = Failures::default();
        self.count_all(&groups, budget, &mut failures, &mut letters, report)
            .await;
        pass_over(
            batch,
            letters,
            "aggregator",
            &self.dead_letters,
            &budget,
            &mut failures,
            report,
        )
        .await;
        report.count(metric::FAILURES, failures.len() as u64);
        failures.to_response(batch)
    }
}

impl<T: Table, D: DeadLetters> Aggregator<T, D> {
    async fn count_all(
        &self,
        groups: &[Group<'_>],
        budget: Budget,
        failures: &mut Failures,
        letters: &mut AtPlaces<String>,
        report: &mut Report,
    ) {
        let (table, rules, retention_days) = (&self.table, self.rules, self.retention_days);
        let counter = &Counter {
            table,
            rules,
            retention_days,
            budget,
        };
        let jobs = groups
            .iter()
            .map(|group| async move { (group, processing(counter.count(group)).await) });
        spread(jobs, |tried| settle(tried, failures, letters, report)).await;
    }
}

/// Draws the consequences of one group; false if no other group can fare better.
fn settle(
    (group, tried): Tried<'_, '_>,
    failures: &mut Failures,
    letters: &mut AtPlaces<String>,
    report: &mut Report,
) -> bool {
    let snapshot = || {
        format!(
            "{} usage of {} on {}",
            group.window.kind(),
            group.entity(),
            group.resource()
        )
    };
    match tried {
        Ok(counted) => {
            report.count(metric::SNAPSHOTS, counted.writes);
            report.count(metric::DUPLICATES, counted.duplicates);
            report.count(metric::SEQUENCE_REGRESSIONS, counted.regressed.len() as u64);
            letters.extend(counted.regressed.iter().map(|entry| {
                let reason =
                    "is numbered below what the snapshot has counted, though newer; it was not counted";
                (entry.place, format!("{} {reason}", snapshot()))
            }));
            true
        }
        Err(CallFailure::Rejected(reason)) => {
            let reason = format!("{} cannot be counted: {reason}", snapshot());
            letters.extend(group.entries().iter().map(|entry| (entry.place, reason.clone())));
            true
        }
        Err(failure @ CallFailure::Transient(_)) => {
            failures.add(group.first_place());
            report.note(
                Level::Warn,
                format!("{} is not counted yet: {failure}", snapshot()),
            );
            true
        }
        Err(failure @ CallFailure::Denied(_)) => {
            failures.add_all();
            report.note(Level::Error, format!("no usage can be counted: {failure}"));
            false
        }
    }
}
