//! From a batch of stream records to the last object.

use serde_dynamo::AttributeValue;
use zae_limiter_function::{
    Batch, DeadLetters, DynamoDbEventResponse, Failures, Function, Invocation, Level, Record, Remedy, Report,
    Unreportable, pass_over, processing, reading, spread,
};
#[cfg(feature = "lambda")]
use zae_limiter_function::{Environment, InvalidSetting, Queue, sdk_config};
use zae_limiter_schema::keys::{attribute, prefix};

use crate::{Object, Store};
#[cfg(feature = "lambda")]
use crate::{S3, Settings};

/// The function's metrics.
pub mod metric {
    pub use zae_limiter_function::metric::{DEAD_LETTERS, FAILURES, RECORDS};

    /// Objects written, for the first time or again.
    pub const OBJECTS: &str = "Objects";
}

/// The archiver, over any store and any destination of dead letters.
#[derive(Debug, Clone)]
pub struct Archiver<S, D> {
    store: S,
    dead_letters: D,
}

#[cfg(feature = "lambda")]
impl Archiver<S3, Queue> {
    /// The archiver that the environment describes. Creates the clients, once.
    pub fn start(environment: &Environment) -> Result<Self, InvalidSetting> {
        let settings = Settings::read(environment)?;
        let config = sdk_config(environment);
        // At a custom endpoint the bucket is in the path: its name does not resolve as a host there.
        let custom_endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
            .iter()
            .any(|name| environment.optional(name).is_some());
        let client = aws_sdk_s3::config::Builder::from(&config).force_path_style(custom_endpoint);
        let store = S3::new(aws_sdk_s3::Client::from_conf(client.build()), settings.bucket);
        let queue = Queue::new(aws_sdk_sqs::Client::new(&config), settings.dead_letters);
        Ok(Self::new(store, queue))
    }
}

impl<S, D> Archiver<S, D> {
    /// An archiver that writes to this store.
    pub fn new(store: S, dead_letters: D) -> Self {
        Self { store, dead_letters }
    }
}

/// The object for a record. `None` if it is not a new audit event; the mapping's filter leaves those out anyway.
fn read(record: Record<'_>) -> Result<Option<Object>, String> {
    let record = record.decode()?;
    let audit = match record.change.keys.get(attribute::PK) {
        Some(AttributeValue::S(partition)) => partition.starts_with(prefix::AUDIT),
        _ => {
            return Err(format!(
                "key attribute {} is missing or not a string",
                attribute::PK
            ));
        }
    };
    if !audit || record.event_name != "INSERT" {
        return Ok(None);
    }
    Object::of(&record.change.new_image)
        .map(Some)
        .map_err(|malformed| malformed.to_string())
}

impl<S: Store, D: DeadLetters> Function for Archiver<S, D> {
    const METRICS: &'static [&'static str] = &[
        metric::RECORDS,
        metric::OBJECTS,
        metric::FAILURES,
        metric::DEAD_LETTERS,
    ];

    async fn handle(
        &self,
        batch: &Batch,
        invocation: &Invocation,
        report: &mut Report,
    ) -> Result<DynamoDbEventResponse, Unreportable> {
        report.count(metric::RECORDS, batch.len() as u64);
        let (mut objects, mut letters) = (Vec::new(), Vec::new());
        for (index, record) in batch.records().enumerate() {
            match reading(|| read(record)) {
                Ok(object) => objects.extend(object.map(|object| (index, object))),
                Err(reason) => letters.push((index, reason)),
            }
        }
        for (_, object) in &objects {
            report.made_at(object.at);
        }

        let mut failures = Failures::default();
        let jobs = objects.iter().map(|(index, object)| async move {
            let put = processing(invocation.retry(|| self.store.put(object))).await;
            (*index, object, put)
        });
        spread(jobs, |(index, object, put)| {
            match put {
                Ok(()) => report.count(metric::OBJECTS, 1),
                Err(error) => match Remedy::of(&error) {
                    Remedy::DeadLetter => letters.push((index, error.to_string())),
                    Remedy::Redelivery => {
                        failures.add(index);
                        report.note(
                            Level::Warn,
                            format!("{} is not archived yet: {error}", object.key),
                        );
                    }
                    Remedy::Repair => {
                        failures.add_all();
                        report.note(
                            Level::Error,
                            format!("nothing can be archived until this is fixed: {error}"),
                        );
                        return false;
                    }
                },
            }
            true
        })
        .await;
        pass_over(
            batch,
            letters,
            "archiver",
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
