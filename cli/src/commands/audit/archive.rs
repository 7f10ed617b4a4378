//! `audit archive`: what was written before there was an archive gets into it.

mod events;
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
use zae_limiter::stack::{Stack, StackOptions};
use zae_limiter::{StackName, Timestamp};
use zae_limiter_archiver::{CallFailure, Object, S3, Store};

use crate::answer::Answer;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::parse;
use events::{Events, Found};
use progress::Progress;
use summary::Summary;

/// Where a stack tells the name of its archive.
const OUTPUT: &str = "AuditArchiveBucketName";
/// Attempts of one call, the first included, with pauses that double and are drawn at random.
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_ATTEMPT: Duration = Duration::from_secs(20);
const LONGEST_CALL: Duration = Duration::from_secs(90);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Events of this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or an age such as 90d
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    since: Timestamp,
    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    until: Option<Timestamp>,
    /// The bucket [default: the stack's archive]
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// Only count what would be put
    #[arg(long)]
    dry_run: bool,
    /// Objects that are put at the same time
    #[arg(long, value_name = "N", default_value = "16")]
    concurrency: NonZeroUsize,
}

impl Arguments {
    fn wants(&self, at: Timestamp) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }

    fn check(&self) -> Result<()> {
        match self.until {
            Some(until) if until <= self.since => Err(Error::usage(format!(
                "--until {until} is not after --since {}: no event can be in between",
                self.since
            ))),
            _ => Ok(()),
        }
    }
}

pub(super) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    arguments.check()?;
    let (name, aws) = (context.name()?, patient(&context.place.aws().await?));
    let bucket = match &arguments.bucket {
        Some(bucket) => bucket.clone(),
        None => archive_of(&name, &aws).await?,
    };
    let store = S3::new(s3(&aws), bucket.clone());
    let mut events = Events::of_table(&aws, &name);
    let mut progress = Progress::new(&context.terminal, events.expected_items().await);
    let mut summary = Summary::new(bucket, arguments.since, arguments.until, arguments.dry_run);
    let filled = fill(&arguments, &mut events, &store, &mut summary, &mut progress).await;
    progress.finish();
    filled?;
    let exit = if summary.left_out == 0 {
        Exit::Success
    } else {
        Exit::Error
    };
    if progress.result(&summary) {
        return Ok(Answer::nothing().with_exit(exit));
    }
    Ok(Answer::of(summary).with_exit(exit))
}

/// Page after page: what is held in memory does not depend on how many events there are.
async fn fill(
    arguments: &Arguments,
    events: &mut Events,
    store: &impl Store,
    summary: &mut Summary,
    progress: &mut Progress,
) -> Result<()> {
    while let Some(page) = events.page().await? {
        summary.items_read += page.read;
        let mut objects = vec![];
        for Found { key, event } in page.events {
            let object = event.and_then(|event| Object::of(&event).map_err(|problem| problem.to_string()));
            match object {
                Ok(object) if arguments.wants(object.at) => {
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
    at_once: NonZeroUsize,
    store: &impl Store,
    summary: &mut Summary,
    progress: &mut Progress,
) -> Result<()> {
    let jobs = objects.into_iter().map(|(key, object)| async move {
        let put = store.put(&object).await;
        (key, object, put)
    });
    let mut done = stream::iter(jobs).buffer_unordered(at_once.get());
    while let Some((key, object, put)) = done.next().await {
        match put {
            Ok(()) => {
                summary.put(&object);
                progress.show(summary);
            }
            Err(CallFailure::Rejected(reason)) => summary.leave_out(key, reason),
            Err(CallFailure::Denied(problem)) => {
                return Err(Error::ArchiveDenied {
                    bucket: summary.bucket.clone(),
                    problem,
                });
            }
            Err(CallFailure::Transient(problem)) => {
                return Err(Error::ArchiveUnavailable {
                    bucket: summary.bucket.clone(),
                    archived: summary.archived,
                    problem,
                });
            }
        }
    }
    Ok(())
}

/// The bucket that the stack's archiver writes to.
async fn archive_of(name: &StackName, aws: &SdkConfig) -> Result<String> {
    let stack = Stack::new(name.clone(), StackOptions::default(), aws);
    let status = stack
        .status()
        .await?
        .ok_or_else(|| zae_limiter::stack::Error::NoSuchStack {
            stack: name.to_string(),
        })?;
    status
        .outputs
        .get(OUTPUT)
        .cloned()
        .ok_or_else(|| Error::NoArchive {
            stack: name.to_string(),
        })
}

/// The same configuration with retries and an end.
fn patient(aws: &SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(3))
        .operation_attempt_timeout(LONGEST_ATTEMPT)
        .operation_timeout(LONGEST_CALL);
    let retries = RetryConfig::standard()
        .with_max_attempts(ATTEMPTS)
        .with_initial_backoff(FIRST_PAUSE)
        .with_max_backoff(LONGEST_PAUSE);
    aws.to_builder()
        .retry_config(retries)
        .timeout_config(timeouts.build())
        .build()
}

fn s3(aws: &SdkConfig) -> aws_sdk_s3::Client {
    // Bucket names as host names do not resolve on a machine that stands in for AWS.
    let config = aws_sdk_s3::config::Builder::from(aws).force_path_style(aws.endpoint_url().is_some());
    aws_sdk_s3::Client::from_conf(config.build())
}
