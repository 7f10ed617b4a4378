//! `check`: check that this command and the table are compatible.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{Error as StackError, StreamReader};
use zae_limiter::versions::{CLIENT_VERSION, Compatibility, VersionRecord};

use crate::command_output::{CommandOutput, Text};
use crate::connect::cannot_be_asked;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::View;

#[derive(Debug, Args)]
#[command(after_help = "Also lists the functions that read the table's stream.
Exits with 0 if the command and the table are compatible and no foreign function reads the stream.
Exits with 1 if not, or if the functions cannot be listed. If only the permission is missing, or
CloudFormation or Lambda cannot be reached, that is a warning, and the exit code stays 0.

Example:
  zae-limiter -n my-app check")]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct CompatibilityReport {
    name: String,
    compatible: bool,
    state: &'static str,
    client_version: &'static str,
    schema_version: Option<String>,
    client_min_version: Option<String>,
    problem: Option<String>,
    /// The functions that read the table's stream, unless it is embedded and has none.
    stream_readers: Option<Vec<StreamReader>>,
    /// Why they could not be listed.
    stream_problem: Option<String>,
    /// Whether that is only a warning.
    #[serde(skip)]
    stream_optional: bool,
}

impl Text for CompatibilityReport {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![self.compatibility(view)];
        for reader in self.stream_readers.iter().flatten() {
            let function = &reader.function_arn;
            let state = &reader.state;
            lines.push(if reader.own {
                format!("stream reader: {function} ({state})")
            } else {
                let foreign = view.paint.bad("foreign stream reader:");
                format!("{foreign} {function} ({state}, mapping {})", reader.mapping)
            });
        }
        if let Some(problem) = &self.stream_problem {
            let unknown = "the readers of the table's stream cannot be listed:";
            lines.push(if self.stream_optional {
                format!("{} {unknown} {problem}", view.paint.changed("warning:"))
            } else {
                format!("{} {problem}", view.paint.bad(unknown))
            });
        }
        lines.join("\n")
    }
}

impl CompatibilityReport {
    fn exit(&self) -> Exit {
        let alone = self.stream_readers.iter().flatten().all(|reader| reader.own);
        let listed = self.stream_problem.is_none() || self.stream_optional;
        if self.compatible && alone && listed {
            Exit::Success
        } else {
            Exit::Error
        }
    }

    fn compatibility(&self, view: &View) -> String {
        let name = &self.name;
        match &self.problem {
            None => view.paint.good(&format!("table {name} is compatible")),
            Some(problem) => format!(
                "{} {problem}",
                view.paint.bad(&format!("table {name} is not compatible:"))
            ),
        }
    }
}

fn state(compatibility: &Compatibility) -> &'static str {
    match compatibility {
        Compatibility::Compatible => "compatible",
        Compatibility::NeedsMigration { .. } => "needs_migration",
        Compatibility::SchemaTooNew { .. } => "schema_too_new",
        Compatibility::ClientTooOld { .. } => "client_too_old",
        _ => "unreadable",
    }
}

/// Whether the check can do without the readers: there is no stack, or the services cannot be asked.
fn is_optional(error: &Error) -> bool {
    let Error::Stack { source } = error else {
        return false;
    };
    matches!(source, StackError::NoSuchStack { .. }) || cannot_be_asked(source)
}

pub(crate) async fn run(_: Arguments, context: &Context) -> Result<CommandOutput> {
    let repository = context.repository().await?;
    let record: Option<VersionRecord> = repository.get_version().await?;
    let (state, problem) = match record.as_ref().map(Compatibility::of) {
        Some(found) => (state(&found), found.problem()),
        None => (
            "not_initialized",
            Some("it has no version record; the first change or `zae-limiter migrate` writes one".to_owned()),
        ),
    };
    let (stream_readers, failure) = match super::stack::stream_readers(context).await {
        Ok(readers) => (readers, None),
        Err(error) => (None, Some(error)),
    };
    let report = CompatibilityReport {
        name: repository.name().to_string(),
        compatible: problem.is_none(),
        state,
        client_version: CLIENT_VERSION,
        schema_version: record.as_ref().map(|record| record.schema_version.clone()),
        client_min_version: record.map(|record| record.client_min_version),
        problem,
        stream_readers,
        stream_optional: failure.as_ref().is_some_and(is_optional),
        stream_problem: failure.map(|failure| failure.to_string()),
    };
    let exit = report.exit();
    Ok(CommandOutput::new(report).with_exit(exit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CompatibilityReport {
        CompatibilityReport {
            name: "limiter".to_owned(),
            compatible: true,
            state: "compatible",
            client_version: CLIENT_VERSION,
            schema_version: None,
            client_min_version: None,
            problem: None,
            stream_readers: None,
            stream_problem: None,
            stream_optional: false,
        }
    }

    fn reader(own: bool) -> StreamReader {
        StreamReader {
            mapping: "1".to_owned(),
            function_arn: "arn:f".to_owned(),
            state: "Enabled".to_owned(),
            own,
        }
    }

    #[test]
    fn a_foreign_reader_and_readers_that_fail_to_be_listed_fail_the_check() {
        assert_eq!(report().exit(), Exit::Success, "an embedded table has no stream");
        let with = |readers| CompatibilityReport {
            stream_readers: Some(readers),
            ..report()
        };
        assert_eq!(with(vec![]).exit(), Exit::Success);
        assert_eq!(with(vec![reader(true)]).exit(), Exit::Success);
        assert_eq!(with(vec![reader(true), reader(false)]).exit(), Exit::Error);
        let unknown = CompatibilityReport {
            stream_problem: Some("it failed".to_owned()),
            ..report()
        };
        assert_eq!(unknown.exit(), Exit::Error);
        let denied = CompatibilityReport {
            stream_problem: Some("access denied".to_owned()),
            stream_optional: true,
            ..report()
        };
        assert_eq!(denied.exit(), Exit::Success, "a warning");
        let incompatible = CompatibilityReport {
            compatible: false,
            ..denied
        };
        assert_eq!(incompatible.exit(), Exit::Error);
    }

    #[test]
    fn readers_that_nobody_can_be_asked_about_are_optional() {
        let missing = StackError::NoSuchStack {
            stack: "demo".to_owned(),
            place: "region eu-west-1".to_owned(),
        };
        let denied = StackError::Denied {
            action: "cloudformation:DescribeStacks".to_owned(),
            resource: "demo".to_owned(),
            message: "no".to_owned(),
        };
        let throttled = StackError::Call {
            action: "lambda:ListEventSourceMappings",
            resource: "demo".to_owned(),
            code: "TooManyRequestsException".to_owned(),
            message: "Rate exceeded".to_owned(),
        };
        assert!(is_optional(&missing.into()) && is_optional(&denied.into()));
        assert!(!is_optional(&throttled.into()) && !is_optional(&Error::NoRegion));
    }
}
