//! The functions that read the table's stream.

use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_lambda::operation::list_event_source_mappings::{
    ListEventSourceMappingsError, ListEventSourceMappingsOutput,
};
use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_smithy_mocks::mock;
use zae_limiter_stack::Error;

use super::existing_table::table;
use super::kept::{aggregating, aggregating_body};
use super::tape::{Tape, looks, refusal, template, with_outputs};
use super::{stack, tags};
use crate::support::bare;

#[tokio::test(start_paused = true)]
async fn readers_of_the_stream_are_listed_and_foreign_ones_told_apart() {
    // A stream that was turned off and on again has another ARN than the output.
    let outputs = [("StreamArn", "arn:old-stream")];
    let looked = with_outputs("UPDATE_COMPLETE", &tags(&aggregating()), &outputs);
    let mut tape = Tape::of([looked, template(&aggregating_body(&aggregating()))]);
    tape.dynamodb
        .push(mock!(aws_sdk_dynamodb::Client::describe_table).then_output(|| {
            let mut table = table();
            table.latest_stream_arn = Some("arn:stream".to_owned());
            DescribeTableOutput::builder().table(table).build()
        }));
    tape.lambda.push(
        mock!(aws_sdk_lambda::Client::list_event_source_mappings)
            .match_requests(|input| input.event_source_arn() == Some("arn:stream"))
            .then_output(|| {
                let mapping = |id: &str, function: &str| {
                    let arn = format!("arn:aws:lambda:us-east-1:123456789012:function:{function}");
                    let mapping = EventSourceMappingConfiguration::builder()
                        .uuid(id)
                        .state("Enabled");
                    mapping.function_arn(arn).build()
                };
                ListEventSourceMappingsOutput::builder()
                    .event_source_mappings(mapping("1", "demo-aggregator:live"))
                    .event_source_mappings(mapping("2", "peer-aggregator"))
                    .build()
            }),
    );
    let readers = stack(&aggregating(), &tape).0.stream_readers().await.unwrap();
    let found: Vec<_> = readers
        .iter()
        .map(|reader| (reader.mapping.as_str(), reader.state.as_str(), reader.own))
        .collect();
    assert_eq!(found, [("1", "Enabled", true), ("2", "Enabled", false)]);
    assert!(readers[1].function_arn.ends_with("peer-aggregator"));

    tape.lambda = vec![
        mock!(aws_sdk_lambda::Client::list_event_source_mappings)
            .then_error(|| ListEventSourceMappingsError::generic(refusal("AccessDeniedException", "no"))),
    ];
    let error = stack(&aggregating(), &tape).0.stream_readers().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");

    let absent = Tape::of([looks(&[""], tags(&bare()))]).with_free_site();
    let (absent, _) = stack(&bare(), &absent);
    let error = absent.stream_readers().await.unwrap_err();
    assert!(matches!(error, Error::NoSuchStack { .. }), "{error}");
}
