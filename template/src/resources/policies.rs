//! Who may do what.

use zae_limiter_schema::bucket::Attr;
use zae_limiter_schema::keys::{SYSTEM_PARTITION, prefix};

use super::context::Context;
use super::ids::PolicyKind;
use crate::Error;
use crate::check::Rule;
use crate::model::dynamodb::Table;
use crate::model::iam::{Action, Condition, ManagedPolicy, PolicyDocument, Statement, actions};
use crate::model::logs::LogGroup;
use crate::model::sqs::Queue;
use crate::model::{Handle, LogicalId, Model, Pseudo, Text, arn};
use crate::options::{AcquirePolicy, StackOptions};

/// What the status of functions needs and cannot be limited to them.
const STATUS_OF_FUNCTIONS: [(&str, &str); 2] = [
    ("cloudwatch", "GetMetricStatistics"),
    ("lambda", "ListEventSourceMappings"),
];

/// The source and the type of the events that the aggregator sends when a quota reaches a threshold.
const EVENT_SOURCE: &str = "zae-limiter";
const EVENT_DETAIL_TYPE: &str = "Quota threshold crossed";

const LEADING_KEYS: &str = "dynamodb:LeadingKeys";

/// Adds the managed policies, if the stack has any, in the order of [`PolicyKind::ALL`].
pub(super) fn add(model: &mut Model, cx: &Context<'_>) -> Result<Vec<Handle<ManagedPolicy>>, Error> {
    if !cx.options.create_iam() {
        return Ok(vec![]);
    }
    let add = |policy: PolicyKind| {
        let managed = ManagedPolicy {
            managed_policy_name: cx.options.policy_name(&cx.name, policy),
            path: path(cx.options),
            description: description(policy),
            policy_document: document(policy, &cx.table, cx.options),
        };
        model.add(policy.id(), &managed)
    };
    let policies = PolicyKind::ALL.into_iter().map(add).collect::<Result<_, _>>()?;
    for (service, action) in STATUS_OF_FUNCTIONS {
        explain_wildcard(model, &PolicyKind::Read.id(), &format!("{service}:{action}"));
    }
    Ok(policies)
}

const fn description(policy: PolicyKind) -> &'static str {
    match policy {
        PolicyKind::Acquire => "Acquire, adjust and release rate limits",
        PolicyKind::Full => "Full access to the data of the rate limiter's table",
        PolicyKind::Read => "Read limits, buckets, usage and audit events",
    }
}

/// The document of a policy.
pub(super) fn document(policy: PolicyKind, table: &Handle<Table>, options: &StackOptions) -> PolicyDocument {
    let (items, indexes) = (vec![table.arn()], vec![table.index_arns()]);
    let query_index = || Statement::allow("Index", actions("dynamodb", &["Query"]), indexes);
    let mut statements = match policy {
        PolicyKind::Acquire => acquire(&items, options.acquire_policy()),
        PolicyKind::Full => {
            let operations = [
                "BatchGetItem",
                "BatchWriteItem",
                "ConditionCheckItem",
                "DeleteItem",
                "DescribeTable",
                "GetItem",
                "PutItem",
                "Query",
                "Scan",
                "UpdateItem",
            ];
            vec![
                Statement::allow("Table", actions("dynamodb", &operations), items),
                query_index(),
            ]
        }
        PolicyKind::Read => {
            let operations = ["BatchGetItem", "DescribeTable", "GetItem", "Query", "Scan"];
            let mut statements = vec![
                Statement::allow("Table", actions("dynamodb", &operations), items),
                query_index(),
            ];
            statements.extend(status(table));
            statements
        }
    };
    if let Some(key) = options.kms_key_arn() {
        let service = Text::from("dynamodb.")
            .then(Pseudo::Region)
            .then(".")
            .then(Pseudo::UrlSuffix);
        let use_key = Statement::allow("Key", use_of_key(), vec![key.as_str().into()]);
        statements.push(use_key.when(Condition::default().equals("kms:ViaService", service)));
    }
    PolicyDocument::new(statements)
}

/// What `zae-limiter status` reads besides the table: the stack, and of its functions the mappings, the lag and the depth of
/// the dead-letter queues.
fn status(table: &Handle<Table>) -> [Statement; 3] {
    let stack = Text::from("stack/").then(table.name()).then("/*");
    let queues = table.name().then("-*-dlq");
    [
        Statement::allow(
            "Stack",
            actions("cloudformation", &["DescribeStacks", "GetTemplate"]),
            vec![arn::of_region("cloudformation", stack)],
        ),
        Statement::allow(
            "DeadLetters",
            actions("sqs", &["GetQueueAttributes", "GetQueueUrl"]),
            vec![arn::of_region("sqs", queues)],
        ),
        Statement::allow(
            "Functions",
            STATUS_OF_FUNCTIONS
                .map(|(service, action)| Action::new(service, action))
                .to_vec(),
            vec!["*".into()],
        ),
    ]
}

/// `ForAllValues` without `Null`: every request for items has the key, and some local clouds do not know it.
fn acquire(items: &[Text], narrowness: AcquirePolicy) -> Vec<Statement> {
    let entities = format!("{}*", prefix::ENTITY);
    let resources = format!("{}*", prefix::RESOURCE);
    let readable = [entities.as_str(), resources.as_str(), SYSTEM_PARTITION];
    let writable = Condition::default().all_like(LEADING_KEYS, &[&entities]);
    let writable = match narrowness {
        AcquirePolicy::Keys => writable,
        AcquirePolicy::Attributes => {
            let attributes = Attr::patterns();
            let attributes: Vec<&str> = attributes.iter().map(String::as_str).collect();
            writable.all_like("dynamodb:Attributes", &attributes)
        }
    };
    vec![
        Statement::allow(
            "Read",
            actions("dynamodb", &["BatchGetItem", "GetItem"]),
            items.to_vec(),
        )
        .when(Condition::default().all_like(LEADING_KEYS, &readable)),
        Statement::allow("Consume", actions("dynamodb", &["UpdateItem"]), items.to_vec()).when(writable),
    ]
}

/// The aggregator's permission on the table, and on the event bus if there is one.
pub(super) fn count_usage(table: &Handle<Table>, options: &StackOptions) -> Vec<Statement> {
    let entities = format!("{}*", prefix::ENTITY);
    let usage = Statement::allow("Usage", actions("dynamodb", &["UpdateItem"]), vec![table.arn()])
        .when(Condition::default().all_like(LEADING_KEYS, &[&entities]));
    let bus = options.event_bus().map(|bus| {
        let bus = arn::of_region("events", format!("event-bus/{bus}"));
        send_events(vec![bus])
    });
    [usage].into_iter().chain(bus).collect()
}

/// The permission to send the events of quotas, and no others, to a bus.
pub(crate) fn send_events(buses: Vec<Text>) -> Statement {
    let condition = Condition::default()
        .all_like("events:source", &[EVENT_SOURCE])
        .all_like("events:detail-type", &[EVENT_DETAIL_TYPE]);
    Statement::allow("Events", actions("events", &["PutEvents"]), buses).when(condition)
}

/// The archiver's permission on its bucket.
pub(super) fn archive_events(bucket_arn: Text) -> Statement {
    Statement::allow(
        "Archive",
        actions("s3", &["PutObject"]),
        vec![bucket_arn.then("/audit/*")],
    )
}

/// The statements of a function: for its own data, and what both functions need.
pub(super) fn function(
    cx: &Context<'_>,
    data: Vec<Statement>,
    queue: &Handle<Queue>,
    log_group: &Handle<LogGroup>,
) -> Vec<Statement> {
    let read_stream = actions("dynamodb", &["DescribeStream", "GetRecords", "GetShardIterator"]);
    let write_log = actions("logs", &["CreateLogStream", "PutLogEvents"]);
    let mut statements = data;
    statements.extend([
        Statement::allow("Stream", read_stream, vec![cx.table.stream_arn()]),
        Statement::allow(
            "ListStreams",
            actions("dynamodb", &["ListStreams"]),
            vec!["*".into()],
        ),
        Statement::allow("DeadLetters", actions("sqs", &["SendMessage"]), vec![queue.arn()]),
        Statement::allow("Logs", write_log, vec![log_group.arn()]),
    ]);
    statements.extend(options_of_functions(cx.options));
    statements
}

/// The path of roles and policies.
pub(super) fn path(options: &StackOptions) -> Option<Text> {
    options.iam_path().map(|path| path.as_str().into())
}

/// What a function needs for the options of its network, tracing and key.
pub(super) fn options_of_functions(options: &StackOptions) -> Vec<Statement> {
    let mut statements = vec![];
    if !options.lambda_subnet_ids().is_empty() {
        statements.push(Statement::allow(
            "Network",
            actions("ec2", &NETWORK_ACTIONS),
            vec!["*".into()],
        ));
    }
    if options.enable_tracing() {
        let trace = actions("xray", &["PutTelemetryRecords", "PutTraceSegments"]);
        statements.push(Statement::allow("Tracing", trace, vec!["*".into()]));
    }
    if let Some(key) = options.kms_key_arn() {
        statements.push(Statement::allow("Key", use_of_key(), vec![key.as_str().into()]));
    }
    statements
}

/// What Lambda does for a function in a VPC, with its role. The interfaces do not exist yet, and describing has no resource.
const NETWORK_ACTIONS: [&str; 6] = [
    "AssignPrivateIpAddresses",
    "CreateNetworkInterface",
    "DeleteNetworkInterface",
    "DescribeNetworkInterfaces",
    "DescribeSubnets",
    "UnassignPrivateIpAddresses",
];

/// Makes exceptions for actions of a function's role that need `*` as their resource.
pub(super) fn explain_wildcards(model: &mut Model, role: &LogicalId, options: &StackOptions) {
    let statements = options_of_functions(options);
    let everywhere = statements
        .iter()
        .filter(|statement| statement.resources == ["*".into()]);
    for action in everywhere.flat_map(|statement| &statement.actions) {
        explain_wildcard(model, role, action.as_str());
    }
}

/// The same for a function that reads a stream.
pub(super) fn explain_wildcards_of_reader(model: &mut Model, role: &LogicalId, options: &StackOptions) {
    explain_wildcard(model, role, "dynamodb:ListStreams");
    explain_wildcards(model, role, options);
}

fn explain_wildcard(model: &mut Model, id: &LogicalId, action: &str) {
    model.allow_only(
        Rule::WildcardResource,
        id.clone(),
        action,
        "this action has no resource type",
    );
}

fn use_of_key() -> Vec<Action> {
    actions("kms", &["Decrypt", "GenerateDataKey"])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use zae_limiter_schema::bucket::{Field, SlotIndex};
    use zae_limiter_schema::keys::attribute;
    use zae_limiter_schema::{ConfigRecord, LimitName, LimitSet};

    fn is_allowed(name: &str) -> bool {
        Attr::patterns()
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *pattern,
            })
    }

    #[test]
    fn every_attribute_of_a_bucket_may_be_written_by_those_who_acquire() {
        let limit = LimitName::parse("tpm").unwrap();
        let mut attributes = Vec::from(Attr::FIXED.map(|(_, attribute)| attribute));
        attributes.push(Attr::Slot(SlotIndex::FIRST));
        attributes.extend(Field::ALL.map(|field| Attr::Limit(limit.clone(), field)));
        for attribute in attributes {
            assert!(is_allowed(&attribute.to_string()), "{attribute}");
        }
        assert!(is_allowed(attribute::PK) && is_allowed(attribute::SK));
    }

    #[test]
    fn limits_of_a_configuration_may_not_be_written_by_those_who_acquire() {
        let limits = ["tpm:10", "spend:5 per month", "parallel:8 at once for 10min"];
        let limits = LimitSet::new(limits.map(|limit| limit.parse().unwrap())).unwrap();
        for (name, _) in ConfigRecord::limit_attributes(&limits) {
            assert!(!is_allowed(&name), "{name}");
        }
        for other in [
            "config_version",
            "limits_format",
            "on_unavailable",
            "mode",
            "metadata",
        ] {
            assert!(!is_allowed(other), "{other}");
        }
    }
}
