//! Rules that every template keeps, ours and one that an application has changed.
//!
//! They look at the rendered template, so nothing that a patch does escapes them. A rule that does not fit a resource can
//! be [lifted for it](crate::model::Model::allow), with a reason.

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
    /// A table and a bucket stay when they are removed, replaced, or the stack is deleted.
    DataKept = "data-kept",
    /// The limiter's table lets items expire by `ttl`.
    TableExpiry = "table-expiry",
    /// The limiter's table has a stream with old and new images.
    TableStream = "table-stream",
    /// A queue is encrypted.
    QueueEncrypted = "queue-encrypted",
    /// A queue is reached by TLS only.
    QueueTls = "queue-tls",
    /// A queue keeps messages for 14 days.
    QueueRetention = "queue-retention",
    /// A function runs natively on `provided.al2023`, on a processor that is said.
    FunctionRuntime = "function-runtime",
    /// A function logs to a log group of the template.
    FunctionLogs = "function-logs",
    /// A function has no secrets in its environment.
    FunctionSecrets = "function-secrets",
    /// An event source mapping says where failures go.
    MappingFailures = "mapping-failures",
    /// A bucket is closed to the public.
    BucketPrivate = "bucket-private",
    /// A bucket is encrypted.
    BucketEncrypted = "bucket-encrypted",
    /// A bucket keeps versions.
    BucketVersioned = "bucket-versioned",
    /// A bucket is reached by TLS only.
    BucketTls = "bucket-tls",
    /// A bucket ends uploads that were never finished; the archive moves to Glacier Instant Retrieval.
    BucketLifecycle = "bucket-lifecycle",
    /// A log group drops old lines.
    LogRetention = "log-retention",
    /// A policy permits actions that exist, by their names.
    RealActions = "real-actions",
    /// A policy permits things on resources that it names.
    WildcardResource = "wildcard-resource",
    /// A role has no policy of AWS's making.
    ManagedByAws = "managed-by-aws",
    /// A role has the boundary that the options give.
    RoleBoundary = "role-boundary",
    /// An alarm tells the topic that the options give.
    AlarmAction = "alarm-action",
    /// An alarm says what missing data means.
    AlarmSilence = "alarm-silence",
    /// Throttling is watched for the table and all its indexes.
    ThrottlesWatched = "throttles-watched",
    /// An output is exported under the stack's name.
    OutputExport = "output-export",
    /// What is referred to is in the template.
    References = "references",
    /// CloudFormation takes the template: ids, numbers and size.
    Shape = "shape",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The resource or output, or `Template`.
    pub id: String,
    /// What in it, where that is not all of it: an action, a variable.
    pub about: Option<String>,
    /// What is the matter, and what must be.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.id, self.rule, self.problem)
    }
}

/// A rule that is lifted for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The rule.
    pub rule: Rule,
    /// The resource.
    pub id: LogicalId,
    /// What in it; all of it where nothing is said.
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

/// What the options promise of the template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The stack's name.
    pub stack: Text,
    /// Whether there is a topic for alarms.
    pub alarm_topic: bool,
    /// The boundary of every role.
    pub boundary: Option<Text>,
}

/// What is wrong with the template, except for what is allowed.
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
    /// Notes a problem unless the rule holds.
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

    /// Notes a problem with one thing in a resource unless the rule holds.
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
