//! From a batch of stream records to the last snapshot.

use zae_limiter_function::{
    Batch, CallError, DeadLetters, DynamoDbEventResponse, Failures, Function, Invocation, Level, Record,
    Remedy, Report, Unreportable, pass_over, processing, reading, spread,
};
#[cfg(feature = "lambda")]
use zae_limiter_function::{Environment, InvalidSetting, Queue, sdk_config};
use zae_limiter_schema::WindowKind;

use crate::alerts::{Announcement, Announcer, announcements};
use crate::counting::{Counted, Counter};
use crate::resource_names::ResourceNames;
use crate::rules::Rules;
use crate::{Alerts, Entry, Group, NoAlerts, Reading, Table, UsageDelta, groups};
#[cfg(feature = "lambda")]
use crate::{DynamoDb, EventBridge, Settings};

/// The function's metrics.
pub mod metric {
    pub use zae_limiter_function::metric::{ACQUIRES, DEAD_LETTERS, FAILURES, RECORDS};

    /// Records with something to count.
    pub const DELTAS: &str = "Deltas";
    /// Writes of snapshots.
    pub const SNAPSHOTS: &str = "Snapshots";
    /// Records that a snapshot had counted before.
    pub const DUPLICATES: &str = "Duplicates";
    /// Limits left out because they are named like an attribute of the snapshot.
    pub const RESERVED_LIMITS: &str = "ReservedLimits";
    /// Records numbered below what their snapshot has counted, though newer.
    pub const SEQUENCE_REGRESSIONS: &str = "SequenceRegression";
    /// Events about thresholds of quotas that were sent. Only reported where there are any.
    pub const THRESHOLDS: &str = "Thresholds";
    /// Gaps that a snapshot had to forget: dead letters in them can no longer be counted.
    pub const FORGOTTEN_GAPS: &str = "ForgottenGaps";
}

/// The aggregator, over any table, any destination of dead letters, and any of events about thresholds.
#[derive(Debug)]
pub struct Aggregator<T, D, A = NoAlerts> {
    table: T,
    dead_letters: D,
    alerts: Option<A>,
    windows: Vec<WindowKind>,
    retention_days: u32,
    resources: ResourceNames,
    rules: Rules,
}

#[cfg(feature = "lambda")]
impl Aggregator<DynamoDb, Queue, EventBridge> {
    /// The aggregator that the environment describes. Creates the clients, once.
    pub fn start(environment: &Environment) -> Result<Self, InvalidSetting> {
        let settings = Settings::read(environment)?;
        let config = sdk_config(environment);
        let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&config), settings.table);
        let queue = Queue::new(aws_sdk_sqs::Client::new(&config), settings.dead_letters);
        let alerts = settings.event_bus.map(|bus| EventBridge::new(&config, bus));
        let aggregator = Aggregator::new(table, queue, settings.windows, settings.retention_days);
        Ok(aggregator.with_alerts(alerts))
    }
}

impl<T, D> Aggregator<T, D> {
    /// An aggregator that counts these windows and keeps each snapshot for `retention_days` after its window. It sends no
    /// events about thresholds.
    pub fn new(table: T, dead_letters: D, windows: Vec<WindowKind>, retention_days: u32) -> Self {
        let rules = Rules::default();
        Self {
            table,
            dead_letters,
            alerts: None,
            windows,
            retention_days,
            resources: ResourceNames::default(),
            rules,
        }
    }

    /// The same with a destination of events about thresholds, if there is one.
    pub fn with_alerts<A>(self, alerts: Option<A>) -> Aggregator<T, D, A> {
        Aggregator {
            table: self.table,
            dead_letters: self.dead_letters,
            alerts,
            windows: self.windows,
            retention_days: self.retention_days,
            resources: self.resources,
            rules: self.rules,
        }
    }
}

impl<T, D, A> Aggregator<T, D, A> {
    /// The table it writes to.
    pub fn table(&self) -> &T {
        &self.table
    }

    /// Where dead letters go.
    pub(crate) fn dead_letters(&self) -> &D {
        &self.dead_letters
    }

    /// The same with a broken rule.
    #[cfg(test)]
    pub(crate) fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Reads every record. A record that cannot be read becomes a dead letter.
    fn read(&self, batch: &Batch, report: &mut Report) -> (Indexed<UsageDelta>, Indexed<String>) {
        let (mut deltas, mut unreadable) = (Vec::new(), Vec::new());
        for (index, record) in batch.records().enumerate() {
            match self.read_one(record) {
                Ok(reading) => {
                    reading.at.into_iter().for_each(|at| report.made_at(at));
                    report.count(metric::RESERVED_LIMITS, reading.reserved);
                    deltas.extend(reading.delta.map(|delta| (index, delta)));
                }
                Err(reason) => unreadable.push((index, reason)),
            }
        }
        (deltas, unreadable)
    }

    fn read_one(&self, record: Record<'_>) -> Result<Reading, String> {
        reading(|| {
            let read = Reading::by(self.rules, &record.decode()?);
            read.map_err(|malformed| malformed.to_string())
        })
    }
}

/// Something about some records of a batch, by index.
type Indexed<T> = Vec<(usize, T)>;

/// A group and what became of it.
type Tried<'g, 'c> = (&'g Group<'c>, Result<Counted<'c>, CallError>);

impl<T: Table, D: DeadLetters, A: Alerts> Function for Aggregator<T, D, A> {
    const METRICS: &'static [&'static str] = &[
        metric::RECORDS,
        metric::DELTAS,
        metric::SNAPSHOTS,
        metric::DUPLICATES,
        metric::FAILURES,
        metric::DEAD_LETTERS,
        metric::RESERVED_LIMITS,
        metric::SEQUENCE_REGRESSIONS,
        metric::FORGOTTEN_GAPS,
    ];

    async fn handle(
        &self,
        batch: &Batch,
        invocation: &Invocation,
        report: &mut Report,
    ) -> Result<DynamoDbEventResponse, Unreportable> {
        report.count(metric::RECORDS, batch.len() as u64);
        let (deltas, mut letters) = self.read(batch, report);
        let counting = deltas.iter().filter(|(_, delta)| delta.counts()).count();
        report.count(metric::DELTAS, counting as u64);
        let announcements = announcements(&deltas);
        let entries = deltas.iter().map(|(index, delta)| Entry { delta, index: *index });
        let groups = groups(&self.windows, entries);

        let mut failures = Failures::default();
        self.count_all(&groups, invocation, &mut failures, &mut letters, report)
            .await;
        self.announce(announcements, invocation, &mut failures, &mut letters, report)
            .await;
        pass_over(
            batch,
            letters,
            "aggregator",
            &self.dead_letters,
            invocation,
            &mut failures,
            report,
        )
        .await;
        report.count(metric::FAILURES, failures.len() as u64);
        failures.to_response(batch)
    }
}

impl<T: Table, D: DeadLetters, A: Alerts> Aggregator<T, D, A> {
    /// Sends the events about thresholds. An event that cannot be sent never stops the counting of usage: where an operator
    /// has to repair something, its record becomes a dead letter.
    async fn announce(
        &self,
        announcements: Vec<Announcement<'_>>,
        invocation: &Invocation,
        failures: &mut Failures,
        letters: &mut Indexed<String>,
        report: &mut Report,
    ) {
        let Some(alerts) = self.alerts.as_ref().filter(|_| !announcements.is_empty()) else {
            return;
        };
        let announcer = Announcer {
            table: &self.table,
            alerts,
            retention_days: self.retention_days,
            invocation,
        };
        let announced = announcer.announce(announcements).await;
        if announced.sent > 0 {
            report.count(metric::THRESHOLDS, announced.sent);
        }
        for (Announcement { index, event, .. }, error) in announced.failed {
            let what = format!(
                "threshold {}% of {} of {} on {}",
                event.threshold, event.limit, event.entity, event.resource
            );
            match Remedy::of(&error) {
                Remedy::Redelivery => {
                    failures.add(index);
                    report.note(Level::Warn, format!("{what} is not sent yet: {error}"));
                }
                Remedy::DeadLetter | Remedy::Repair => {
                    letters.push((index, format!("{what} cannot be sent: {error}")));
                }
            }
        }
    }

    async fn count_all(
        &self,
        groups: &[Group<'_>],
        invocation: &Invocation,
        failures: &mut Failures,
        letters: &mut Indexed<String>,
        report: &mut Report,
    ) {
        let (table, rules, retention_days) = (&self.table, self.rules, self.retention_days);
        let counter = &Counter {
            table,
            rules,
            retention_days,
            invocation,
        };
        let jobs = groups
            .iter()
            .map(|group| async move { (group, processing(counter.count(group)).await) });
        spread(jobs, |tried| {
            if let (group, Ok(counted)) = &tried
                && Some(&group.window.kind()) == self.windows.first()
            {
                // Every window counts the same acquires: one of them is enough.
                report.acquired(&self.resources.of(group.resource()), counted.acquires);
            }
            note_outcome(tried, failures, letters, report)
        })
        .await;
    }
}

/// Notes what became of one group. False if no other group can succeed either.
fn note_outcome(
    (group, tried): Tried<'_, '_>,
    failures: &mut Failures,
    letters: &mut Indexed<String>,
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
            report.count(metric::FORGOTTEN_GAPS, counted.forgotten_gaps);
            letters.extend(counted.regressed.iter().map(|entry| {
                let reason = "the record is numbered below what the snapshot has counted, though newer";
                (entry.index, format!("{}: {reason}", snapshot()))
            }));
            true
        }
        Err(error) => match Remedy::of(&error) {
            Remedy::DeadLetter => {
                let reason = format!("{} cannot be counted: {error}", snapshot());
                letters.extend(group.entries().iter().map(|entry| (entry.index, reason.clone())));
                true
            }
            Remedy::Redelivery => {
                failures.add(group.first_index());
                report.note(Level::Warn, format!("{} is not counted yet: {error}", snapshot()));
                true
            }
            Remedy::Repair => {
                failures.add_all();
                report.note(
                    Level::Error,
                    format!("no usage can be counted until this is fixed: {error}"),
                );
                false
            }
        },
    }
}
