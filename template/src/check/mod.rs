//! Rules that every template must keep, including those that an application has changed.
//!
//! They check the rendered template, so they see the effect of every patch. [`Model::allow`](crate::model::Model::allow) makes an
//! exception for a resource, with a reason.

mod alarms;
mod buckets;
mod functions;
mod iam;
mod logs;
mod properties;
mod queues;
mod references;
mod shape;
mod tables;

use std::fmt;

use crate::Template;
use crate::model::{LogicalId, Text};

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
    /// A policy allows existing actions, by name.
    RealActions = "real-actions",
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
    /// References have targets.
    References = "references",
    /// The template fits CloudFormation's limits.
    Shape = "shape",
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
    /// The resource or output, or `Template`.
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
    let mut findings = Findings::default();
    tables::check(template, &mut findings);
    queues::check(template, &mut findings);
    functions::check(template, &mut findings);
    buckets::check(template, &mut findings);
    logs::check(template, &mut findings);
    iam::check(template, facts, &mut findings);
    alarms::check(template, facts, &mut findings);
    references::check(template, &mut findings);
    shape::check(template, facts, &mut findings);
    let allowed = |finding: &Finding| exceptions.iter().any(|exception| exception.covers(finding));
    findings
        .0
        .into_iter()
        .filter(|finding| !allowed(finding))
        .collect()
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    /// Reports a problem unless the rule holds.
    fn require(&mut self, holds: bool, rule: Rule, id: &str, problem: impl Into<String>) {
        if !holds {
            self.0.push(Finding {
                rule,
                id: id.to_owned(),
                about: None,
                problem: problem.into(),
            });
        }
    }

    /// Reports a problem with one part of a resource unless the rule holds.
    fn require_of(&mut self, holds: bool, rule: Rule, id: &str, about: &str, problem: impl Into<String>) {
        if !holds {
            let about = Some(about.to_owned());
            self.0.push(Finding {
                rule,
                id: id.to_owned(),
                about,
                problem: problem.into(),
            });
        }
    }
}
