//! Errors.

use std::path::PathBuf;
use std::time::Duration;

use zae_limiter_template::{Architecture, LambdaFunction};

use crate::cause::Cause;
use crate::cloud::failure::is_throttling;
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

    /// A function is enabled and has no code.
    #[error(
        "the {function} of stack {stack:?} has no code: {}; build the archives with `make functions` and set code_directory, build \
         the program with the feature bundled-functions, name archives in S3 (code_bucket and {function}_code_key), or set {} to false",
        if *deployed { "it is not deployed yet and no archive was given" } else { "the stack does not exist yet and no archive was given" },
        function.switch()
    )]
    CodeMissing {
        /// The function.
        function: LambdaFunction,
        /// The stack's name.
        stack: String,
        /// Whether the stack exists.
        deployed: bool,
    },

    /// An archive was not found.
    #[error(
        "the archive of the {function} was not found at {}; build it with `make functions`",
        paths(looked_at)
    )]
    ArchiveMissing {
        /// The function.
        function: LambdaFunction,
        /// The paths that were tried.
        looked_at: Vec<PathBuf>,
    },

    /// The program has no archive for the architecture of the options.
    #[error(
        "this program contains no {wanted} archive of the {function}: only the architectures that were there when it was built; build \
         them with `make functions ARCH={wanted}` and build the program again, or change lambda_architecture"
    )]
    NotCompiledIn {
        /// Whose.
        function: LambdaFunction,
        /// What the options name.
        wanted: Architecture,
    },

    /// The address or a checksum of a release cannot be one.
    #[error("the release cannot be used: {field} {value:?} {rule}")]
    ReleaseInvalid {
        /// What is wrong: `address` or `sha256`.
        field: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },

    /// An archive of a release cannot be downloaded.
    #[error("{address} cannot be downloaded: {problem}")]
    DownloadFailed {
        /// The archive.
        address: String,
        /// Why.
        problem: String,
    },

    /// An archive of a release is not the one that was expected. Nothing was deployed.
    #[error(
        "{address} has the SHA-256 {found}, and {expected} was expected; compare it with the release's .sha256 file"
    )]
    ReleaseDiffers {
        /// The archive.
        address: String,
        /// Its checksum.
        found: String,
        /// The checksum in the program.
        expected: String,
    },

    /// An archive cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    ArchiveUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// The file is not a zip archive.
    #[error("{origin} is not a zip archive; build the functions with `make functions`")]
    NotAnArchive {
        /// The file.
        origin: String,
    },

    /// An archive without a program.
    #[error(
        "the archive of the {function} does not begin with its program, a file named bootstrap; build it with `make functions`"
    )]
    NoProgram {
        /// Whose.
        function: LambdaFunction,
    },

    /// An archive for another processor.
    #[error(
        "the archive of the {function} is built for {found}, and the options have lambda_architecture {wanted}; build it with \
         `make functions ARCH={wanted}`, or set lambda_architecture to {found}"
    )]
    WrongArchitecture {
        /// Whose.
        function: LambdaFunction,
        /// What the program in the archive is built for.
        found: Architecture,
        /// What the options name.
        wanted: Architecture,
    },

    /// An archive for a processor that Lambda does not have.
    #[error(
        "the archive of the {function} is built for ELF machine {machine:#x}, which Lambda does not run; build it with \
         `make functions ARCH={wanted}`"
    )]
    UnknownMachine {
        /// Whose.
        function: LambdaFunction,
        /// The machine in the program's ELF header.
        machine: u16,
        /// What the options name.
        wanted: Architecture,
    },

    /// The options name another processor and there is no archive for it: none was given, or the options name the deployed one.
    #[error(
        "the {function} of stack {stack:?} runs on {deployed}, the options have lambda_architecture {wanted}, and no archive for \
         that was given; build it with `make functions ARCH={wanted}`, and if the options name archives in S3, use another key"
    )]
    ArchitectureChanged {
        /// Whose.
        function: LambdaFunction,
        /// The stack's name.
        stack: String,
        /// What it runs on now.
        deployed: String,
        /// What the options name.
        wanted: Architecture,
    },

    /// The bucket for archives belongs to another account, which could change the functions' code.
    #[error(
        "bucket {bucket} does not belong to account {account}, or s3:ListBucket on it is denied; allow it, or set code_bucket to a bucket \
         of the account"
    )]
    BucketTaken {
        /// The bucket.
        bucket: String,
        /// The caller's account.
        account: String,
    },

    /// The bucket in `code_bucket` does not exist.
    #[error("bucket {bucket} does not exist; create it, or unset code_bucket to use the default bucket")]
    BucketMissing {
        /// The bucket.
        bucket: String,
    },

    /// An object does not have the hash that its key states.
    #[error("{bucket}/{key} does not have the SHA-256 in its name; find out who wrote it and delete it")]
    ArtifactDiffers {
        /// The bucket.
        bucket: String,
        /// The object.
        key: String,
    },

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
    #[error("stack {stack:?} does not exist")]
    NoSuchStack {
        /// Its name.
        stack: String,
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
        /// The last answer of AWS.
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

fn paths(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| path.display()).collect();
    list(&shown, ", ")
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
