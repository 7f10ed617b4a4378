//! Responses of AWS.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::error::ErrorMetadata;
use aws_sdk_cloudformation::operation::create_change_set::CreateChangeSetOutput;
use aws_sdk_cloudformation::operation::create_stack::CreateStackOutput;
use aws_sdk_cloudformation::operation::delete_change_set::DeleteChangeSetOutput;
use aws_sdk_cloudformation::operation::delete_stack::DeleteStackOutput;
use aws_sdk_cloudformation::operation::describe_change_set::DescribeChangeSetOutput;
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsOutput;
use aws_sdk_cloudformation::operation::describe_stack_resources::DescribeStackResourcesOutput;
use aws_sdk_cloudformation::operation::describe_stacks::{DescribeStacksError, DescribeStacksOutput};
use aws_sdk_cloudformation::operation::execute_change_set::ExecuteChangeSetOutput;
use aws_sdk_cloudformation::operation::get_template::GetTemplateOutput;
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{
    Change, ChangeSetStatus, Output, ResourceChange, ResourceStatus, Stack, StackEvent, StackStatus, Tag,
};
use aws_sdk_cloudwatchlogs::operation::describe_log_groups::DescribeLogGroupsOutput;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_iam::operation::get_policy::GetPolicyError;
use aws_sdk_iam::operation::get_role::GetRoleError;
use aws_sdk_lambda::operation::list_event_source_mappings::ListEventSourceMappingsOutput;
use aws_sdk_sts::operation::get_caller_identity::GetCallerIdentityOutput;
use aws_smithy_mocks::{
    MockResponse, MockResponseInterceptor, Rule, RuleMode, create_mock_http_client, mock,
};
use zae_limiter_stack::Clients;

use super::{CHANGE_SET, ID, NAME};

/// Responses by service. The first that fits an operation is used; a call without a response fails the test.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    pub(crate) cloudformation: Vec<Rule>,
    pub(crate) s3: Vec<Rule>,
    pub(crate) dynamodb: Vec<Rule>,
    pub(crate) cloudwatch: Vec<Rule>,
    pub(crate) iam: Vec<Rule>,
    pub(crate) lambda: Vec<Rule>,
    pub(crate) logs: Vec<Rule>,
    pub(crate) sns: Vec<Rule>,
    pub(crate) sqs: Vec<Rule>,
    pub(crate) sts: Vec<Rule>,
}

impl Tape {
    pub(crate) fn of(cloudformation: impl IntoIterator<Item = Rule>) -> Self {
        Self {
            cloudformation: cloudformation.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds what an empty account returns to a client that is about to make a stack without functions.
    pub(crate) fn with_free_site(mut self) -> Self {
        self.sts.push(caller());
        self.dynamodb.push(no_table());
        self.with_free_names()
    }

    pub(crate) fn with_free_names(mut self) -> Self {
        let absent = || {
            ErrorMetadata::builder()
                .code("NoSuchEntity")
                .message("not found")
                .build()
        };
        self.iam.push(
            mock!(aws_sdk_iam::Client::get_policy).then_error(move || GetPolicyError::generic(absent())),
        );
        self.iam
            .push(mock!(aws_sdk_iam::Client::get_role).then_error(move || GetRoleError::generic(absent())));
        self
    }

    pub(crate) fn clients(&self) -> Clients {
        macro_rules! client {
            ($module:ident, $rules:expr) => {{
                let responses = MockResponseInterceptor::new().rule_mode(RuleMode::MatchAny);
                let responses = $rules
                    .iter()
                    .fold(responses, |responses, rule| responses.with_rule(rule));
                let retries = $module::config::retry::RetryConfig::standard().with_max_attempts(8);
                let keys = $module::config::Credentials::from_keys("key", "secret", None);
                let config = $module::config::Config::builder()
                    .behavior_version($module::config::BehaviorVersion::latest())
                    .region($module::config::Region::new("us-east-1"))
                    .credentials_provider(keys)
                    .retry_config(retries)
                    .http_client(create_mock_http_client())
                    .interceptor(responses);
                $module::Client::from_conf(config.build())
            }};
        }
        Clients {
            cloudformation: client!(aws_sdk_cloudformation, self.cloudformation),
            s3: client!(aws_sdk_s3, self.s3),
            dynamodb: client!(aws_sdk_dynamodb, self.dynamodb),
            cloudwatch: client!(aws_sdk_cloudwatch, self.cloudwatch),
            iam: client!(aws_sdk_iam, self.iam),
            lambda: client!(aws_sdk_lambda, self.lambda),
            logs: client!(aws_sdk_cloudwatchlogs, self.logs),
            sns: client!(aws_sdk_sns, self.sns),
            sqs: client!(aws_sdk_sqs, self.sqs),
            sts: client!(aws_sdk_sts, self.sts),
        }
    }
}

pub(crate) fn refusal(code: &'static str, message: &'static str) -> ErrorMetadata {
    ErrorMetadata::builder().code(code).message(message).build()
}

/// One look after the other at the stack: a status, or nothing for a stack that is not there. The last one stays.
pub(crate) fn looks(statuses: &'static [&'static str], tags: BTreeMap<String, String>) -> Rule {
    let at = AtomicUsize::new(0);
    mock!(Cfn::describe_stacks).then_compute_response(move |_| {
        let at = at.fetch_add(1, Ordering::SeqCst).min(statuses.len() - 1);
        match statuses[at] {
            "" => MockResponse::Error(DescribeStacksError::generic(refusal(
                "ValidationError",
                "Stack with id demo does not exist",
            ))),
            status => MockResponse::Output(
                DescribeStacksOutput::builder()
                    .stacks(described(status, &tags))
                    .build(),
            ),
        }
    })
}

pub(crate) fn described(status: &str, tags: &BTreeMap<String, String>) -> Stack {
    let tags = tags
        .iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect();
    let stack = Stack::builder()
        .stack_name(NAME)
        .stack_id(ID)
        .stack_status(StackStatus::from(status));
    stack
        .creation_time(DateTime::from_secs(1_790_000_000))
        .set_tags(Some(tags))
        .build()
}

/// A stack in this status with these outputs.
pub(crate) fn with_outputs(status: &str, tags: &BTreeMap<String, String>, outputs: &[(&str, &str)]) -> Rule {
    let outputs = outputs
        .iter()
        .map(|(key, value)| Output::builder().output_key(*key).output_value(*value).build());
    let mut stack = described(status, tags);
    stack.outputs = Some(outputs.collect());
    mock!(Cfn::describe_stacks)
        .then_output(move || DescribeStacksOutput::builder().stacks(stack.clone()).build())
}

pub(crate) fn template(body: &serde_json::Value) -> Rule {
    let body = body.to_string();
    mock!(Cfn::get_template).then_output(move || GetTemplateOutput::builder().template_body(&body).build())
}

/// Events, oldest first: resource, type, status and reason; the stack itself is [`NAME`].
pub(crate) fn history(events: &[(&str, &str, &str, &str)], token: &str) -> Rule {
    let events: Vec<_> = events
        .iter()
        .enumerate()
        .map(|(at, (id, kind, status, reason))| {
            let event = StackEvent::builder()
                .event_id(at.to_string())
                .logical_resource_id(*id)
                .stack_name(NAME);
            let kind = if *id == NAME {
                "AWS::CloudFormation::Stack"
            } else {
                kind
            };
            let event = event
                .resource_type(kind)
                .resource_status(ResourceStatus::from(*status));
            let reason = (!reason.is_empty()).then(|| (*reason).to_owned());
            let event = event
                .set_resource_status_reason(reason)
                .stack_id(ID)
                .client_request_token(token);
            event.timestamp(DateTime::from_secs(1_790_000_000)).build()
        })
        .rev()
        .collect();
    mock!(Cfn::describe_stack_events).then_output(move || {
        DescribeStackEventsOutput::builder()
            .set_stack_events(Some(events.clone()))
            .build()
    })
}

/// The events of an operation that one resource (its ID, type and reason) makes fail. The stack ends in `status`.
pub(crate) fn failure(
    operation: &str,
    (id, kind, reason): (&str, &str, &str),
    status: &str,
    token: &str,
) -> Rule {
    let (started, failed) = (format!("{operation}_IN_PROGRESS"), format!("{operation}_FAILED"));
    let events = [
        (NAME, "", started.as_str(), "User Initiated"),
        (id, kind, failed.as_str(), reason),
        (NAME, "", status, ""),
    ];
    history(&events, token)
}

/// A change set that can be created, described, executed and deleted.
pub(crate) fn change_set(changes: Vec<ResourceChange>) -> Vec<Rule> {
    let changes: Vec<_> = changes
        .into_iter()
        .map(|change| Change::builder().resource_change(change).build())
        .collect();
    let ready = mock!(Cfn::describe_change_set).then_output(move || {
        let output = DescribeChangeSetOutput::builder().status(ChangeSetStatus::CreateComplete);
        output
            .change_set_id(CHANGE_SET)
            .stack_id(ID)
            .set_changes(Some(changes.clone()))
            .build()
    });
    vec![made(), ready, executed(), discarded()]
}

pub(crate) fn made() -> Rule {
    mock!(Cfn::create_change_set).then_output(|| {
        CreateChangeSetOutput::builder()
            .id(CHANGE_SET)
            .stack_id(ID)
            .build()
    })
}

pub(crate) fn executed() -> Rule {
    mock!(Cfn::execute_change_set).then_output(|| ExecuteChangeSetOutput::builder().build())
}

pub(crate) fn discarded() -> Rule {
    mock!(Cfn::delete_change_set).then_output(|| DeleteChangeSetOutput::builder().build())
}

pub(crate) fn created() -> Rule {
    mock!(Cfn::create_stack).then_output(|| CreateStackOutput::builder().stack_id(ID).build())
}

pub(crate) fn deletion() -> Rule {
    mock!(Cfn::delete_stack).then_output(|| DeleteStackOutput::builder().build())
}

pub(crate) fn caller() -> Rule {
    mock!(aws_sdk_sts::Client::get_caller_identity).then_output(|| {
        let caller = GetCallerIdentityOutput::builder().account("123456789012");
        caller.arn("arn:aws:iam::123456789012:user/deployer").build()
    })
}

pub(crate) fn no_table() -> Rule {
    mock!(aws_sdk_dynamodb::Client::describe_table)
        .then_error(|| DescribeTableError::generic(refusal("ResourceNotFoundException", "no such table")))
}

pub(crate) fn no_resources() -> Rule {
    mock!(Cfn::describe_stack_resources).then_output(|| DescribeStackResourcesOutput::builder().build())
}

pub(crate) fn no_log_groups() -> Rule {
    mock!(aws_sdk_cloudwatchlogs::Client::describe_log_groups)
        .then_output(|| DescribeLogGroupsOutput::builder().build())
}

pub(crate) fn no_event_source_mappings() -> Rule {
    mock!(aws_sdk_lambda::Client::list_event_source_mappings)
        .then_output(|| ListEventSourceMappingsOutput::builder().build())
}
