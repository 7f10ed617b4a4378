//! What AWS reports of a function that reads a stream: its mappings, its lag and its dead letters.

use std::time::{Duration, SystemTime};

use aws_sdk_cloudwatch::types::{Dimension, Statistic};
use aws_sdk_sqs::types::QueueAttributeName;

use super::Cloud;
use super::failure::Failure;

/// An event source mapping as Lambda describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappingState {
    pub(crate) state: String,
    pub(crate) last_result: Option<String>,
    /// The stream that it reads.
    pub(crate) stream: Option<String>,
}

impl Cloud {
    /// The event source mappings of a function.
    pub(crate) async fn mappings_of(&self, function: &str) -> Result<Vec<MappingState>, Failure> {
        let (mut all, mut marker) = (Vec::new(), None);
        loop {
            let call = self.clients.lambda.list_event_source_mappings();
            let page = call.function_name(function).set_marker(marker).send().await;
            let page =
                page.map_err(|error| Failure::of("lambda:ListEventSourceMappings", function, &error))?;
            all.extend(page.event_source_mappings().iter().map(|mapping| MappingState {
                state: mapping.state().unwrap_or_default().to_owned(),
                last_result: mapping.last_processing_result().map(str::to_owned),
                stream: mapping.event_source_arn().map(str::to_owned),
            }));
            marker = page.next_marker;
            if marker.is_none() {
                return Ok(all);
            }
        }
    }

    /// The greatest age of a record that a function's batches had in this period until now, in milliseconds. `None` if no
    /// batch ended: Lambda reports the age only then.
    pub(crate) async fn iterator_age(
        &self,
        function: &str,
        period: Duration,
    ) -> Result<Option<u64>, Failure> {
        let now = SystemTime::now();
        let dimension = Dimension::builder().name("FunctionName").value(function);
        let call = self.clients.cloudwatch.get_metric_statistics();
        let statistics = call
            .namespace("AWS/Lambda")
            .metric_name("IteratorAge")
            .dimensions(dimension.build())
            .start_time((now - period).into())
            .end_time(now.into())
            .period(i32::try_from(period.as_secs()).unwrap_or(i32::MAX))
            .statistics(Statistic::Maximum)
            .send()
            .await
            .map_err(|error| Failure::of("cloudwatch:GetMetricStatistics", function, &error))?;
        let ages = statistics
            .datapoints()
            .iter()
            .filter_map(aws_sdk_cloudwatch::types::Datapoint::maximum);
        Ok(ages.reduce(f64::max).map(whole))
    }

    /// The URL of the queue of this name.
    pub(crate) async fn queue_url(&self, name: &str) -> Result<Option<String>, Failure> {
        let found = self.clients.sqs.get_queue_url().queue_name(name).send().await;
        let found = found.map_err(|error| Failure::of("sqs:GetQueueUrl", name, &error))?;
        Ok(found.queue_url)
    }

    /// Roughly how many messages wait in a queue.
    pub(crate) async fn waiting_messages(&self, url: &str) -> Result<Option<u64>, Failure> {
        let count = QueueAttributeName::ApproximateNumberOfMessages;
        let call = self.clients.sqs.get_queue_attributes().queue_url(url);
        let found = call.attribute_names(count.clone()).send().await;
        let found = found.map_err(|error| Failure::of("sqs:GetQueueAttributes", url, &error))?;
        let attributes = found.attributes();
        Ok(attributes.and_then(|all| all.get(&count)?.parse().ok()))
    }
}

/// An age of a metric. Milliseconds of a stream's 24 hours are far below where a float is inexact.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(age: f64) -> u64 {
    age.max(0.0) as u64
}
