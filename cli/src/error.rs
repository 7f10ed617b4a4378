//! Errors: one line that says what happened, why, and what to do next.

use std::error::Error as StdError;

use zae_limiter_function::{CallError, Remedy};

use crate::connect::Place;
use crate::exit::Exit;
use crate::file_lines::line_of;
use crate::output::{Format, Terminal};
use zae_limiter::error::{Conflict, Internal, Invalid, NotFound};

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    #[error("{}", crate::connect::explain(source))]
    Limiter {
        #[from]
        source: zae_limiter::Error,
    },

    #[error("{}", crate::connect::explain_stack(source))]
    Stack {
        #[from]
        source: zae_limiter::stack::Error,
    },

    #[error(transparent)]
    Template {
        #[from]
        source: zae_limiter_template::Error,
    },

    #[error(transparent)]
    Server {
        #[from]
        source: zae_limiter_server::Error,
    },

    #[error(
        "{}; it would be a new stack in {place}",
        crate::connect::explain_stack(source)
    )]
    NewStack {
        source: Box<zae_limiter::stack::Error>,
        place: Place,
    },

    #[error("{error} ({place})")]
    Unreachable { error: Box<Error>, place: Place },

    #[error("{message}")]
    Usage { message: String },

    #[error("{what} could not be {doing}: {source}")]
    Io {
        what: String,
        doing: &'static str,
        source: std::io::Error,
    },

    #[error("{} is invalid: {}", file.display(), mistakes.join("; "))]
    Manifest {
        file: std::path::PathBuf,
        /// Each with its line, its name and what is wrong.
        mistakes: Vec<String>,
    },

    #[error("{}", mistakes_text(mistakes))]
    Options { mistakes: Vec<String> },

    #[error(
        "no AWS region is set; pass --region, or set AWS_REGION or a region in the AWS profile; --embedded FILE needs none of them"
    )]
    NoRegion,

    #[error("{operation} on table {table} failed: {problem}")]
    TableCall {
        operation: &'static str,
        table: String,
        problem: String,
        source: Box<dyn StdError + Send + Sync>,
    },

    #[error(
        "{stack} in {place} has no audit archive; enable it with `zae-limiter deploy -n {stack} --enable-audit-archival` or in \
         its Terraform module, or pass --bucket"
    )]
    NoArchive { stack: String, place: Place },

    #[error(
        "writing to bucket {bucket} was denied: {problem}; check --bucket, that the bucket exists in this region, and \
         that the credentials allow s3:PutObject on {bucket}/audit/*"
    )]
    ArchiveDenied { bucket: String, problem: String },

    #[error(
        "writing to bucket {bucket} failed: {problem}; {archived} events are archived; run the command again to \
         archive the rest"
    )]
    ArchiveUnavailable {
        bucket: String,
        archived: u64,
        problem: String,
    },

    #[error(
        "{stack} in {place} has no aggregator; enable it with `zae-limiter deploy -n {stack} --enable-aggregator` or in its \
         Terraform module, or pass --function"
    )]
    NoAggregator { stack: String, place: Place },

    #[error(
        "Terraform manages table {table} in {place}, and there is no stack; `terraform plan` shows what differs, `terraform output` the \
         outputs, and changes belong into the call of its module"
    )]
    OfTerraform { table: String, place: Place },

    #[error("the settings of function {function} cannot be read: {problem}")]
    FunctionSettings { function: String, problem: String },

    #[error("dead letters of {queue} could not be counted: {failure}")]
    Redrive { queue: String, failure: CallError },

    #[error("{message}")]
    Local { message: String },

    #[error("not confirmed; nothing was changed")]
    NotConfirmed,

    #[error("{left} adjustments or refunds could not be written: {reason}")]
    Unwritten { left: u64, reason: String },

    #[error("{what}; this is a bug, please report it")]
    Internal {
        what: String,
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
        }
    }

    pub(crate) fn local(message: impl Into<String>) -> Self {
        Self::Local {
            message: message.into(),
        }
    }

    pub(crate) fn reading(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io {
            what,
            doing: "read",
            source,
        }
    }

    pub(crate) fn writing(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io {
            what,
            doing: "written",
            source,
        }
    }

    /// Whether something was looked for in the caller's account and region, and is not there.
    pub(crate) fn is_about_a_place(&self) -> bool {
        use zae_limiter::stack::{CodeError, Error as Stack};
        match self {
            Self::Limiter { source } => {
                matches!(source, zae_limiter::Error::NotFound(NotFound::Table { .. }))
            }
            Self::Stack { source } => matches!(
                source,
                Stack::NoSuchStack { .. } | Stack::Code(CodeError::Missing { deployed: false, .. })
            ),
            _ => false,
        }
    }

    /// Whether nothing responded, so that the endpoint or the region may be wrong.
    pub(crate) fn is_unreachable(&self) -> bool {
        use zae_limiter::error::Unavailable;
        match self {
            Self::Limiter { source } => {
                let no_response = matches!(
                    source,
                    zae_limiter::Error::Unavailable(Unavailable::NoResponse { .. })
                );
                no_response && crate::connect::is_unavailable(source)
            }
            Self::Stack { source } => crate::connect::is_unreachable(source),
            _ => false,
        }
    }

    /// The same error with account, region and endpoint.
    pub(crate) fn in_place(self, place: Place) -> Self {
        use zae_limiter::stack::Error as Stack;
        match self {
            Self::Limiter {
                source: zae_limiter::Error::NotFound(NotFound::Table { table, .. }),
            } => {
                let place = place.to_string();
                zae_limiter::Error::NotFound(NotFound::Table { table, place }).into()
            }
            Self::Stack {
                source: Stack::NoSuchStack { stack, .. },
            } => {
                let place = place.to_string();
                Stack::NoSuchStack { stack, place }.into()
            }
            Self::Stack { source } => Self::NewStack {
                source: Box::new(source),
                place,
            },
            other => other,
        }
    }

    /// The mistakes of a limits file, each with its line.
    pub(crate) fn manifest(
        file: &std::path::Path,
        text: &str,
        invalid: &zae_limiter_limits::InvalidFields,
    ) -> Self {
        let mistakes = invalid
            .fields
            .iter()
            .map(|field| match line_of(text, &field.path) {
                Some(line) => format!("line {line}: {field}"),
                None => field.to_string(),
            });
        Self::Manifest {
            file: file.to_owned(),
            mistakes: mistakes.collect(),
        }
    }

    /// The error of a limits file.
    pub(crate) fn of_limits(file: &std::path::Path) -> impl FnOnce(zae_limiter_limits::Error) -> Self {
        use zae_limiter_limits::Error as Limits;
        move |error| match error {
            Limits::Invalid(invalid) => Self::manifest(file, "", &invalid),
            Limits::Limiter(source) => source.into(),
            Limits::Concurrent { .. } => Self::usage(
                "another process has applied a limits file to this table; run `zae-limiter limits plan` again",
            ),
            other => Self::usage(other.to_string()),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        use zae_limiter::Error as Limiter;
        match self {
            Self::Unreachable { error, .. } => error.exit(),
            Self::Limiter { source } if crate::connect::is_unavailable(source) => Exit::Unavailable,
            Self::Limiter { source } => match source {
                Limiter::Refused(_) => Exit::Limited,
                Limiter::Invalid(Invalid::Name(_) | Invalid::Limit(_) | Invalid::Argument { .. }) => {
                    Exit::Usage
                }
                _ => Exit::Error,
            },
            Self::Stack { source } => match source {
                zae_limiter::stack::Error::Template(_) => Exit::Usage,
                source if crate::connect::is_unreachable(source) => Exit::Unavailable,
                _ => Exit::Error,
            },
            Self::Usage { .. }
            | Self::Manifest { .. }
            | Self::Options { .. }
            | Self::NoRegion
            | Self::Template { .. }
            | Self::Server {
                source: zae_limiter_server::Error::TokensRequired { .. },
            } => Exit::Usage,
            Self::ArchiveUnavailable { .. } => Exit::Unavailable,
            Self::Redrive { failure, .. } if failure.is_transient() => Exit::Unavailable,
            _ => Exit::Error,
        }
    }

    /// The error kind, for programs.
    pub(crate) fn kind(&self) -> &'static str {
        use zae_limiter::Error as Limiter;
        use zae_limiter::stack::{CodeError, Error as Stack};
        match self {
            Self::Limiter { source } => match source {
                Limiter::Invalid(Invalid::Name(_) | Invalid::Limit(_) | Invalid::Argument { .. }) => {
                    "invalid_argument"
                }
                Limiter::Refused(_) => "rate_limit_exceeded",
                Limiter::Conflict(Conflict::EntityExists { .. }) => "entity_exists",
                Limiter::NotFound(NotFound::Entity { .. } | NotFound::Parent { .. }) => "entity_not_found",
                Limiter::Conflict(
                    Conflict::ParentCycle { .. }
                    | Conflict::TooManyParents { .. }
                    | Conflict::HasChildren { .. },
                ) => "hierarchy",
                Limiter::NotFound(NotFound::Limits { .. }) => "no_limits",
                Limiter::NotFound(NotFound::Prices { .. }) => "no_prices",
                Limiter::NotFound(NotFound::Table { .. }) => "table_missing",
                Limiter::PermissionDenied { .. } => "denied",
                Limiter::Disabled { .. } => "disabled",
                Limiter::Conflict(Conflict::KeyReused { .. }) => "idempotency_key_reused",
                Limiter::Conflict(Conflict::Concurrent { .. } | Conflict::ModeChanged { .. }) => "contended",
                source if crate::connect::is_unavailable(source) => "unavailable",
                Limiter::Internal(Internal::IncompatibleSchema { .. }) => "incompatible_schema",
                _ => "failed",
            },
            Self::Stack { source } => match source {
                Stack::Template(_) => "invalid_options",
                Stack::Denied { .. } => "denied",
                source if crate::connect::is_without_credentials(source) => "denied",
                Stack::NoSuchStack { .. } => "stack_missing",
                Stack::Guarded { .. }
                | Stack::NotOurs { .. }
                | Stack::NotDeletable { .. }
                | Stack::ManagedElsewhere { .. }
                | Stack::Differs { .. }
                | Stack::RolledBackBefore { .. }
                | Stack::OptionsUnknown { .. }
                | Stack::TableManaged { .. }
                | Stack::Preflight { .. } => "refused",
                Stack::PlanObsolete { .. } | Stack::PlanUnreadable { .. } => "plan_obsolete",
                Stack::Code(CodeError::Missing { .. } | CodeError::ArchiveMissing { .. }) => "code_missing",
                source if crate::connect::is_unreachable(source) => "unavailable",
                _ => "stack_failed",
            },
            Self::NewStack { .. } => "code_missing",
            Self::Unreachable { error, .. } => error.kind(),
            Self::Template { .. } | Self::Options { .. } => "invalid_options",
            Self::Server { source } => match source {
                zae_limiter_server::Error::TokensRequired { .. } => "invalid_argument",
                _ => "io",
            },
            Self::Usage { .. } | Self::NoRegion => "invalid_argument",
            Self::Manifest { .. } => "invalid_manifest",
            Self::NotConfirmed => "not_confirmed",
            Self::NoArchive { .. } => "archive_missing",
            Self::ArchiveDenied { .. } => "denied",
            Self::ArchiveUnavailable { .. } => "unavailable",
            Self::NoAggregator { .. } => "aggregator_missing",
            Self::OfTerraform { .. } => "stack_missing",
            Self::Redrive { failure, .. } => match Remedy::of(failure) {
                Remedy::Redelivery => "unavailable",
                Remedy::Repair => "denied",
                Remedy::DeadLetter => "failed",
            },
            Self::Io { .. } => "io",
            Self::Internal { .. } => "internal",
            Self::TableCall { .. }
            | Self::FunctionSettings { .. }
            | Self::Local { .. }
            | Self::Unwritten { .. } => "failed",
        }
    }

    /// The error as printed: one line for people or a JSON object for programs, with its causes if `-v` is given.
    pub(crate) fn render(&self, terminal: &Terminal) -> String {
        let message = one_line(&self.to_string());
        let causes = if terminal.verbose { causes(self) } else { vec![] };
        if terminal.format == Format::Json {
            let mut object = serde_json::json!({ "error": self.kind(), "message": message });
            if terminal.verbose {
                object["causes"] = causes.into();
            }
            return object.to_string();
        }
        let mut text = format!("{} {message}", terminal.errors.bad("error:"));
        for cause in causes {
            text.push_str("\n  caused by: ");
            text.push_str(&cause);
        }
        text
    }
}

fn mistakes_text(mistakes: &[String]) -> String {
    match mistakes {
        [mistake] => format!("the stack options have a mistake: {mistake}"),
        mistakes => format!(
            "the stack options have {} mistakes: {}",
            mistakes.len(),
            mistakes.join("; ")
        ),
    }
}

fn causes(error: &Error) -> Vec<String> {
    if let Error::Unreachable { error, .. } = error {
        return causes(error);
    }
    let mut found = vec![];
    let mut next = error.source();
    while let Some(cause) = next {
        found.push(one_line(crate::connect::without_debug_output(&cause.to_string())));
        next = cause.source();
    }
    found
}

/// Joins the lines of a message with spaces.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use zae_limiter::stack::{CodeError, LambdaFunction};

    use super::*;

    #[test]
    fn a_new_stack_without_code_is_told_with_its_place() {
        let missing = |deployed| {
            Error::from(zae_limiter::stack::Error::Code(CodeError::Missing {
                function: LambdaFunction::Aggregator,
                stack: "demo".to_owned(),
                deployed,
            }))
        };
        assert!(!missing(true).is_about_a_place());
        assert!(missing(false).is_about_a_place());
        let place = Place {
            account: Some("123456789012".to_owned()),
            region: Some("eu-west-1".to_owned()),
            endpoint: None,
        };
        let error = missing(false).in_place(place);
        assert_eq!(error.kind(), "code_missing");
        let text = error.to_string();
        assert!(
            text.ends_with("it would be a new stack in account 123456789012, region eu-west-1"),
            "{text}"
        );
    }
}
