//! An import whose calls are logged in order, for tests of what is done before and after it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::operation::detect_stack_resource_drift::DetectStackResourceDriftOutput;
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetOutput;
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceOutput;
use aws_sdk_dynamodb::operation::tag_resource::TagResourceOutput;
use aws_sdk_dynamodb::operation::untag_resource::{UntagResourceError, UntagResourceOutput};
use aws_sdk_dynamodb::operation::update_table::{UpdateTableError, UpdateTableOutput};
use aws_sdk_dynamodb::types::Tag;
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use aws_smithy_mocks::{Rule, mock};
use zae_limiter_stack::StackOptions;

use super::existing_table::{TABLE_ARN, import, table};
use super::tape::{Tape, no_event_source_mappings, no_log_groups, refusal};
use crate::support::bare;

/// The tag of a table that is protected only while it is imported.
pub(crate) const TAG: &str = "zae-limiter:import-protection";

/// The import of a table.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) tape: Tape,
    log: Log,
}

/// What was called, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, call: impl Into<String>) {
        self.0.lock().unwrap().push(call.into());
    }
}

impl Import {
    pub(crate) fn of_unprotected_table() -> Self {
        Self::new(false, false)
    }

    pub(crate) fn of_protected_table() -> Self {
        Self::new(true, false)
    }

    /// The table is as an import that was rolled back leaves it.
    pub(crate) fn of_tagged_table() -> Self {
        Self::new(true, true)
    }

    /// Of a protected table, into a stack with the aggregator, whose options these are.
    pub(crate) fn with_aggregator() -> (Self, StackOptions) {
        let mut import = Self::of_protected_table();
        import.tape.logs.push(no_log_groups());
        import.tape.lambda.push(no_event_source_mappings());
        import
            .tape
            .s3
            .push(mock!(aws_sdk_s3::Client::head_object).then_output(|| HeadObjectOutput::builder().build()));
        let options = bare().to_builder().enable_aggregator(true).enable_alarms(false);
        let options = options.code_bucket("ours").aggregator_code_key("a.zip");
        (import, options.build().unwrap())
    }

    /// DynamoDB reports the same protection whatever is called. The tag appears and disappears.
    fn new(protected: bool, tagged: bool) -> Self {
        let mut tape = import(&["", "", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"]);
        let log = Log::default();
        tape.dynamodb = vec![
            mock!(DynamoDb::describe_table).then_output(move || {
                let mut table = table();
                table.deletion_protection_enabled = Some(protected);
                table.table_arn = Some(TABLE_ARN.to_owned());
                DescribeTableOutput::builder().table(table).build()
            }),
            protection(&log),
        ];
        tape.dynamodb.extend(tag(&log, tagged));
        let executed = log.clone();
        tape.cloudformation.insert(
            0,
            mock!(Cfn::execute_change_set).then_compute_output(move |_| {
                executed.push("import");
                ExecuteChangeSetOutput::builder().build()
            }),
        );
        tape.cloudformation.push(
            mock!(Cfn::detect_stack_resource_drift)
                .then_output(|| DetectStackResourceDriftOutput::builder().build()),
        );
        Self { tape, log }
    }

    /// DynamoDB responds to an operation like this.
    pub(crate) fn with_dynamodb(mut self, rule: Rule) -> Self {
        self.tape.dynamodb.insert(0, rule);
        self
    }

    /// Protection can be neither turned on nor off.
    pub(crate) fn refusing_protection(self) -> Self {
        self.with_dynamodb(
            mock!(DynamoDb::update_table)
                .then_error(|| UpdateTableError::generic(refusal("AccessDeniedException", "no"))),
        )
    }

    /// The tag stays.
    pub(crate) fn refusing_untag(self) -> Self {
        self.with_dynamodb(
            mock!(DynamoDb::untag_resource)
                .then_error(|| UntagResourceError::generic(refusal("AccessDeniedException", "no"))),
        )
    }

    /// For responses of a test that are logged too.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.log.0.lock().unwrap().clone()
    }
}

fn protection(log: &Log) -> Rule {
    let log = log.clone();
    mock!(DynamoDb::update_table).then_compute_output(move |input| {
        let on = input.deletion_protection_enabled().unwrap();
        log.push(format!("protection {on}"));
        UpdateTableOutput::builder().build()
    })
}

/// The tag of a table: read, set and removed.
fn tag(log: &Log, tagged: bool) -> [Rule; 3] {
    let (tags, untags) = (log.clone(), log.clone());
    let tag = Arc::new(AtomicBool::new(tagged));
    let (set, unset) = (Arc::clone(&tag), Arc::clone(&tag));
    [
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
            tags.push("tag");
            TagResourceOutput::builder().build()
        }),
        mock!(DynamoDb::untag_resource).then_compute_output(move |input| {
            assert_eq!(input.tag_keys(), [TAG]);
            unset.store(false, Ordering::SeqCst);
            untags.push("untag");
            UntagResourceOutput::builder().build()
        }),
    ]
}
