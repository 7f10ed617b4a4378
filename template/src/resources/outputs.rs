//! The outputs of the stack.
//!
//! The names and exports of the first ones are those of zae-limiter for Python.

use super::LambdaFunction;
use super::alarms::Added;
use super::archive::Archive;
use super::context::Context;
use super::function::Deployed;
use super::ids::{self, PolicyKind, RoleKind};
use crate::Error;
use crate::model::cloudwatch::Dashboard;
use crate::model::iam::{ManagedPolicy, Role};
use crate::model::{Export, Handle, LogicalId, Model, Output, Text};

/// What the outputs are built from.
pub(super) struct Built {
    pub(super) functions: Vec<Deployed>,
    pub(super) archive: Option<Archive>,
    pub(super) policies: Vec<Handle<ManagedPolicy>>,
    pub(super) roles: Vec<(RoleKind, Handle<Role>)>,
    pub(super) alarms: Vec<Added>,
    pub(super) dashboard: Option<Handle<Dashboard>>,
}

/// The output with the audit retention in days.
pub const AUDIT_RETENTION_DAYS: &str = "AuditRetentionDays";

/// An output: its id, the end of its export's name, its description, and its value.
type Line = (String, String, String, Text);

/// Adds the outputs, each exported as `{stack}-…`.
pub(super) fn add(model: &mut Model, cx: &Context<'_>, built: &Built) -> Result<(), Error> {
    let mut lines = of_table(cx);
    built
        .functions
        .iter()
        .for_each(|deployed| lines.extend(of_function(deployed)));
    lines.extend(built.alarms.iter().map(of_alarm));
    if let Some(dashboard) = &built.dashboard {
        lines.push(line("DashboardName", "Name of the dashboard", dashboard.name()));
    }
    if let Some(archive) = &built.archive {
        lines.push(line(
            "AuditArchiveBucketName",
            "Bucket with archived audit events",
            archive.name.clone(),
        ));
        lines.push(line(
            "AuditArchiveBucketArn",
            "ARN of the bucket with archived audit events",
            archive.arn.clone(),
        ));
    }
    for (kind, policy) in PolicyKind::ALL.into_iter().zip(&built.policies) {
        let description = format!("ARN of the policy for {}", kind.audience());
        lines.push(line(format!("{}Arn", kind.id()), description, policy.arn()));
    }
    for (kind, role) in &built.roles {
        let role_of = format!("role of {}", kind.holder());
        lines.push(line(
            format!("{}Arn", kind.id()),
            format!("ARN of the {role_of}"),
            role.arn(),
        ));
        lines.push(line(
            format!("{}Name", kind.id()),
            format!("Name of the {role_of}"),
            role.name(),
        ));
    }
    for (id, export, description, value) in lines {
        let export = Some(Export {
            name: cx.name.clone().then(format!("-{export}")),
        });
        model.add_output(
            LogicalId::parse(id)?,
            Output {
                description,
                value,
                export,
            },
        )?;
    }
    Ok(())
}

fn line(id: impl Into<String>, description: impl Into<String>, value: Text) -> Line {
    let id = id.into();
    (id.clone(), id, description.into(), value)
}

fn exported_as(export: &str, line: Line) -> Line {
    let (id, _, description, value) = line;
    (id, export.to_owned(), description, value)
}

fn of_table(cx: &Context<'_>) -> Vec<Line> {
    vec![
        line("TableName", "Name of the table", cx.table.name()),
        line("TableArn", "ARN of the table", cx.table.arn()),
        line("StreamArn", "ARN of the table's stream", cx.table.stream_arn()),
        // No resource has it. As an output it is part of the template, so a change of it is a change of the stack.
        line(
            AUDIT_RETENTION_DAYS,
            "Days to keep audit events in the table",
            cx.options.audit_retention_days().to_string().into(),
        ),
    ]
}

fn of_function(deployed: &Deployed) -> [Line; 5] {
    let which = deployed.which;
    // The aggregator's exports are older than the archiver.
    let (name, queue) = match which {
        LambdaFunction::Aggregator => ("Aggregator", "DLQ"),
        LambdaFunction::Archiver => ("Archiver", "ArchiverDLQ"),
    };
    let queue_description = format!("dead-letter queue of the {which}");
    [
        exported_as(
            &format!("{name}Arn"),
            line(
                format!("{name}FunctionArn"),
                format!("ARN of the {which}"),
                deployed.function.arn(),
            ),
        ),
        exported_as(
            &format!("{name}Name"),
            line(
                format!("{name}FunctionName"),
                format!("Name of the {which}"),
                deployed.function.name(),
            ),
        ),
        line(
            format!("{name}RoleArn"),
            format!("ARN of the role that the {which} runs as"),
            deployed.role_arn.clone(),
        ),
        exported_as(
            &format!("{queue}Url"),
            line(
                format!("{name}DLQUrl"),
                format!("URL of the {queue_description}"),
                deployed.queue.url(),
            ),
        ),
        exported_as(
            &format!("{queue}Arn"),
            line(
                format!("{name}DLQArn"),
                format!("ARN of the {queue_description}"),
                deployed.queue.arn(),
            ),
        ),
    ]
}

fn of_alarm(added: &Added) -> Line {
    let id = format!("{}Name", added.id);
    // The alarm itself says what it means; twice would not fit into a template with everything on.
    let line = line(id, "Name of the alarm", added.alarm.name());
    match &added.id {
        id if *id == ids::READ_THROTTLE_ALARM => exported_as("ReadThrottleAlarmName", line),
        id if *id == ids::WRITE_THROTTLE_ALARM => exported_as("WriteThrottleAlarmName", line),
        id if *id == LambdaFunction::Aggregator.ids().queue_alarm => exported_as("DLQAlarmName", line),
        _ => line,
    }
}
