//! `audit archive`: archive events that were written before archival was enabled.

mod bucket;
pub(crate) mod events;
mod progress;
mod summary;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use clap::Args;
use futures::{StreamExt, stream};
use zae_limiter::stack::{LambdaFunction, Stack, StackOptions};
use zae_limiter::{StackName, Timestamp};
use zae_limiter_archiver::{Object, Remedy, Settings, Store};

use crate::command_output::CommandOutput;
use crate::commands::function_environment;
use crate::connect::{Place, TableLocation};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::parse;
use bucket::Bucket;
use events::{Events, TrailItem};
use progress::Progress;
use summary::Summary;

/// The stack output with the name of the archive bucket.
const BUCKET_OUTPUT: &str = "AuditArchiveBucketName";
/// Attempts per call, including the first, with exponential backoff and jitter.
const MAX_ATTEMPTS: u32 = 8;
const INITIAL_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);
const CALL_TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Events at or after this time: 2026-01-31T12:00:00Z, 2026-01-31, or an age such as 90d
    #[arg(long, value_name = "TIME", value_parser = parse::timestamp)]
    since: Timestamp,
    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = parse::timestamp)]
    until: Option<Timestamp>,
    /// Bucket [default: the archive of the stack, or of the Terraform module]
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// Only count the events that would be archived
    #[arg(long)]
    dry_run: bool,
    /// Number of concurrent uploads
    #[arg(long, value_name = "N", default_value = "16")]
    concurrency: NonZeroUsize,
}

impl Arguments {
    fn includes(&self, at: Timestamp) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }

    fn check(&self) -> Result<()> {
        match self.until {
            Some(until) if until <= self.since => Err(Error::usage(format!(
                "--until {until} must be after --since {}",
                self.since
            ))),
            _ => Ok(()),
        }
    }
}

pub(super) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    arguments.check()?;
    let (name, aws) = (context.name()?, with_retries(&context.location.aws().await?));
    let bucket = match &arguments.bucket {
        Some(bucket) => bucket.clone(),
        None => archive_bucket(&name, &aws, &context.location).await?,
    };
    let store = Bucket::new(&aws, &bucket);
    let mut events = Events::of_table(&aws, &name);
    let mut progress = Progress::new(&context.terminal, events.expected_items().await);
    let mut summary = Summary::new(bucket, arguments.since, arguments.until, arguments.dry_run);
    let archived = archive(&arguments, &mut events, &store, &mut summary, &mut progress).await;
    progress.finish();
    archived?;
    let exit = if summary.left_out == 0 {
        Exit::Success
    } else {
        Exit::Error
    };
    if progress.result(&summary) {
        return Ok(CommandOutput::empty().with_exit(exit));
    }
    Ok(CommandOutput::new(summary).with_exit(exit))
}

/// Archives one page at a time, so that memory use does not depend on the number of events.
async fn archive(
    arguments: &Arguments,
    events: &mut Events,
    store: &impl Store,
    summary: &mut Summary,
    progress: &mut Progress,
) -> Result<()> {
    while let Some(page) = events.page().await? {
        summary.items_read += page.read;
        let mut objects = vec![];
        for TrailItem { key, event } in page.events {
            let object = event.and_then(|event| Object::of(&event).map_err(|problem| problem.to_string()));
            match object {
                Ok(object) if arguments.includes(object.at) => {
                    summary.found(&object);
                    objects.push((key, object));
                }
                Ok(_) => {}
                Err(reason) => summary.leave_out(key, reason),
            }
        }
        if !arguments.dry_run {
            put(objects, arguments.concurrency, store, summary, progress).await?;
        }
        progress.show(summary);
    }
    Ok(())
}

async fn put(
    objects: Vec<(String, Object)>,
    concurrency: NonZeroUsize,
    store: &impl Store,
    summary: &mut Summary,
    progress: &mut Progress,
) -> Result<()> {
    let jobs = objects.into_iter().map(|(key, object)| async move {
        let put = store.put(&object).await;
        (key, object, put)
    });
    let mut done = stream::iter(jobs).buffer_unordered(concurrency.get());
    while let Some((key, object, put)) = done.next().await {
        match put {
            Ok(()) => {
                summary.put(&object);
                progress.show(summary);
            }
            Err(error) => match Remedy::of(&error) {
                Remedy::DeadLetter => summary.leave_out(key, error.to_string()),
                Remedy::Repair => {
                    return Err(Error::ArchiveDenied {
                        bucket: summary.bucket.clone(),
                        problem: error.to_string(),
                    });
                }
                Remedy::Redelivery => {
                    return Err(Error::ArchiveUnavailable {
                        bucket: summary.bucket.clone(),
                        archived: summary.archived,
                        problem: error.to_string(),
                    });
                }
            },
        }
    }
    Ok(())
}

/// The bucket that the archiver writes to: an output of its stack, or a setting of the function that the Terraform module made.
async fn archive_bucket(name: &StackName, aws: &SdkConfig, location: &TableLocation) -> Result<String> {
    let stack = Stack::new(name.clone(), StackOptions::default(), aws);
    let bucket = match stack.status().await? {
        Some(status) => status.outputs.get(BUCKET_OUTPUT).cloned(),
        None => match stack.function_name(LambdaFunction::Archiver).await? {
            Some(function) => Some(
                function_environment::settings(&function, aws, Settings::read)
                    .await?
                    .bucket,
            ),
            None => None,
        },
    };
    match bucket {
        Some(bucket) => Ok(bucket),
        None => Err(Error::NoArchive {
            stack: name.to_string(),
            place: Place::of_caller(&stack, location).await,
        }),
    }
}

/// The same configuration with retries and timeouts.
fn with_retries(aws: &SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(3))
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(CALL_TIMEOUT);
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF)
        .with_max_backoff(MAX_BACKOFF);
    aws.to_builder()
        .retry_config(retries)
        .timeout_config(timeouts.build())
        .build()
}
