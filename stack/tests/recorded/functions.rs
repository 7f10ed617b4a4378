//! The status of the functions.

use aws_sdk_cloudwatch::operation::get_metric_statistics::{
    GetMetricStatisticsError, GetMetricStatisticsOutput,
};
use aws_sdk_cloudwatch::types::Datapoint;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceOutput;
use aws_sdk_dynamodb::types::{TableDescription, Tag};
use aws_sdk_lambda::operation::list_event_source_mappings::ListEventSourceMappingsOutput;
use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_sdk_sqs::operation::get_queue_attributes::{GetQueueAttributesError, GetQueueAttributesOutput};
use aws_sdk_sqs::operation::get_queue_url::GetQueueUrlOutput;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::FunctionStatus;
use zae_limiter_template::MANAGED_BY_TERRAFORM;

use super::kept::{aggregating, aggregating_body};
use super::tape::{Tape, looks, no_event_source_mappings, refusal, template, with_outputs};
use super::{stack, tags};
use crate::support::bare;
use crate::support::permits::readable;
use crate::support::requests::permission;

const QUEUE: &str = "https://sqs.us-east-1.amazonaws.com/123456789012/demo-aggregator-dlq";

/// A stack with the aggregator, as its outputs name it.
fn deployed() -> Tape {
    deployed_with(&[
        ("AggregatorFunctionName", "demo-aggregator"),
        ("AggregatorDLQUrl", QUEUE),
    ])
}

fn deployed_with(outputs: &[(&str, &str)]) -> Tape {
    let looked = with_outputs("UPDATE_COMPLETE", &tags(&aggregating()), outputs);
    Tape::of([looked, template(&aggregating_body(&aggregating()))])
}

fn mapping(state: &'static str, result: &'static str) -> Rule {
    mock!(aws_sdk_lambda::Client::list_event_source_mappings).then_output(move || {
        let mapping = EventSourceMappingConfiguration::builder()
            .state(state)
            .last_processing_result(result)
            .function_arn("arn:aws:lambda:us-east-1:123456789012:function:demo-aggregator");
        ListEventSourceMappingsOutput::builder()
            .event_source_mappings(mapping.build())
            .build()
    })
}

fn ages(ages: &'static [f64]) -> Rule {
    mock!(aws_sdk_cloudwatch::Client::get_metric_statistics)
        .match_requests(|input| {
            let dimension = &input.dimensions()[0];
            input.metric_name() == Some("IteratorAge") && dimension.value() == Some("demo-aggregator")
        })
        .then_output(|| {
            let points = ages.iter().map(|age| Datapoint::builder().maximum(*age).build());
            GetMetricStatisticsOutput::builder()
                .set_datapoints(Some(points.collect()))
                .build()
        })
}

fn letters(count: &'static str) -> Rule {
    mock!(aws_sdk_sqs::Client::get_queue_attributes)
        .match_requests(|input| input.queue_url() == Some(QUEUE))
        .then_output(move || {
            GetQueueAttributesOutput::builder()
                .attributes(QueueAttributeName::ApproximateNumberOfMessages, count)
                .build()
        })
}

/// The functions of a stack, and the operations that were called.
async fn functions(tape: &Tape) -> (Vec<FunctionStatus>, Vec<String>) {
    let (stack, calls) = stack(&aggregating(), tape);
    let status = stack.status().await.unwrap();
    let found = stack.function_statuses(status.as_ref()).await.unwrap();
    (found, calls.names())
}

#[tokio::test(start_paused = true)]
async fn mapping_lag_and_dead_letters_of_a_function_are_read() {
    let mut tape = deployed();
    tape.lambda
        .push(mapping("Disabled", "PROBLEM: Function call failed"));
    tape.cloudwatch.push(ages(&[1_500.0, 90_000.0]));
    tape.sqs.push(letters("3"));
    let (found, calls) = functions(&tape).await;
    let expected = FunctionStatus {
        name: "demo-aggregator".to_owned(),
        mapping: Some("Disabled".to_owned()),
        last_result: Some("PROBLEM: Function call failed".to_owned()),
        lag_ms: Some(90_000),
        dead_letters: Some(3),
        problems: vec![],
    };
    assert_eq!(found, [expected]);

    let services = ["CloudFormation", "CloudFormation", "Lambda", "CloudWatch", "SQS"];
    for (service, operation) in services.into_iter().zip(&calls) {
        let needed = permission(service, operation).unwrap();
        assert!(
            readable().contains(&needed),
            "the policy of readers lacks {needed}"
        );
    }
    assert_eq!(calls.len(), services.len());
}

#[tokio::test(start_paused = true)]
async fn both_functions_are_read_each_with_its_mapping_its_lag_and_its_queue() {
    let mut tape = deployed_with(&[
        ("AggregatorFunctionName", "demo-aggregator"),
        ("AggregatorDLQUrl", QUEUE),
        ("ArchiverFunctionName", "demo-archiver"),
        ("ArchiverDLQUrl", &QUEUE.replace("aggregator", "archiver")),
    ]);
    let archiver = |name: Option<&str>| name.is_some_and(|name| name.contains("archiver"));
    tape.lambda.push(
        mock!(aws_sdk_lambda::Client::list_event_source_mappings).then_compute_output(move |input| {
            let state = if archiver(input.function_name()) {
                "Disabled"
            } else {
                "Enabled"
            };
            let mapping = EventSourceMappingConfiguration::builder().state(state);
            ListEventSourceMappingsOutput::builder()
                .event_source_mappings(mapping.build())
                .build()
        }),
    );
    tape.cloudwatch.push(
        mock!(aws_sdk_cloudwatch::Client::get_metric_statistics).then_compute_output(move |input| {
            let age = if archiver(input.dimensions()[0].value()) {
                90_000.0
            } else {
                10.0
            };
            GetMetricStatisticsOutput::builder()
                .datapoints(Datapoint::builder().maximum(age).build())
                .build()
        }),
    );
    tape.sqs.push(
        mock!(aws_sdk_sqs::Client::get_queue_attributes).then_compute_output(move |input| {
            let letters = if archiver(input.queue_url()) { "2" } else { "0" };
            GetQueueAttributesOutput::builder()
                .attributes(QueueAttributeName::ApproximateNumberOfMessages, letters)
                .build()
        }),
    );
    let (found, _) = functions(&tape).await;
    let shown: Vec<_> = found
        .iter()
        .map(|function| {
            let (mapping, lag) = (function.mapping.as_deref(), function.lag_ms);
            (function.name.as_str(), mapping, lag, function.dead_letters)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("demo-aggregator", Some("Enabled"), Some(10), Some(0)),
            ("demo-archiver", Some("Disabled"), Some(90_000), Some(2)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_a_problem_of_its_function_and_the_rest_is_shown() {
    let mut tape = deployed();
    tape.lambda.push(mapping("Enabled", "OK"));
    tape.cloudwatch.push(
        mock!(aws_sdk_cloudwatch::Client::get_metric_statistics).then_error(|| {
            GetMetricStatisticsError::generic(refusal(
                "AccessDenied",
                "User: app is not authorized to perform: cloudwatch:GetMetricStatistics on resource: *",
            ))
        }),
    );
    tape.sqs.push(letters("0"));
    let (found, _) = functions(&tape).await;
    let [function] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(function.mapping.as_deref(), Some("Enabled"));
    assert_eq!((function.lag_ms, function.dead_letters), (None, Some(0)));
    let [problem] = function.problems.as_slice() else {
        panic!("{function:?}")
    };
    assert!(problem.contains("cloudwatch:GetMetricStatistics"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_function_without_a_mapping_batches_or_a_queue_has_none_of_them() {
    let mut tape = deployed();
    tape.lambda.push(no_event_source_mappings());
    tape.cloudwatch.push(ages(&[]));
    tape.sqs
        .push(mock!(aws_sdk_sqs::Client::get_queue_attributes).then_error(|| {
            GetQueueAttributesError::generic(refusal("QueueDoesNotExist", "the queue does not exist"))
        }));
    let (found, _) = functions(&tape).await;
    assert_eq!((&found[0].mapping, found[0].lag_ms), (&None, None));
    assert_eq!(found[0].problems.len(), 1, "{found:?}");
    assert!(
        found[0].problems[0].contains("sqs:GetQueueAttributes"),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn functions_of_terraform_are_found_by_their_names_and_the_stream() {
    let mut tape = Tape::of([looks(&[""], tags(&bare()))]);
    tape.dynamodb
        .push(mock!(aws_sdk_dynamodb::Client::describe_table).then_output(|| {
            let table = TableDescription::builder()
                .table_arn("arn:aws:dynamodb:us-east-1:123456789012:table/demo")
                .latest_stream_arn("arn:stream");
            DescribeTableOutput::builder().table(table.build()).build()
        }));
    tape.dynamodb.push(
        mock!(aws_sdk_dynamodb::Client::list_tags_of_resource).then_output(|| {
            let tag = Tag::builder().key("ManagedBy").value(MANAGED_BY_TERRAFORM);
            ListTagsOfResourceOutput::builder()
                .tags(tag.build().unwrap())
                .build()
        }),
    );
    tape.lambda.push(mapping("Enabled", "OK"));
    tape.cloudwatch.push(ages(&[10.0]));
    tape.sqs.push(
        mock!(aws_sdk_sqs::Client::get_queue_url)
            .match_requests(|input| input.queue_name() == Some("demo-aggregator-dlq"))
            .then_output(|| GetQueueUrlOutput::builder().queue_url(QUEUE).build()),
    );
    tape.sqs.push(letters("7"));
    let (found, _) = functions(&tape).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].lag_ms, found[0].dead_letters), (Some(10), Some(7)));
    assert_eq!(found[0].problems, Vec::<String>::new());
}
