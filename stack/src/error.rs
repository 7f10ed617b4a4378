//! What can go wrong with a stack.

use std::path::PathBuf;
use std::time::Duration;

use zae_limiter_template::LambdaFunction;

use crate::cause::Cause;
use crate::guard::Refusal;
use crate::owner::Owner;
use crate::preflight::Finding;

/// Why a stack could not be looked at or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options make no template.
    #[error(transparent)]
    Template(#[from] zae_limiter_template::Error),

    /// The template has more bytes than a request can carry.
    #[error(
        "the template has {bytes} bytes and CloudFormation takes {most}; put some of the added resources into a stack of their own"
    )]
    TemplateTooLong {
        /// What it has.
        bytes: usize,
        /// What it may have.
        most: usize,
    },

    /// Nobody said where.
    #[error("no AWS region is configured; set AWS_REGION, or a region in the profile")]
    NoRegion,

    /// A permission is missing.
    #[error("not allowed: {action} on {resource}; AWS says: {message}")]
    Denied {
        /// The missing action, such as `cloudformation:CreateStack`.
        action: String,
        /// What it was to be done to.
        resource: String,
        /// What AWS said.
        message: String,
    },

    /// A call failed, throttled calls after many attempts.
    #[error("{action} on {resource} failed with {code}: {message}")]
    Call {
        /// What was called.
        action: &'static str,
        /// What it was to be done to.
        resource: String,
        /// AWS's code of the error.
        code: String,
        /// What AWS said.
        message: String,
    },

    /// A function is switched on, and there is no code for it.
    #[error(
        "the {function} of stack {stack:?} has no code: {}; build the archives with `make functions` and give their directory \
         (code_directory), name archives in S3 (code_bucket and {function}_code_key), or set {} to false",
        if *deployed { "it is not deployed yet and no archive was given" } else { "the stack does not exist yet and no archive was given" },
        function.switch()
    )]
    CodeMissing {
        /// Which one.
        function: LambdaFunction,
        /// The stack's name.
        stack: String,
        /// Whether there is a stack.
        deployed: bool,
    },

    /// There is no archive where it must be.
    #[error(
        "the archive of the {function} is not there, looked at {}; build it with `make functions`",
        list(looked_at, ", ")
    )]
    ArchiveMissing {
        /// Whose.
        function: LambdaFunction,
        /// Paths.
        looked_at: Vec<PathBuf>,
    },

    /// An archive cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    ArchiveUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// A file that is no zip.
    #[error("{origin} is no zip archive; build the functions with `make functions`")]
    NotAnArchive {
        /// What was read.
        origin: String,
    },

    /// The bucket for archives belongs to somebody else, who could change the functions' code.
    #[error(
        "bucket {bucket} does not belong to account {account}, or s3:ListBucket on it is not allowed; allow that, or name a bucket of the \
         account by code_bucket"
    )]
    BucketTaken {
        /// The bucket.
        bucket: String,
        /// The caller's account.
        account: String,
    },

    /// A bucket was named that is not there.
    #[error("there is no bucket {bucket}; create it, or leave code_bucket unset to have one made")]
    BucketMissing {
        /// The bucket.
        bucket: String,
    },

    /// Something else is stored under an archive's hash.
    #[error("{bucket}/{key} is not the archive that its name says; find out who wrote it and delete it")]
    ArtifactDiffers {
        /// The bucket.
        bucket: String,
        /// The object.
        key: String,
    },

    /// The stack is not ours to change.
    #[error(
        "stack {stack:?} was made by {owner} and is left alone; {}",
        match owner {
            Owner::Peer => "choose another name, or export its data and delete it first",
            _ => "choose another name",
        }
    )]
    NotOurs {
        /// Its name.
        stack: String,
        /// Whose it is.
        owner: Owner,
    },

    /// A stack that does not tell its options in a way that this release understands.
    #[error(
        "the options that stack {stack:?} was deployed with are not known: {reason}; deploy it with options that say all"
    )]
    OptionsUnknown {
        /// Its name.
        stack: String,
        /// Why.
        reason: String,
    },

    /// There is no such stack.
    #[error("there is no stack {stack:?}")]
    NoSuchStack {
        /// Its name.
        stack: String,
    },

    /// The table that would be taken in is part of another stack.
    #[error("table {table:?} belongs to stack {owner:?}; choose another name for this stack")]
    TableOwned {
        /// The table.
        table: String,
        /// The other stack.
        owner: String,
    },

    /// The table that would be taken in is not as ours must be.
    #[error(
        "table {table:?} exists and does not fit: {}; rename the stack, or delete or change the table",
        list(misfits, ", ")
    )]
    TableMisfits {
        /// The table.
        table: String,
        /// What does not fit.
        misfits: Vec<String>,
    },

    /// CloudFormation would make a table where there is one.
    #[error("table {table:?} exists, but CloudFormation would not import it ({reason}); nothing was changed")]
    NotImported {
        /// The table.
        table: String,
        /// What it says.
        reason: String,
    },

    /// The change would lose data, or cannot be made.
    #[error("refused, nothing was changed: {}", list(refusals, "; "))]
    Guarded {
        /// Each of them.
        refusals: Vec<Refusal>,
    },

    /// Something is in the way of the change; nothing was touched.
    #[error("before anything was changed, {} found: {}", count(findings.len()), list(findings, "; "))]
    Preflight {
        /// All of it.
        findings: Vec<Finding>,
    },

    /// CloudFormation could not make a change set.
    #[error("CloudFormation refused the change: {reason}")]
    ChangeSet {
        /// What it says.
        reason: String,
    },

    /// What holds data cannot be deleted; nothing was touched.
    #[error("refused, nothing was deleted: {}", list(obstacles, "; "))]
    NotPurgeable {
        /// Each thing that cannot be deleted, why, and what to do.
        obstacles: Vec<String>,
    },

    /// The stack is gone, but not all that was to be deleted with it.
    #[error(
        "the stack is gone, but {} stays: {source}; repair that and purge again, or delete it yourself",
        list(left, ", ")
    )]
    PurgeIncomplete {
        /// What is left, table or bucket by name.
        left: Vec<String>,
        /// The first failure.
        source: Box<Error>,
    },

    /// An operation failed and was rolled back.
    #[error("stack {stack:?} is in {status}: {}{}", cause_or(cause.as_deref()), after(advice))]
    Failed {
        /// The stack.
        stack: String,
        /// Its status.
        status: String,
        /// The first failure.
        cause: Option<Box<Cause>>,
        /// How to go on.
        advice: String,
    },

    /// The same update was rolled back before.
    #[error("this very change of stack {stack:?} was rolled back before: {}; change the options, or ask for another try (`--retry-rolled-back`)", cause_or(cause.as_deref()))]
    RolledBackBefore {
        /// The stack.
        stack: String,
        /// The first failure.
        cause: Option<Box<Cause>>,
    },

    /// There is no failed rollback to go on with.
    #[error(
        "stack {stack:?} is in {status}, and no rollback of it has failed; leave --continue-rollback out"
    )]
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
        /// What has changed.
        why: String,
    },

    /// A plan that is none.
    #[error("the plan cannot be used: {reason}; plan again")]
    PlanUnreadable {
        /// Why.
        reason: String,
    },

    /// It takes longer than allowed. The operation goes on; looking again later attaches to it.
    #[error("stack {stack:?} is still in {status} after {} seconds; the operation goes on, try again later", after.as_secs())]
    TimedOut {
        /// The stack.
        stack: String,
        /// Its status.
        status: String,
        /// The time allowed.
        after: Duration,
    },
}

fn list<T: Show>(items: &[T], separator: &str) -> String {
    items.iter().map(Show::show).collect::<Vec<_>>().join(separator)
}

fn count(findings: usize) -> String {
    if findings == 1 {
        "a problem was".to_owned()
    } else {
        format!("{findings} problems were")
    }
}

fn cause_or(cause: Option<&Cause>) -> String {
    cause.map_or_else(|| "its events tell no cause".to_owned(), ToString::to_string)
}

fn after(advice: &str) -> String {
    if advice.is_empty() {
        String::new()
    } else {
        format!("; {advice}")
    }
}

trait Show {
    fn show(&self) -> String;
}

impl Show for PathBuf {
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Show for String {
    fn show(&self) -> String {
        self.clone()
    }
}

impl Show for Refusal {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for Finding {
    fn show(&self) -> String {
        self.to_string()
    }
}
