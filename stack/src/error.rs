//! Errors.

use std::time::Duration;

use crate::cause::Cause;
use crate::cloud::failure::is_throttling;
use crate::code::CodeError;
use crate::guard::Refusal;
use crate::owner::Owner;
use crate::preflight::Finding;

/// Why an operation on a stack failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options cannot be rendered to a template.
    #[error(transparent)]
    Template(#[from] zae_limiter_template::Error),

    /// The template is larger than CloudFormation accepts.
    #[error(
        "the template has {bytes} bytes and CloudFormation accepts {most}; move added resources to a stack of their own"
    )]
    TemplateTooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },

    /// No region is configured.
    #[error("no AWS region is configured; set AWS_REGION, or a region in the profile")]
    NoRegion,

    /// A permission is missing.
    #[error("access denied: {action} on {resource}; AWS says: {message}")]
    Denied {
        /// The missing action, such as `cloudformation:CreateStack`.
        action: String,
        /// The resource.
        resource: String,
        /// The message from AWS.
        message: String,
    },

    /// A call failed after all retries.
    #[error("{action} on {resource} failed with {code}: {message}")]
    Call {
        /// The action.
        action: &'static str,
        /// The resource.
        resource: String,
        /// The error code from AWS.
        code: String,
        /// The message from AWS.
        message: String,
    },

    /// The code of a function is missing, or cannot be used.
    #[error(transparent)]
    Code(#[from] CodeError),

    /// The stack was not created by this project.
    #[error(
        "stack {stack:?} was created by {owner} and was not changed; {}",
        match owner {
            Owner::Peer => "choose another name, or export its data and delete it first",
            _ => "choose another name",
        }
    )]
    NotOurs {
        /// Its name.
        stack: String,
        /// Its owner.
        owner: Owner,
    },

    /// The stack does not store its options, or this release cannot read them.
    #[error("the options of stack {stack:?} cannot be read: {reason}; deploy it with complete options")]
    OptionsUnknown {
        /// Its name.
        stack: String,
        /// Why.
        reason: String,
    },

    /// The stack does not exist.
    #[error("stack {stack:?} does not exist in {place}")]
    NoSuchStack {
        /// Its name.
        stack: String,
        /// Where it was looked for: the region and, if it is known, the account.
        place: String,
    },

    /// The table to import belongs to another stack.
    #[error("table {table:?} belongs to stack {owner:?}; choose another name for this stack")]
    TableOwned {
        /// The table.
        table: String,
        /// The other stack.
        owner: String,
    },

    /// Terraform manages the table.
    #[error(
        "Terraform manages table {table:?}, and it stays as it is; choose another name, or remove the table from Terraform's state and \
         its tag ManagedBy"
    )]
    TableManaged {
        /// The table.
        table: String,
    },

    /// The table to import does not fit the template.
    #[error(
        "table {table:?} exists and does not fit: {}; choose another stack name, or delete or change the table",
        list(misfits, ", ")
    )]
    TableMisfits {
        /// The table.
        table: String,
        /// The differences.
        misfits: Vec<String>,
    },

    /// CloudFormation would not import the existing table.
    #[error("table {table:?} exists, but CloudFormation would not import it ({reason}); nothing was changed")]
    NotImported {
        /// The table.
        table: String,
        /// The reason that CloudFormation gives.
        reason: String,
    },

    /// The change would lose data, or is impossible.
    #[error("refused, nothing was changed: {}", list(refusals, "; "))]
    Guarded {
        /// Why, for each resource.
        refusals: Vec<Refusal>,
    },

    /// The checks before the change found problems; nothing was changed.
    #[error("nothing was changed: {}", list(findings, "; "))]
    Preflight {
        /// All problems.
        findings: Vec<Finding>,
    },

    /// CloudFormation could not create the change set.
    #[error("CloudFormation refused the change: {reason}")]
    ChangeSet {
        /// The reason that CloudFormation gives.
        reason: String,
    },

    /// Something would make the deletion fail; nothing was deleted.
    #[error("refused, nothing was deleted: {}", list(obstacles, "; "))]
    NotDeletable {
        /// Each resource, why it cannot be deleted, and what to do.
        obstacles: Vec<String>,
    },

    /// The stack was deleted, but a resource could not be purged.
    #[error(
        "the stack was deleted, but not {}: {source}; repair that and purge again, or delete it manually",
        list(left, ", ")
    )]
    PurgeIncomplete {
        /// The tables and buckets that are left.
        left: Vec<String>,
        /// The first failure.
        source: Box<Error>,
    },

    /// Another tool deploys this stack.
    #[error(
        "stack {stack:?} was not changed: another tool seems to deploy it, because {reason}; change it with that tool, or take it \
         over (`--adopt`)"
    )]
    ManagedElsewhere {
        /// The stack.
        stack: String,
        /// What shows it.
        reason: String,
    },

    /// The stack does not match, in [`Mode::RequireExact`](crate::Mode::RequireExact).
    #[error("stack {stack:?} differs: {}", list(differences, "; "))]
    Differs {
        /// The stack.
        stack: String,
        /// Each difference.
        differences: Vec<String>,
    },

    /// An operation failed.
    #[error("stack {stack:?} is in {status}: {}{}", cause_or(cause.as_deref()), after(advice))]
    Failed {
        /// The stack.
        stack: String,
        /// Its status.
        status: String,
        /// The first failure.
        cause: Option<Box<Cause>>,
        /// What to do.
        advice: String,
    },

    /// The same change was rolled back before.
    #[error("this very change of stack {stack:?} was rolled back before: {}; change the options, or retry it (`--retry-rolled-back`)", cause_or(cause.as_deref()))]
    RolledBackBefore {
        /// The stack.
        stack: String,
        /// The first failure.
        cause: Option<Box<Cause>>,
    },

    /// There is no failed rollback to continue.
    #[error("stack {stack:?} is in {status}: there is no failed rollback; omit --continue-rollback")]
    NoRollback {
        /// The stack.
        stack: String,
        /// Its status.
        status: String,
    },

    /// The stack has changed since the plan was made.
    #[error("the plan for stack {stack:?} is obsolete: {why}; plan again")]
    PlanObsolete {
        /// The stack.
        stack: String,
        /// What changed.
        why: String,
    },

    /// The plan is not valid.
    #[error("the plan cannot be used: {reason}; plan again")]
    PlanUnreadable {
        /// Why.
        reason: String,
    },

    /// The time limit was reached. The operation continues in AWS; a later call attaches to it.
    #[error("time ran out after {} seconds: stack {stack:?} is still in {status}; the operation continues, try again later", after.as_secs())]
    TimedOut {
        /// The stack.
        stack: String,
        /// Its status.
        status: String,
        /// The time limit.
        after: Duration,
    },

    /// The time limit was reached while AWS throttled a call. An operation that was started continues in AWS.
    #[error("time ran out after {} seconds because AWS throttles calls: {source}; try again later", after.as_secs())]
    Throttled {
        /// The time limit.
        after: Duration,
        /// The last response of AWS.
        source: Box<Error>,
    },
}

impl Error {
    /// Whether AWS throttled the call: it succeeds later.
    pub(crate) fn throttled(&self) -> bool {
        matches!(self, Self::Call { code, .. } if is_throttling(code))
    }
}

fn list(items: &[impl ToString], separator: &str) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(separator)
}

fn cause_or(cause: Option<&Cause>) -> String {
    cause.map_or_else(|| "its events give no cause".to_owned(), ToString::to_string)
}

fn after(advice: &str) -> String {
    if advice.is_empty() {
        String::new()
    } else {
        format!("; {advice}")
    }
}
