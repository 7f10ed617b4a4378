//! Deletion protection of the table, and the names of deleted queues, while a stack is created.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::create_stack::CreateStackOutput;
use aws_sdk_cloudformation::operation::detect_stack_resource_drift::DetectStackResourceDriftOutput;
use aws_sdk_cloudformation::operation::execute_change_set::{ExecuteChangeSetError, ExecuteChangeSetOutput};
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::operation::list_stacks::{ListStacksError, ListStacksOutput};
use aws_sdk_cloudformation::operation::update_stack::UpdateStackOutput;
use aws_sdk_cloudformation::types::{StackStatus, StackSummary};
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceOutput;
use aws_sdk_dynamodb::operation::tag_resource::{TagResourceError, TagResourceOutput};
use aws_sdk_dynamodb::operation::untag_resource::{UntagResourceError, UntagResourceOutput};
use aws_sdk_dynamodb::operation::update_table::{UpdateTableError, UpdateTableOutput};
use aws_sdk_dynamodb::types::Tag;
use aws_smithy_mocks::{Rule, mock};
use aws_smithy_types::DateTime;
use zae_limiter_stack::{Change, Error, Event, StackOptions};

use super::existing_table::{TABLE_ARN, import as import_of_table, table};
use super::support::{Diary, bare};
use super::tape::{Tape, looks, no_event_source_mappings, no_log_groups, refusal};
use super::throttling::OFTEN;
use super::{ID, NAME, changed, count, stack, tags};

fn protects(body: Option<&str>) -> bool {
    let template: serde_json::Value = serde_json::from_str(body.unwrap()).unwrap();
    let protection = "/Resources/RateLimitsTable/Properties/DeletionProtectionEnabled";
    template.pointer(protection) == Some(&true.into())
}

#[tokio::test(start_paused = true)]
async fn a_protected_table_is_created_unprotected_so_that_the_creation_can_roll_back() {
    let unprotected = mock!(Cfn::create_stack)
        .match_requests(|input| !protects(input.template_body()))
        .then_output(|| CreateStackOutput::builder().stack_id(ID).build());
    let protected = mock!(Cfn::update_stack)
        .match_requests(|input| protects(input.template_body()))
        .then_output(|| UpdateStackOutput::builder().stack_id(ID).build());
    let statuses: &[_] = &["", "CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"];
    let tape = Tape::of([looks(statuses, tags(&bare())), unprotected, protected]).with_free_site();
    let (created, calls) = stack(&changed(), &tape);
    assert_eq!(created.ensure().await.unwrap().change, Change::Created);
    assert_eq!(
        (count(&calls, "CreateStack"), count(&calls, "UpdateStack")),
        (1, 1)
    );
}

pub(crate) const TAG: &str = "zae-limiter:import-protection";

/// An import whose calls that matter are noted in order. The table keeps its protection and its tag.
pub(crate) fn import(log: &Arc<Mutex<Vec<String>>>, protected: bool) -> Tape {
    import_of(log, protected, false)
}

fn import_of(log: &Arc<Mutex<Vec<String>>>, protected: bool, tagged: bool) -> Tape {
    let statuses: &[_] = &["", "", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"];
    let mut tape = import_of_table(statuses);
    let (seen, executed) = (Arc::clone(log), Arc::clone(log));
    let (tags, untags) = (Arc::clone(log), Arc::clone(log));
    let tag = Arc::new(AtomicBool::new(tagged));
    let (set, unset) = (Arc::clone(&tag), Arc::clone(&tag));
    // The tests below replace them by their place.
    tape.dynamodb = vec![
        mock!(DynamoDb::describe_table).then_output(move || {
            let mut table = table();
            table.deletion_protection_enabled = Some(protected);
            table.table_arn = Some(TABLE_ARN.to_owned());
            DescribeTableOutput::builder().table(table).build()
        }),
        mock!(DynamoDb::update_table).then_compute_output(move |input| {
            let on = input.deletion_protection_enabled().unwrap();
            seen.lock().unwrap().push(format!("protection {on}"));
            UpdateTableOutput::builder().build()
        }),
        mock!(DynamoDb::list_tags_of_resource).then_compute_output(move |_| {
            let found = tag.load(Ordering::SeqCst);
            let found = found.then(|| Tag::builder().key(TAG).value("on").build().unwrap());
            ListTagsOfResourceOutput::builder()
                .set_tags(Some(found.into_iter().collect()))
                .build()
        }),
        mock!(DynamoDb::tag_resource).then_compute_output(move |input| {
            assert_eq!(input.tags()[0].key(), TAG);
            set.store(true, Ordering::SeqCst);
            tags.lock().unwrap().push("tag".to_owned());
            TagResourceOutput::builder().build()
        }),
        mock!(DynamoDb::untag_resource).then_compute_output(move |input| {
            assert_eq!(input.tag_keys(), [TAG]);
            unset.store(false, Ordering::SeqCst);
            untags.lock().unwrap().push("untag".to_owned());
            UntagResourceOutput::builder().build()
        }),
    ];
    tape.cloudformation.insert(
        0,
        mock!(Cfn::execute_change_set).then_compute_output(move |_| {
            executed.lock().unwrap().push("import".to_owned());
            ExecuteChangeSetOutput::builder().build()
        }),
    );
    tape.cloudformation.push(
        mock!(Cfn::detect_stack_resource_drift)
            .then_output(|| DetectStackResourceDriftOutput::builder().build()),
    );
    tape
}

#[tokio::test(start_paused = true)]
async fn a_table_is_protected_before_its_import_and_unprotected_after_only_if_asked() {
    let cases: [(StackOptions, bool, &[&str]); 3] = [
        (
            bare(),
            false,
            &["tag", "protection true", "import", "protection false", "untag"],
        ),
        (changed(), false, &["tag", "protection true", "import", "untag"]),
        (bare(), true, &["import"]),
    ];
    for (options, protected, expected) in cases {
        let log = Arc::default();
        let (importing, _) = stack(&options, &import(&log, protected));
        assert_eq!(importing.ensure().await.unwrap().change, Change::Imported);
        assert_eq!(*log.lock().unwrap(), expected);
    }
}

/// An import whose change set cannot be executed.
fn import_that_cannot_start(log: &Arc<Mutex<Vec<String>>>) -> Tape {
    let mut tape = import(log, false);
    tape.cloudformation[0] = mock!(Cfn::execute_change_set)
        .then_error(|| ExecuteChangeSetError::generic(refusal("AccessDenied", "no")));
    tape.cloudformation
        .push(mock!(Cfn::list_change_sets).then_output(|| ListChangeSetsOutput::builder().build()));
    tape
}

#[tokio::test(start_paused = true)]
async fn an_import_that_cannot_start_leaves_the_protection_as_it_was() {
    let log = Arc::default();
    let tape = import_that_cannot_start(&log);
    stack(&bare(), &tape).0.ensure().await.unwrap_err();
    assert_eq!(
        *log.lock().unwrap(),
        ["tag", "protection true", "protection false", "untag"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_import_that_cannot_start_leaves_behind_is_told() {
    let mut tape = import_that_cannot_start(&Arc::default());
    tape.dynamodb[4] = mock!(DynamoDb::untag_resource)
        .then_error(|| UntagResourceError::generic(refusal("AccessDeniedException", "no")));
    let diary = Diary::default();
    let (importing, _) = stack(&bare(), &tape);
    importing.observer(diary.clone()).ensure().await.unwrap_err();
    let told = diary.events();
    assert!(
        told.iter()
            .any(|event| matches!(event, Event::Warning { text } if text.contains(TAG))),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_tagged_is_imported() {
    for code in ["AccessDeniedException", "ResourceInUseException"] {
        let log = Arc::default();
        let mut tape = import(&log, false);
        tape.dynamodb[3] =
            mock!(DynamoDb::tag_resource).then_error(move || TagResourceError::generic(refusal(code, "no")));
        let diary = Diary::default();
        let (importing, _) = stack(&bare(), &tape);
        let outcome = importing.observer(diary.clone()).ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Imported, "{code}");
        assert_eq!(
            *log.lock().unwrap(),
            ["protection true", "import", "protection false"],
            "{code}"
        );
        let told = diary.events();
        assert!(
            told.iter()
                .any(|event| matches!(event, Event::NotChecked { what, .. } if what.contains("protection"))),
            "{code}: {told:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_protected_keeps_no_tag() {
    let log = Arc::default();
    let mut tape = import(&log, false);
    tape.dynamodb[1] = mock!(DynamoDb::update_table)
        .then_error(|| UpdateTableError::generic(refusal("AccessDeniedException", "no")));
    let error = stack(&bare(), &tape).0.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(*log.lock().unwrap(), ["tag", "untag"]);
}

#[tokio::test(start_paused = true)]
async fn protection_is_taken_off_once_aws_answers() {
    let log = Arc::default();
    let mut tape = import(&log, false);
    tape.dynamodb[1] = mock!(DynamoDb::update_table)
        .sequence()
        .output(|| UpdateTableOutput::builder().build())
        .error(|| UpdateTableError::generic(refusal("ThrottlingException", "Rate exceeded")))
        .times(OFTEN)
        .output(|| UpdateTableOutput::builder().build())
        .repeatedly()
        .build();
    let (importing, calls) = stack(&bare(), &tape);
    let outcome = importing.ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Imported);
    assert!(
        !outcome
            .warnings
            .iter()
            .any(|warning| warning.contains("protection")),
        "{outcome:?}"
    );
    assert_eq!(count(&calls, "UpdateTable"), OFTEN + 2);
    assert_eq!(*log.lock().unwrap(), ["tag", "import", "untag"]);
}

#[tokio::test(start_paused = true)]
async fn the_protection_of_an_import_that_was_rolled_back_is_taken_off_by_the_next() {
    let log = Arc::default();
    let mut tape = import(&log, false);
    let rolled_back: &[_] = &["", "", "CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE"];
    tape.cloudformation.insert(0, looks(rolled_back, tags(&bare())));
    let error = stack(&bare(), &tape).0.ensure().await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert_eq!(
        *log.lock().unwrap(),
        ["tag", "protection true", "import"],
        "the table stays protected while its stack may still be deleted"
    );

    let cases: [(StackOptions, &[&str]); 2] = [
        (bare(), &["import", "protection false", "untag"]),
        (changed(), &["import", "untag"]),
    ];
    for (options, expected) in cases {
        let log = Arc::default();
        let (next, _) = stack(&options, &import_of(&log, true, true));
        assert_eq!(next.ensure().await.unwrap().change, Change::Imported);
        assert_eq!(*log.lock().unwrap(), expected);
    }
}

fn deleted(name: &'static str, seconds_ago: u64) -> Rule {
    mock!(Cfn::list_stacks)
        .match_requests(|input| input.stack_status_filter() == [StackStatus::DeleteComplete])
        .then_output(move || {
            let time = SystemTime::now() - Duration::from_secs(seconds_ago);
            let summary = StackSummary::builder()
                .stack_name(name)
                .deletion_time(DateTime::from(time));
            let summary = summary
                .creation_time(DateTime::from_secs(0))
                .stack_status(StackStatus::DeleteComplete);
            ListStacksOutput::builder()
                .stack_summaries(summary.build())
                .build()
        })
}

/// Options with the aggregator, and what else an import of its stack hears.
pub(crate) fn aggregating_import(tape: &mut Tape) -> StackOptions {
    tape.logs.push(no_log_groups());
    tape.lambda.push(no_event_source_mappings());
    tape.s3.push(
        mock!(aws_sdk_s3::Client::head_object)
            .then_output(|| aws_sdk_s3::operation::head_object::HeadObjectOutput::builder().build()),
    );
    let options = bare().to_builder().enable_aggregator(true).enable_alarms(false);
    options
        .code_bucket("ours")
        .aggregator_code_key("a.zip")
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_import_waits_until_sqs_frees_the_names_of_deleted_queues() {
    let denied =
        mock!(Cfn::list_stacks).then_error(|| ListStacksError::generic(refusal("AccessDenied", "no")));
    let cases = [
        (deleted(NAME, 20), true),
        (deleted(NAME, 61), false),
        (deleted("other", 20), false),
        (denied, false),
    ];
    for (last, waits) in cases {
        let mut tape = import(&Arc::default(), true);
        tape.cloudformation.push(last);
        let options = aggregating_import(&mut tape);
        let diary = Diary::default();
        let (importing, _) = stack(&options, &tape);
        let started = tokio::time::Instant::now();
        let outcome = importing.observer(diary.clone()).ensure().await.unwrap();
        assert_eq!(outcome.change, Change::Imported);
        let waited = diary
            .events()
            .iter()
            .any(|event| matches!(event, Event::TryingAgain { .. }));
        assert_eq!(
            (waited, started.elapsed() >= Duration::from_secs(39)),
            (waits, waits)
        );
    }
}
