//! The options of a stack: from a file, from flags, or from both.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};
use zae_limiter_template::{Field, FieldKind, StackOptions, StackOptionsBuilder};

use crate::error::{Error, Result};
use crate::file_lines::line_of;

const HEADING: &str = "Stack options";

/// The options of the stack. Flags take precedence over the file.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Wanted {
    /// Options file, YAML or JSON
    #[arg(help_heading = "Arguments")]
    file: Option<PathBuf>,
    /// Set any option by its name in the file (repeatable)
    #[arg(long, value_name = "OPTION=VALUE", value_parser = setting)]
    set: Vec<(String, Value)>,
    /// Usage windows: hourly, daily, monthly
    #[arg(long, value_name = "LIST")]
    snapshot_windows: Option<String>,
    /// Days to keep usage
    #[arg(long, value_name = "DAYS")]
    usage_retention_days: Option<i64>,
    /// Days to keep audit events in the table
    #[arg(long, value_name = "DAYS")]
    audit_retention_days: Option<i64>,
    /// Deploy the aggregator, which counts usage (the default)
    #[arg(long, overrides_with = "no_aggregator")]
    enable_aggregator: bool,
    /// Do not deploy the aggregator
    #[arg(long)]
    no_aggregator: bool,
    /// Days of point-in-time recovery of the table
    #[arg(long, value_name = "DAYS")]
    pitr_recovery_days: Option<i64>,
    /// Days to keep logs
    #[arg(long, value_name = "DAYS")]
    log_retention_days: Option<i64>,
    /// Timeout of a function in seconds
    #[arg(long, value_name = "SECONDS")]
    lambda_timeout: Option<i64>,
    /// Memory of a function in MB
    #[arg(long, value_name = "MB")]
    lambda_memory: Option<i64>,
    /// Create alarms (the default)
    #[arg(long, overrides_with = "no_alarms")]
    enable_alarms: bool,
    /// Do not create alarms
    #[arg(long)]
    no_alarms: bool,
    /// SNS topic for alarms
    #[arg(long, value_name = "ARN")]
    alarm_sns_topic: Option<String>,
    /// Alarm if a function takes longer than this percentage of its timeout
    #[arg(long, value_name = "PERCENT")]
    lambda_duration_threshold_pct: Option<i64>,
    /// Permission boundary of every role
    #[arg(long, value_name = "NAME|ARN")]
    permission_boundary: Option<String>,
    /// Format of role names, such as pb-{}-PowerUser
    #[arg(long, value_name = "FORMAT")]
    role_name_format: Option<String>,
    /// Format of policy names
    #[arg(long, value_name = "FORMAT")]
    policy_name_format: Option<String>,
    /// Archive audit events (the default)
    #[arg(long, overrides_with = "no_audit_archival")]
    enable_audit_archival: bool,
    /// Do not archive audit events
    #[arg(long)]
    no_audit_archival: bool,
    /// Days until archived events move to Glacier Instant Retrieval
    #[arg(long, value_name = "DAYS")]
    audit_archive_glacier_days: Option<i64>,
    /// Trace the functions with X-Ray
    #[arg(long, overrides_with = "no_tracing")]
    enable_tracing: bool,
    /// Do not trace the functions (the default)
    #[arg(long)]
    no_tracing: bool,
    /// Create roles for applications, administrators and readers
    #[arg(long, overrides_with = "no_create_iam_roles")]
    create_iam_roles: bool,
    /// Do not create those roles (the default)
    #[arg(long)]
    no_create_iam_roles: bool,
    /// Create policies, and roles for the functions (the default)
    #[arg(long, overrides_with = "no_iam")]
    iam: bool,
    /// Create no IAM resources
    #[arg(long)]
    no_iam: bool,
    /// Existing role for the aggregator
    #[arg(long, value_name = "ARN")]
    aggregator_role_arn: Option<String>,
    /// Protect the table from deletion
    #[arg(long, overrides_with = "no_deletion_protection")]
    enable_deletion_protection: bool,
    /// Do not protect the table from deletion (the default)
    #[arg(long)]
    no_deletion_protection: bool,
    /// Directory of the functions' archives [default: in this command if it was built with them, or target/functions]
    #[arg(long, value_name = "DIRECTORY")]
    code_directory: Option<String>,
    /// Tag for the stack and its resources (repeatable)
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write OPTION=VALUE, such as lambda_architecture=arm64")?;
    let value = serde_yaml::from_str(value).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), value))
}

fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE, such as team=search")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The fields of an options file. YAML values reject duplicate keys; JSON values would keep the last one.
fn fields_of(text: &str) -> std::result::Result<Map<String, Value>, serde_yaml::Error> {
    let value: serde_yaml::Value = serde_yaml::from_str(text)?;
    let fields: Option<Map<String, Value>> = serde_yaml::from_value(value)?;
    Ok(fields.unwrap_or_default())
}

impl Wanted {
    /// The options, checked; every mistake at once otherwise.
    pub(super) fn options(&self) -> Result<StackOptions> {
        self.on_top_of(Map::new())
    }

    /// The same as changes to the options of a stack that is deployed.
    pub(super) fn changes_to(&self, deployed: &StackOptions) -> Result<StackOptions> {
        match serde_json::to_value(deployed) {
            Ok(Value::Object(fields)) => self.on_top_of(fields),
            _ => self.options(),
        }
    }

    fn on_top_of(&self, mut fields: Map<String, Value>) -> Result<StackOptions> {
        let text = self.file_text()?;
        let mut in_file = Map::new();
        if let (Some(text), Some(file)) = (&text, &self.file) {
            in_file = fields_of(text).map_err(|error| {
                Error::usage(format!(
                    "{} is not a file of stack options: {error}",
                    file.display()
                ))
            })?;
            fields.extend(in_file.clone());
        }
        self.overlay(&mut fields);
        let values = fields.clone();
        parse(fields, |option| {
            // A flag replaces the value in the file, and then the mistake is the flag's.
            let from_file = values.get(option).is_some() && in_file.get(option) == values.get(option);
            let line = line_of(text.as_deref().filter(|_| from_file)?, option)?;
            Some(format!("{} line {line}", self.file.as_ref()?.display()))
        })
    }

    fn file_text(&self) -> Result<Option<String>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        match std::fs::read_to_string(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::usage(format!(
                "options file {} does not exist; the name of a stack is given with --name",
                file.display()
            ))),
            text => text.map(Some).map_err(Error::reading(file.display().to_string())),
        }
    }

    fn overlay(&self, fields: &mut Map<String, Value>) {
        let texts = [
            ("snapshot_windows", &self.snapshot_windows),
            ("alarm_sns_topic", &self.alarm_sns_topic),
            ("permission_boundary", &self.permission_boundary),
            ("role_name_format", &self.role_name_format),
            ("policy_name_format", &self.policy_name_format),
            ("aggregator_role_arn", &self.aggregator_role_arn),
            ("code_directory", &self.code_directory),
        ];
        let numbers = [
            ("usage_retention_days", self.usage_retention_days),
            ("audit_retention_days", self.audit_retention_days),
            ("pitr_recovery_days", self.pitr_recovery_days),
            ("log_retention_days", self.log_retention_days),
            ("lambda_timeout", self.lambda_timeout),
            ("lambda_memory", self.lambda_memory),
            (
                "lambda_duration_threshold_pct",
                self.lambda_duration_threshold_pct,
            ),
            ("audit_archive_glacier_days", self.audit_archive_glacier_days),
        ];
        let switches = [
            ("enable_aggregator", self.enable_aggregator, self.no_aggregator),
            ("enable_alarms", self.enable_alarms, self.no_alarms),
            (
                "enable_audit_archival",
                self.enable_audit_archival,
                self.no_audit_archival,
            ),
            ("enable_tracing", self.enable_tracing, self.no_tracing),
            (
                "create_iam_roles",
                self.create_iam_roles,
                self.no_create_iam_roles,
            ),
            ("create_iam", self.iam, self.no_iam),
            (
                "enable_deletion_protection",
                self.enable_deletion_protection,
                self.no_deletion_protection,
            ),
        ];
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        for (name, value) in &self.set {
            put(name, value.clone());
        }
        for (name, text) in texts {
            if let Some(text) = text {
                put(name, text.as_str().into());
            }
        }
        for (name, number) in numbers {
            if let Some(number) = number {
                put(name, number.into());
            }
        }
        for (name, on, off) in switches {
            if on || off {
                put(name, on.into());
            }
        }
        if !self.tag.is_empty() {
            let tags = fields.entry("tags").or_insert_with(|| Map::new().into());
            for (key, value) in &self.tag {
                tags[key] = value.as_str().into();
            }
        }
    }
}

/// Parses options. The error has every mistake: unknown names, wrong types and values that break a rule.
fn parse(mut fields: Map<String, Value>, place: impl Fn(&str) -> Option<String>) -> Result<StackOptions> {
    let mut mistakes = Vec::new();
    let at = |option: &str, problem: String| match place(option) {
        Some(place) => format!("{place}: {problem}"),
        None => problem,
    };
    let known = StackOptions::fields();
    fields.retain(|name, value| {
        let Some(field) = known.iter().find(|field| field.name == name) else {
            mistakes.push(at(name, unknown_option(name, &known)));
            return false;
        };
        let one = Map::from_iter([(name.clone(), value.clone())]);
        let readable = serde_json::from_value::<StackOptionsBuilder>(Value::Object(one)).is_ok();
        if !readable {
            mistakes.push(at(name, format!("{name} is {value}: {}", kind_rule(field.kind))));
        }
        readable
    });
    let builder = serde_json::from_value::<StackOptionsBuilder>(Value::Object(fields));
    let built = match builder {
        Ok(builder) => builder.build(),
        Err(error) => return Err(Error::usage(format!("the stack options cannot be read: {error}"))),
    };
    match built {
        Ok(options) if mistakes.is_empty() => return Ok(options),
        Ok(_) => {}
        Err(invalid) => {
            let found = invalid.mistakes().iter();
            mistakes.extend(found.map(|found| at(found.field, found.to_string())));
        }
    }
    Err(Error::Options { mistakes })
}

fn unknown_option(name: &str, known: &[Field]) -> String {
    let near = known
        .iter()
        .map(|field| (strsim::damerau_levenshtein(name, field.name), field.name))
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3))
        .min();
    match near {
        Some((_, meant)) => format!("{name} is not a stack option; did you mean {meant}?"),
        None => format!("{name} is not a stack option; `zae-limiter deploy --help` lists them"),
    }
}

const fn kind_rule(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Flag => "must be true or false",
        FieldKind::Number => "must be a whole number",
        FieldKind::Text => "must be text",
        FieldKind::Windows => "must be a list of hourly, daily and monthly",
        FieldKind::List => "must be a list of words",
        FieldKind::Tags => "must be a map of tags, such as {team: search}",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        wanted: Wanted,
    }

    fn options(arguments: &[&str]) -> Result<StackOptions> {
        let line = Line::try_parse_from(std::iter::once("test").chain(arguments.iter().copied())).unwrap();
        line.wanted.options()
    }

    #[test]
    fn flags_stand_above_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("options.yaml");
        std::fs::write(
            &file,
            "lambda_memory: 512\nlambda_timeout: 30\ntags: {team: search}\n",
        )
        .unwrap();
        let file = file.to_str().unwrap();
        let options = options(&[file, "--lambda-memory", "1024", "--no-alarms", "-t", "stage=dev"]).unwrap();
        assert_eq!((options.lambda_memory(), options.lambda_timeout()), (1024, 30));
        assert!(!options.enable_alarms());
        assert_eq!(options.tags().len(), 2);
    }

    #[test]
    fn an_upgrade_changes_what_it_names_and_nothing_else() {
        let deployed =
            StackOptions::from_file("lambda_memory: 512\nlambda_timeout: 30\ntags: {team: search}\n")
                .unwrap();
        let line = Line::try_parse_from(["test", "--lambda-timeout", "20", "-t", "stage=dev"]).unwrap();
        let upgraded = line.wanted.changes_to(&deployed).unwrap();
        assert_eq!((upgraded.lambda_memory(), upgraded.lambda_timeout()), (512, 20));
        assert_eq!(upgraded.tags().len(), 2);
        let nothing = Line::try_parse_from(["test"]).unwrap();
        assert_eq!(nothing.wanted.changes_to(&deployed).unwrap(), deployed);
    }

    #[test]
    fn the_last_of_a_flag_and_its_opposite_counts() {
        assert!(
            options(&["--no-aggregator", "--enable-aggregator"])
                .unwrap()
                .enable_aggregator()
        );
        assert!(
            !options(&["--enable-aggregator", "--no-aggregator"])
                .unwrap()
                .enable_aggregator()
        );
    }

    #[test]
    fn mistakes_in_a_file_have_line_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("options.yaml");
        std::fs::write(
            &file,
            "enable_tracing: ja\n# comment\nlambda_memroy: 512\nlambda_timeout: 0\n",
        )
        .unwrap();
        let file = file.to_str().unwrap();
        let error = options(&[file]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{file} line 1: enable_tracing is \"ja\"")),
            "{error}"
        );
        assert!(
            error.contains(&format!("{file} line 3: lambda_memroy")),
            "{error}"
        );
        assert!(
            error.contains(&format!("{file} line 4: lambda_timeout is 0")),
            "{error}"
        );
    }

    #[test]
    fn a_flag_that_replaces_a_value_of_the_file_has_no_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("options.yaml");
        std::fs::write(&file, "lambda_memory: 512\nlambda_timeout: 0\n").unwrap();
        let error = options(&[file.to_str().unwrap(), "--lambda-memory", "64"]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("line 2: lambda_timeout is 0") && !error.contains("line 1"),
            "{error}"
        );
        assert!(error.contains("lambda_memory is 64"), "{error}");
    }

    #[test]
    fn an_option_that_is_in_the_file_twice_is_a_mistake() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("options.yaml");
        std::fs::write(&file, "lambda_memory: 512\nlambda_memory: 1024\n").unwrap();
        let error = options(&[file.to_str().unwrap()]).unwrap_err().to_string();
        assert!(
            error.contains("duplicate entry with key \"lambda_memory\""),
            "{error}"
        );
    }

    #[test]
    fn every_option_can_be_set_by_name() {
        let options = options(&[
            "--set",
            "lambda_architecture=arm64",
            "--set",
            "snapshot_windows=[hourly, monthly]",
        ]);
        assert_eq!(options.unwrap().snapshot_windows().len(), 2);
    }

    #[test]
    fn mistakes_are_told_together() {
        let error = options(&["--lambda-memory", "64", "--log-retention-days", "2"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("lambda_memory") && error.contains("log_retention_days"),
            "{error}"
        );
        let typo = options(&[
            "--set",
            "lambda_memroy=64",
            "--set",
            "enable_tracing=ja",
            "--set",
            "tags=x",
        ]);
        let typo = typo.unwrap_err().to_string();
        assert_eq!(
            typo,
            "the stack options have 3 mistakes: lambda_memroy is not a stack option; did you mean lambda_memory?; \
             enable_tracing is \"ja\": must be true or false; tags is \"x\": must be a map of tags, such as {team: search}"
        );
        assert!(options(&["no-such-file.yaml"]).is_err());
    }
}
