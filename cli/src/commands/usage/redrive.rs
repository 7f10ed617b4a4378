//! `usage redrive`: counting what the aggregator sent to its dead-letter queue.

use std::time::Duration;

use aws_config::SdkConfig;
use clap::Args;
use serde::Serialize;
use zae_limiter::StackName;
use zae_limiter::stack::{LambdaFunction, Stack, StackOptions};
use zae_limiter_aggregator::{DynamoDb, EventBridge, Redriven, Settings};
use zae_limiter_function::{Invocation, Queue};

use crate::command_output::{CommandOutput, Text};
use crate::commands::function_environment;
use crate::connect::{Place, TableLocation};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{View, grouped};

#[derive(Debug, Args)]
pub(crate) struct Redrive {
    /// Seconds after which to stop; what is left stays in the queue
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = clap::value_parser!(u32).range(10..=840))]
    timeout: u32,
    /// Name of the aggregator [default: the one of the stack, or of the Terraform module]
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    counted: u64,
    snapshots: u64,
    kept: Vec<String>,
}

impl From<Redriven> for Report {
    fn from(redriven: Redriven) -> Self {
        Self {
            counted: redriven.done as u64,
            snapshots: redriven.snapshots,
            kept: redriven.kept,
        }
    }
}

impl Text for Report {
    fn text(&self, _: &View) -> String {
        let mut lines = vec![format!(
            "{} dead letters counted, {} snapshots written",
            grouped(self.counted),
            grouped(self.snapshots)
        )];
        if !self.kept.is_empty() {
            lines.push(format!("{} stay in the queue:", grouped(self.kept.len() as u64)));
            lines.extend(self.kept.iter().map(|reason| format!("  {reason}")));
        }
        lines.join("\n")
    }
}

pub(super) async fn run(arguments: Redrive, context: &Context) -> Result<CommandOutput> {
    let (name, aws) = (context.name()?, context.location.aws().await?);
    let function = match arguments.function {
        Some(function) => function,
        None => function_name(&name, &aws, &context.location).await?,
    };
    // Windows, retention and queue as the deployed function has them.
    let settings = function_environment::settings(&function, &aws, Settings::read).await?;
    let table = DynamoDb::new(aws_sdk_dynamodb::Client::new(&aws), settings.table.clone());
    let queue = Queue::new(aws_sdk_sqs::Client::new(&aws), settings.dead_letters.clone());
    let time = Invocation::within(Duration::from_secs(arguments.timeout.into()));
    let alerts = settings.event_bus.clone().map(|bus| EventBridge::new(&aws, bus));
    let redriven = zae_limiter_aggregator::redrive(&table, &queue, alerts, &settings, &time).await;
    let redriven = redriven.map_err(|failure| Error::Redrive {
        queue: settings.dead_letters.clone(),
        failure,
    })?;
    let exit = if redriven.kept.is_empty() {
        Exit::Success
    } else {
        Exit::Error
    };
    Ok(CommandOutput::new(Report::from(redriven)).with_exit(exit))
}

async fn function_name(name: &StackName, aws: &SdkConfig, location: &TableLocation) -> Result<String> {
    let stack = Stack::new(name.clone(), StackOptions::default(), aws);
    match stack.function_name(LambdaFunction::Aggregator).await? {
        Some(function) => Ok(function),
        None => Err(Error::NoAggregator {
            stack: name.to_string(),
            place: Place::of_caller(&stack, location).await,
        }),
    }
}
