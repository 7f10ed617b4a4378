//! The functions that read the table's stream.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use zae_limiter_template::{LambdaFunction, Template};

use crate::cloud::failure::Failure;
use crate::cloud::functions::MappingState;
use crate::patience::{Deadline, patiently};
use crate::{Error, Stack, Status};

/// The period of [`FunctionStatus::lag_ms`].
const LAG_PERIOD: Duration = Duration::from_mins(15);

/// The longest wait for one of the responses. The rest of the status is worth more than a slow service.
const PATIENCE: Duration = Duration::from_secs(10);

/// A function that reads the table's stream. A value that AWS did not report is `None`, and `problems` has the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionStatus {
    /// The function's name.
    pub name: String,
    /// The state of its event source mapping, such as `Enabled` or `Disabled`; `None` if it has no mapping.
    pub mapping: Option<String>,
    /// The result of the mapping's last invocation, such as `OK` or `PROBLEM: Function call failed`.
    pub last_result: Option<String>,
    /// The greatest age of a record (`IteratorAge`) in the last 15 minutes, in milliseconds; `None` if no batch ended.
    pub lag_ms: Option<u64>,
    /// Roughly the number of messages in its dead-letter queue.
    pub dead_letters: Option<u64>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

/// A function and its dead-letter queue.
struct Named {
    function: String,
    /// The queue's URL, where it is known without a call.
    queue_url: Option<String>,
    queue: String,
}

/// A Lambda function that reads the table's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamReader {
    /// The event source mapping.
    pub mapping: String,
    /// The function's ARN.
    pub function_arn: String,
    /// The mapping's state, such as `Enabled`.
    pub state: String,
    /// Whether the function belongs to the stack.
    pub own: bool,
}

impl Stack {
    /// The functions of a stack with this status, or of a table that Terraform manages: their event source mappings, their
    /// lag and the depth of their dead-letter queues.
    ///
    /// What cannot be read is among the problems of its function.
    pub async fn function_statuses(&self, status: Option<&Status>) -> Result<Vec<FunctionStatus>, Error> {
        let named = match status {
            Some(status) => self.functions_of_stack(status),
            None => self.functions_of_terraform().await?,
        };
        let mut all = Vec::with_capacity(named.len());
        for function in named {
            all.push(self.function_status(function).await);
        }
        Ok(all)
    }

    /// The name of a deployed function, of a stack or of the Terraform module; `None` if there is no such function.
    pub async fn function_name(&self, function: LambdaFunction) -> Result<Option<String>, Error> {
        let named = match self.status().await? {
            Some(status) => self.functions_of_stack(&status),
            None if self.is_managed_by_terraform().await? => self.functions_of_terraform().await?,
            None => return Err(self.missing().await),
        };
        let queue = self.dead_letter_queue(function);
        let found = named.into_iter().find(|named| named.queue == queue);
        Ok(found.map(|named| named.function))
    }

    /// The functions that the stack's outputs name.
    fn functions_of_stack(&self, status: &Status) -> Vec<Named> {
        let named = LambdaFunction::ALL.into_iter().filter_map(|function| {
            let start = match function {
                LambdaFunction::Aggregator => "Aggregator",
                LambdaFunction::Archiver => "Archiver",
            };
            Some(Named {
                function: status.outputs.get(&format!("{start}FunctionName"))?.clone(),
                queue_url: status.outputs.get(&format!("{start}DLQUrl")).cloned(),
                queue: self.dead_letter_queue(function),
            })
        });
        named.collect()
    }

    /// The functions of the Terraform module: those of their names that read the stream.
    async fn functions_of_terraform(&self) -> Result<Vec<Named>, Error> {
        let readers = match self.stream_readers().await {
            Err(Error::NoSuchStack { .. } | Error::Denied { .. }) => vec![],
            readers => readers?,
        };
        let named = LambdaFunction::ALL.into_iter().filter_map(|function| {
            let name = function.name_in(&self.name);
            let reads = readers.iter().any(|reader| {
                let arn = &reader.function_arn;
                arn.split(":function:")
                    .nth(1)
                    .and_then(|end| end.split(':').next())
                    == Some(&name)
            });
            reads.then(|| Named {
                queue: self.dead_letter_queue(function),
                function: name,
                queue_url: None,
            })
        });
        Ok(named.collect())
    }

    fn dead_letter_queue(&self, function: LambdaFunction) -> String {
        format!("{}-{function}-dlq", self.name)
    }

    async fn function_status(&self, named: Named) -> FunctionStatus {
        let mut problems = Vec::new();
        let mappings = read(self.cloud.mappings_of(&named.function), &mut problems).await;
        let lag_ms = read(
            self.cloud.iterator_age(&named.function, LAG_PERIOD),
            &mut problems,
        )
        .await;
        let queue = match named.queue_url {
            Some(url) => Some(url),
            None => read(self.cloud.queue_url(&named.queue), &mut problems)
                .await
                .flatten(),
        };
        let dead_letters = match &queue {
            Some(url) => read(self.cloud.waiting_messages(url), &mut problems)
                .await
                .flatten(),
            None => None,
        };
        let mapping = mappings.map(worst).unwrap_or_default();
        FunctionStatus {
            name: named.function,
            last_result: mapping.as_ref().and_then(|mapping| mapping.last_result.clone()),
            mapping: mapping.map(|mapping| mapping.state),
            lag_ms: lag_ms.flatten(),
            dead_letters,
            problems,
        }
    }

    /// The stream that the table has now. An output of the stack may name an older one. `None` if it may not be read.
    async fn latest_stream(&self, deadline: &Deadline) -> Result<Option<String>, Error> {
        match patiently(deadline, || self.cloud.table(self.name.as_str())).await {
            Ok(table) => Ok(table.and_then(|table| table.latest_stream_arn)),
            Err(failure) if failure.denied() => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The functions that read the table's stream. More than two are throttled by DynamoDB, and an aggregator of zae-limiter
    /// for Python counts usage twice. Of a table without a stack, only functions of the Terraform module are our own.
    pub async fn stream_readers(&self) -> Result<Vec<StreamReader>, Error> {
        let deadline = self.reading();
        let (stream, own) = if let Some(deployed) = self.observe(&deadline).await? {
            (
                self.latest_stream(&deadline)
                    .await?
                    .or_else(|| deployed.stack.outputs.get("StreamArn").cloned()),
                deployed.template.as_ref().map(function_names).unwrap_or_default(),
            )
        } else {
            let table = patiently(&deadline, || self.cloud.table(self.name.as_str())).await?;
            let Some(table) = table else {
                return Err(self.missing().await);
            };
            let names = LambdaFunction::ALL
                .map(|function| function.name_in(&self.name))
                .into_iter();
            let own = self.managed(&table).await?.then(|| names.collect());
            (table.latest_stream_arn, own.unwrap_or_default())
        };
        let Some(stream) = stream else {
            return Ok(vec![]);
        };
        let mappings = patiently(&deadline, || self.cloud.mappings(&stream)).await?;
        Ok(mappings
            .into_iter()
            .map(|mapping| StreamReader {
                own: own.contains(mapping.function()),
                mapping: mapping.uuid,
                function_arn: mapping.function_arn,
                state: mapping.state,
            })
            .collect())
    }
}

/// The response of a call, or a problem.
async fn read<T>(call: impl Future<Output = Result<T, Failure>>, problems: &mut Vec<String>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(Ok(value)) => Some(value),
        Ok(Err(failure)) if failure.unsupported() => {
            problems.push(format!("{} is not available here", failure.action()));
            None
        }
        Ok(Err(failure)) => {
            problems.push(Error::from(failure).to_string());
            None
        }
        Err(_) => {
            problems.push(format!("no response within {} s", PATIENCE.as_secs()));
            None
        }
    }
}

/// The mapping to report: one that is not enabled, if there is any.
fn worst(mut mappings: Vec<MappingState>) -> Option<MappingState> {
    mappings.sort_by_key(|mapping| mapping.state == "Enabled");
    mappings.into_iter().next()
}

/// Whether a template has an event source mapping.
pub(crate) fn reads_stream(template: &Template) -> bool {
    let mapping = |resource: &Value| {
        resource.get("Type").and_then(Value::as_str) == Some("AWS::Lambda::EventSourceMapping")
    };
    template.resources().any(|(_, resource)| mapping(resource))
}

/// The names of the functions in a template.
pub(crate) fn function_names(template: &Template) -> BTreeSet<String> {
    let names = template.resources().filter_map(|(_, resource)| {
        (resource.get("Type")?.as_str()? == "AWS::Lambda::Function")
            .then(|| resource.pointer("/Properties/FunctionName")?.as_str())
            .flatten()
    });
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_that_is_not_enabled_is_reported_before_one_that_is() {
        let mapping = |state: &str| MappingState {
            state: state.to_owned(),
            last_result: None,
            stream: None,
        };
        let found = worst(vec![mapping("Enabled"), mapping("Disabled")]);
        assert_eq!(found, Some(mapping("Disabled")));
        assert_eq!(worst(vec![]), None);
    }
}
