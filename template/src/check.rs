//! Rules that every template must keep, including templates that an application has changed.
//!
//! They cover what keeps data safe, private and observed. What CloudFormation and cfn-lint report themselves, such as a
//! reference to nothing or an action that does not exist, is left to them. [`Model::allow`](crate::model::Model::allow)
//! makes an exception for a resource, with a reason.

use std::fmt;

use serde_json::Value;
use zae_limiter_schema::keys::attribute;

use crate::Template;
use crate::model::{LogicalId, Text, ids};

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)+) => {
        /// A rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $rule,)+
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$rule),+];

            /// The rule's name in messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)+
                }
            }
        }
    };
}

rules! {
    /// A table has point-in-time recovery.
    TableBackups = "table-backups",
    /// Tables and buckets are retained when they are removed or replaced, or the stack is deleted.
    DataKept = "data-kept",
    /// The limiter's table expires items by `ttl`.
    TableExpiry = "table-expiry",
    /// The limiter's table has a stream with old and new images.
    TableStream = "table-stream",
    /// A queue is encrypted.
    QueueEncrypted = "queue-encrypted",
    /// A queue accepts TLS only.
    QueueTls = "queue-tls",
    /// A queue keeps messages for 14 days.
    QueueRetention = "queue-retention",
    /// A function runs on `provided.al2023`, with an explicit architecture.
    FunctionRuntime = "function-runtime",
    /// A function logs to a log group of the template.
    FunctionLogs = "function-logs",
    /// A function has no secrets in its environment.
    FunctionSecrets = "function-secrets",
    /// An event source mapping says where failures go.
    MappingFailures = "mapping-failures",
    /// A bucket blocks public access.
    BucketPrivate = "bucket-private",
    /// A bucket is encrypted.
    BucketEncrypted = "bucket-encrypted",
    /// A bucket keeps versions.
    BucketVersioned = "bucket-versioned",
    /// A bucket accepts TLS only.
    BucketTls = "bucket-tls",
    /// A bucket aborts incomplete uploads; the archive moves to Glacier Instant Retrieval.
    BucketLifecycle = "bucket-lifecycle",
    /// A log group has a retention period.
    LogRetention = "log-retention",
    /// A policy allows actions by name, without wildcards.
    NamedActions = "named-actions",
    /// A policy names its resources.
    WildcardResource = "wildcard-resource",
    /// A role has no AWS managed policy.
    ManagedByAws = "managed-by-aws",
    /// A role has the permissions boundary of the options.
    RoleBoundary = "role-boundary",
    /// An alarm notifies the topic of the options.
    AlarmAction = "alarm-action",
    /// An alarm says what missing data means.
    AlarmSilence = "alarm-silence",
    /// Alarms cover throttling of the table and all its indexes.
    ThrottlesWatched = "throttles-watched",
    /// An output is exported under the stack's name.
    OutputExport = "output-export",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The resource or output.
    pub id: String,
    /// The part of it, such as an action or a variable.
    pub about: Option<String>,
    /// What must be changed.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.id, self.rule, self.problem)
    }
}

/// An exception from a rule, for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The rule.
    pub rule: Rule,
    /// The resource.
    pub id: LogicalId,
    /// The part of it; the whole resource if unset.
    pub about: Option<String>,
    /// Why.
    pub reason: String,
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        let about = self.about.is_none() || self.about == finding.about;
        self.rule == finding.rule && self.id.as_str() == finding.id && about
    }
}

/// What the options say about the template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The stack's name.
    pub stack: Text,
    /// Whether there is a topic for alarms.
    pub alarm_topic: bool,
    /// The permissions boundary of every role.
    pub boundary: Option<Text>,
}

/// Checks a template and reports what no exception covers.
pub fn check(template: &Template, facts: &Facts, exceptions: &[Exception]) -> Vec<Finding> {
    let mut check = Check {
        template,
        facts,
        findings: vec![],
    };
    for (id, resource) in template.resources() {
        let properties = &resource["Properties"];
        match resource["Type"].as_str().unwrap_or_default() {
            "AWS::DynamoDB::Table" => {
                check.retention(id, resource);
                check.table(id, properties);
            }
            "AWS::S3::Bucket" => {
                check.retention(id, resource);
                check.bucket(id, properties);
            }
            "AWS::SQS::Queue" => check.queue(id, properties),
            "AWS::Lambda::Function" => check.function(id, properties),
            "AWS::Lambda::EventSourceMapping" => check.mapping(id, properties),
            "AWS::Logs::LogGroup" => check.log_group(id, properties),
            "AWS::IAM::ManagedPolicy" | "AWS::IAM::Policy" => check.policy(id, &properties["PolicyDocument"]),
            "AWS::IAM::Role" => check.role(id, properties),
            "AWS::CloudWatch::Alarm" => check.alarm(id, properties),
            _ => {}
        }
    }
    check.throttles();
    check.outputs();
    let allowed = |finding: &Finding| exceptions.iter().any(|exception| exception.covers(finding));
    check.findings.retain(|finding| !allowed(finding));
    check.findings
}

struct Check<'a> {
    template: &'a Template,
    facts: &'a Facts,
    findings: Vec<Finding>,
}

const PUBLIC_ACCESS: [&str; 4] = [
    "BlockPublicAcls",
    "BlockPublicPolicy",
    "IgnorePublicAcls",
    "RestrictPublicBuckets",
];
/// 14 days in seconds.
const QUEUE_RETENTION: u64 = 1_209_600;
/// Parts of a variable's name that suggest a secret.
const SECRET_NAMES: [&str; 6] = [
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "TOKEN",
    "ACCESS_KEY",
    "PRIVATE_KEY",
];
/// Prefixes of AWS access key ids.
const SECRET_VALUES: [&str; 2] = ["AKIA", "ASIA"];

impl Check<'_> {
    /// Reports a problem unless the rule holds.
    fn require(&mut self, holds: bool, rule: Rule, id: &str, problem: impl Into<String>) {
        self.report(holds, rule, id, None, problem);
    }

    /// Reports a problem with one part of a resource unless the rule holds.
    fn require_of(&mut self, holds: bool, rule: Rule, id: &str, about: &str, problem: impl Into<String>) {
        self.report(holds, rule, id, Some(about.to_owned()), problem);
    }

    fn report(
        &mut self,
        holds: bool,
        rule: Rule,
        id: &str,
        about: Option<String>,
        problem: impl Into<String>,
    ) {
        if !holds {
            let (id, problem) = (id.to_owned(), problem.into());
            self.findings.push(Finding {
                rule,
                id,
                about,
                problem,
            });
        }
    }

    fn retention(&mut self, id: &str, resource: &Value) {
        let deletion = &resource["DeletionPolicy"];
        let kept = *deletion == "Retain" || *deletion == "RetainExceptOnCreate";
        let problem = "must have DeletionPolicy RetainExceptOnCreate and UpdateReplacePolicy Retain";
        self.require(
            kept && resource["UpdateReplacePolicy"] == "Retain",
            Rule::DataKept,
            id,
            problem,
        );
    }

    fn table(&mut self, id: &str, properties: &Value) {
        let backups = &properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"];
        let problem = "must have PointInTimeRecoveryEnabled";
        self.require(*backups == true, Rule::TableBackups, id, problem);
        if id == ids::TABLE.as_str() {
            let expiry = &properties["TimeToLiveSpecification"];
            let by_ttl = expiry["AttributeName"] == attribute::TTL && expiry["Enabled"] == true;
            let problem = "must have TimeToLiveSpecification on ttl";
            self.require(by_ttl, Rule::TableExpiry, id, problem);
            let images = properties["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES";
            let problem = "must have a stream with NEW_AND_OLD_IMAGES";
            self.require(images, Rule::TableStream, id, problem);
        }
    }

    fn bucket(&mut self, id: &str, properties: &Value) {
        let block = &properties["PublicAccessBlockConfiguration"];
        let private = PUBLIC_ACCESS.iter().all(|switch| block[*switch] == true);
        let problem = "must have all four of PublicAccessBlockConfiguration";
        self.require(private, Rule::BucketPrivate, id, problem);
        let encryption = list(&properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]);
        let problem = "must have BucketEncryption";
        self.require(!encryption.is_empty(), Rule::BucketEncrypted, id, problem);
        let versioned = properties["VersioningConfiguration"]["Status"] == "Enabled";
        let problem = "must have VersioningConfiguration";
        self.require(versioned, Rule::BucketVersioned, id, problem);
        let tls = self.denies_plain_http("AWS::S3::BucketPolicy", "Bucket", id);
        let problem = "must have a bucket policy that denies requests without TLS";
        self.require(tls, Rule::BucketTls, id, problem);
        let rules = list(&properties["LifecycleConfiguration"]["Rules"]);
        let enabled: Vec<_> = rules.iter().filter(|rule| rule["Status"] == "Enabled").collect();
        let aborts = enabled
            .iter()
            .any(|rule| !rule["AbortIncompleteMultipartUpload"].is_null());
        let problem = "must have AbortIncompleteMultipartUpload in its lifecycle";
        self.require(aborts, Rule::BucketLifecycle, id, problem);
        if id == ids::ARCHIVE_BUCKET.as_str() {
            let cold = enabled
                .iter()
                .flat_map(|rule| list(&rule["Transitions"]))
                .any(|transition| transition["StorageClass"] == "GLACIER_IR");
            let problem = "must move to GLACIER_IR in its lifecycle";
            self.require(cold, Rule::BucketLifecycle, id, problem);
        }
    }

    fn queue(&mut self, id: &str, properties: &Value) {
        let encrypted = properties["SqsManagedSseEnabled"] == true || !properties["KmsMasterKeyId"].is_null();
        let problem = "must have SqsManagedSseEnabled or KmsMasterKeyId";
        self.require(encrypted, Rule::QueueEncrypted, id, problem);
        let tls = self.denies_plain_http("AWS::SQS::QueuePolicy", "Queues", id);
        let problem = "must have a queue policy that denies requests without TLS";
        self.require(tls, Rule::QueueTls, id, problem);
        let kept = properties["MessageRetentionPeriod"] == QUEUE_RETENTION;
        let problem = "must keep messages for 14 days (1209600 seconds)";
        self.require(kept, Rule::QueueRetention, id, problem);
    }

    fn function(&mut self, id: &str, properties: &Value) {
        let known = matches!(list(&properties["Architectures"]), [one] if self.is_architecture(one));
        let native = properties["Runtime"] == "provided.al2023" && known;
        let problem = "must run on provided.al2023, on x86_64 or arm64";
        self.require(native, Rule::FunctionRuntime, id, problem);
        let log_group = target(&properties["LoggingConfig"]["LogGroup"]);
        let declared = self
            .of_type("AWS::Logs::LogGroup")
            .any(|(group, _)| Some(group) == log_group);
        let problem = "must log to a log group of the template (LoggingConfig)";
        self.require(declared, Rule::FunctionLogs, id, problem);
        let variables = properties["Environment"]["Variables"].as_object();
        for (name, value) in variables.into_iter().flatten() {
            let problem = format!("must not have a secret in the environment variable {name}");
            self.require_of(!is_secret(name, value), Rule::FunctionSecrets, id, name, problem);
        }
    }

    /// A processor that Lambda has, or a parameter that accepts nothing else.
    fn is_architecture(&self, value: &Value) -> bool {
        let is_known = |word: &Value| *word == "x86_64" || *word == "arm64";
        let parameter =
            target(value).map(|name| &self.template.to_value()["Parameters"][name]["AllowedValues"]);
        match parameter.map(list) {
            Some(words) => !words.is_empty() && words.iter().all(is_known),
            None => is_known(value),
        }
    }

    fn mapping(&mut self, id: &str, properties: &Value) {
        let destination = &properties["DestinationConfig"]["OnFailure"]["Destination"];
        let problem = "must say where failures go (DestinationConfig.OnFailure)";
        self.require(!destination.is_null(), Rule::MappingFailures, id, problem);
    }

    fn log_group(&mut self, id: &str, properties: &Value) {
        let expires = properties.get("RetentionInDays").is_some();
        self.require(expires, Rule::LogRetention, id, "must have RetentionInDays");
    }

    fn role(&mut self, id: &str, properties: &Value) {
        for policy in list(&properties["Policies"]) {
            self.policy(id, &policy["PolicyDocument"]);
        }
        for arn in list(&properties["ManagedPolicyArns"]) {
            let own = !arn.to_string().contains(":iam::aws:policy/");
            let problem =
                format!("must not use the AWS managed policy {arn}; list the actions that it needs");
            self.require(own, Rule::ManagedByAws, id, problem);
        }
        if let Some(boundary) = &self.facts.boundary {
            let bounded = properties["PermissionsBoundary"] == boundary.to_value();
            let problem = "must have the PermissionsBoundary of the options";
            self.require(bounded, Rule::RoleBoundary, id, problem);
        }
    }

    fn policy(&mut self, id: &str, document: &Value) {
        let statements = list(&document["Statement"]);
        for statement in statements
            .iter()
            .filter(|statement| statement["Effect"] == "Allow")
        {
            let positive = statement.get("NotAction").is_none() && statement.get("NotResource").is_none();
            let problem = "must use Action and Resource, not NotAction or NotResource";
            self.require(positive, Rule::NamedActions, id, problem);
            let everywhere = list(&statement["Resource"])
                .iter()
                .any(|resource| resource == "*");
            for action in list(&statement["Action"]) {
                let name = action.as_str().unwrap_or_default();
                let problem = format!("must allow actions by name, not {action}");
                self.require_of(!name.contains(['*', '?']), Rule::NamedActions, id, name, problem);
                let problem = format!("must name the resources of {action}");
                self.require_of(!everywhere, Rule::WildcardResource, id, name, problem);
            }
        }
    }

    fn alarm(&mut self, id: &str, properties: &Value) {
        let notifies = !self.facts.alarm_topic || !list(&properties["AlarmActions"]).is_empty();
        let problem = "must have an AlarmAction, since the options have a topic";
        self.require(notifies, Rule::AlarmAction, id, problem);
        let explicit = !properties["TreatMissingData"].is_null();
        let problem = "must say what missing data means (TreatMissingData)";
        self.require(explicit, Rule::AlarmSilence, id, problem);
    }

    fn throttles(&mut self) {
        let Some(table) = self.template.resource(&ids::TABLE) else {
            return;
        };
        // A stack without alarms, by its options, has nothing to cover.
        if self.of_type("AWS::CloudWatch::Alarm").next().is_none() {
            return;
        }
        let indexes = list(&table["Properties"]["GlobalSecondaryIndexes"]).iter();
        let indexes = indexes.filter_map(|index| index["IndexName"].as_str());
        for index in std::iter::once(None).chain(indexes.map(Some)) {
            for metric in ["ReadThrottleEvents", "WriteThrottleEvents"] {
                let watched = self
                    .of_type("AWS::CloudWatch::Alarm")
                    .any(|(_, alarm)| watches(&alarm["Properties"], metric, index));
                let of = index.unwrap_or("the table");
                let problem = format!("must have an alarm on {metric} of {of}");
                self.require(watched, Rule::ThrottlesWatched, ids::TABLE.as_str(), problem);
            }
        }
    }

    fn outputs(&mut self) {
        let outputs = self.template.to_value().get("Outputs").and_then(Value::as_object);
        for (id, output) in outputs.into_iter().flatten() {
            let named = starts_with_stack(&output["Export"]["Name"], self.facts);
            let problem = "must be exported under a name that starts with the stack's";
            self.require(named, Rule::OutputExport, id, problem);
        }
    }

    /// The resources of one type.
    fn of_type<'t>(&'t self, kind: &'t str) -> impl Iterator<Item = (&'t str, &'t Value)> {
        let resources = self.template.resources();
        resources.filter(move |(_, resource)| resource["Type"] == kind)
    }

    /// Whether a policy of type `kind` names `id` and denies everything that does not come by TLS.
    fn denies_plain_http(&self, kind: &str, subjects: &str, id: &str) -> bool {
        self.of_type(kind).any(|(_, policy)| {
            let properties = &policy["Properties"];
            let named = list(&properties[subjects])
                .iter()
                .any(|subject| target(subject) == Some(id));
            let statements = list(&properties["PolicyDocument"]["Statement"]);
            named && statements.iter().any(denies_without_tls)
        })
    }
}

fn denies_without_tls(statement: &Value) -> bool {
    let anyone = statement["Principal"] == "*" || statement["Principal"]["AWS"] == "*";
    let actions = list(&statement["Action"]).iter().filter_map(Value::as_str);
    let everything = actions.into_iter().any(|action| action.ends_with('*'));
    let insecure = &statement["Condition"]["Bool"]["aws:SecureTransport"];
    statement["Effect"] == "Deny" && anyone && everything && (*insecure == "false" || *insecure == false)
}

/// Whether an alarm, plain or computed, is about this metric of the table or of one of its indexes.
fn watches(alarm: &Value, name: &str, index: Option<&str>) -> bool {
    let computed = list(&alarm["Metrics"])
        .iter()
        .map(|query| &query["MetricStat"]["Metric"]);
    std::iter::once(alarm).chain(computed).any(|metric| {
        let dimension = |name: &str| {
            let mut dimensions = list(&metric["Dimensions"]).iter();
            dimensions
                .find(|dimension| dimension["Name"] == name)
                .map(|dimension| &dimension["Value"])
        };
        metric["MetricName"] == name
            && dimension("TableName").and_then(target) == Some(ids::TABLE.as_str())
            && dimension("GlobalSecondaryIndexName").and_then(Value::as_str) == index
    })
}

fn starts_with_stack(name: &Value, facts: &Facts) -> bool {
    let start = facts.stack.clone().then("-").to_value();
    let (name, start) = match &start {
        Value::String(start) => (name.as_str(), Some(start.as_str())),
        start => (name["Fn::Sub"].as_str(), start["Fn::Sub"].as_str()),
    };
    matches!((name, start), (Some(name), Some(start)) if name.starts_with(start))
}

fn is_secret(name: &str, value: &Value) -> bool {
    let name = name.to_ascii_uppercase();
    // A reference to a secret is not a secret.
    let literal = value.as_str();
    let telling = SECRET_NAMES.iter().any(|part| name.contains(part));
    literal.is_some_and(|text| telling || SECRET_VALUES.iter().any(|start| text.starts_with(start)))
}

/// The items of a list, or the single value in its place.
fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        Value::Null => &[],
        single => std::slice::from_ref(single),
    }
}

/// The logical id that `Ref` or `Fn::GetAtt` points at.
fn target(value: &Value) -> Option<&str> {
    let reference = value.get("Ref").or_else(|| value.get("Fn::GetAtt")?.get(0));
    reference.and_then(Value::as_str)
}
