//! What a deployed stack keeps, whatever the options say.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::Client as Cfn;
use aws_smithy_mocks::mock;
use serde_json::{Value, json};
use zae_limiter_stack::{Change, CodeError, Error, LambdaFunction, StackOptions};
use zae_limiter_template::{CodeLocation, FunctionCode};

use super::states::in_place;
use super::tape::{Tape, change_set, looks, template};
use super::{CHANGE_SET, ID, NAME, body, changed, stack, tags};
use crate::support::{self, bare};

const LAMBDA_VERSION: &str = "zae-limiter:lambda-version";

/// With the aggregator alone.
pub(crate) fn aggregating() -> StackOptions {
    bare().to_builder().enable_aggregator(true).build().unwrap()
}

/// What [`aggregating`] options render to, with code that is deployed already.
pub(crate) fn aggregating_body(options: &StackOptions) -> Value {
    let code = json!({ "S3Bucket": "code", "S3Key": "1.zip" });
    let code = FunctionCode::none().with(LambdaFunction::Aggregator, CodeLocation::Deployed(code));
    let template = zae_limiter_template::render(&support::name(NAME), options, &code).unwrap();
    template.to_value().clone()
}

#[tokio::test(start_paused = true)]
async fn the_starting_position_of_a_mapping_is_never_changed_and_the_plan_says_so() {
    let deployed = aggregating_body(&aggregating());
    let latest = aggregating().to_builder().stream_start("latest").build().unwrap();
    let rules = || [looks(&["UPDATE_COMPLETE"], tags(&latest)), template(&deployed)];
    let (declares_latest, calls) = stack(&latest, &Tape::of(rules()));
    let plan = declares_latest.plan().await.unwrap();
    assert!(plan.is_empty(), "{plan}");
    let said = plan.to_string();
    assert!(
        said.contains("AggregatorEventSourceMapping keeps StartingPosition \"TRIM_HORIZON\""),
        "{said}"
    );
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);

    let outcome = stack(&latest, &Tape::of(rules())).0.ensure().await.unwrap();
    assert_eq!((outcome.change, outcome.warnings.len()), (Change::None, 1));
}

#[tokio::test(start_paused = true)]
async fn a_function_that_keeps_its_code_keeps_the_release_in_its_tags() {
    let mut deployed = aggregating_body(&aggregating());
    let mut older = tags(&aggregating());
    older.insert(LAMBDA_VERSION.to_owned(), "0.0.9".to_owned());
    let tag = "/Resources/AggregatorFunction/Properties/Tags/0";
    assert_eq!(deployed.pointer(tag).unwrap()["Key"], LAMBDA_VERSION);
    *deployed.pointer_mut(tag).unwrap() = json!({ "Key": LAMBDA_VERSION, "Value": "0.0.9" });

    let (without_code, _) = stack(
        &aggregating(),
        &Tape::of([looks(&["UPDATE_COMPLETE"], older.clone()), template(&deployed)]),
    );
    let plan = without_code.plan().await.unwrap();
    assert!(plan.is_empty(), "its code is still that of 0.0.9: {plan}");

    let (with_code, _) = stack(
        &aggregating(),
        &Tape::of([looks(&["UPDATE_COMPLETE"], older), template(&deployed)]),
    );
    let plan = with_code.code(support::code()).plan_offline().await.unwrap();
    let function = &plan.changes[0];
    assert_eq!(function.logical_id, "AggregatorFunction");
    let paths: Vec<_> = function
        .properties
        .iter()
        .map(|property| property.path.as_str())
        .collect();
    assert!(
        paths.contains(&"Tags/0/Value") && paths.iter().any(|path| path.starts_with("Code")),
        "{paths:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn tags_of_others_are_neither_compared_nor_removed() {
    let mut found = tags(&bare());
    found.insert("CostCenter".to_owned(), "42".to_owned());
    found.insert("aws:servicecatalog:x".to_owned(), "1".to_owned());
    let (equal, _) = stack(
        &bare(),
        &Tape::of([
            looks(&["UPDATE_COMPLETE"], found.clone()),
            template(&body(&bare())),
        ]),
    );
    assert_eq!(equal.ensure().await.unwrap().change, Change::None);

    let kept = mock!(Cfn::create_change_set)
        .match_requests(|input| {
            let sent: BTreeMap<_, _> = input.tags().iter().map(|tag| (tag.key(), tag.value())).collect();
            sent.get(&Some("CostCenter")) == Some(&Some("42"))
                && sent.contains_key(&Some("ManagedBy"))
                && !sent.keys().flatten().any(|key| key.starts_with("aws:"))
        })
        .then_output(|| {
            aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetOutput::builder()
                .id(CHANGE_SET)
                .stack_id(ID)
                .build()
        });
    let statuses: &[_] = &["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
    let mut tape = Tape::of([kept, looks(statuses, found), template(&body(&bare()))]);
    tape.cloudformation
        .extend(change_set(vec![in_place()]).into_iter().skip(1));
    let (differs, _) = stack(&changed(), &tape.with_free_names());
    assert_eq!(differs.ensure().await.unwrap().change, Change::Updated);
}

/// A plan without a change set has the same tags to show.
#[tokio::test(start_paused = true)]
async fn an_offline_plan_shows_tags_that_change() {
    let team = [("team".to_owned(), "a".to_owned())];
    let tagged = bare().to_builder().tags(team.into()).build().unwrap();
    let tape = Tape::of([
        looks(&["UPDATE_COMPLETE"], tags(&bare())),
        template(&body(&bare())),
    ]);
    let (planner, _) = stack(&tagged, &tape);
    let shown = planner.plan_offline().await.unwrap().to_string();
    assert!(
        shown.ends_with(": update the stack; tags of its resources\ntags:\n  + team: \"a\"\n"),
        "{shown}"
    );
}

/// Options with an object as the aggregator's code.
fn named(bucket: &str, key: &str, architecture: &str) -> StackOptions {
    let options = aggregating().to_builder().code_bucket(bucket);
    let options = options.aggregator_code_key(key);
    options.lambda_architecture(architecture).build().unwrap()
}

/// The code would stay, and only the processor would change.
#[tokio::test(start_paused = true)]
async fn another_processor_for_the_same_named_object_is_refused() {
    let deployed = named("ours", "1.zip", "x86_64");
    let code = FunctionCode::of(&deployed);
    let body = zae_limiter_template::render(&support::name(NAME), &deployed, &code).unwrap();
    let tape = || {
        let looks = looks(&["UPDATE_COMPLETE"], tags(&deployed));
        Tape::of([looks, template(body.to_value())])
    };
    let (same, _) = stack(&deployed, &tape());
    assert_eq!(same.ensure().await.unwrap().change, Change::None);

    let (refused, calls) = stack(&named("ours", "1.zip", "arm64"), &tape());
    let error = refused.ensure().await.unwrap_err();
    assert!(
        matches!(error, Error::Code(CodeError::ArchitectureChanged { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("use another key"), "{error}");
    assert_eq!(calls.names(), ["DescribeStacks", "GetTemplate"]);

    // Another object may be built for it.
    for (bucket, key) in [("ours", "2.zip"), ("others", "1.zip")] {
        let (another, _) = stack(&named(bucket, key, "arm64"), &tape());
        let plan = another.plan_offline().await.unwrap();
        assert!(!plan.is_refused() && !plan.is_empty(), "{plan}");
    }
}
