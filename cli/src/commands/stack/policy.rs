//! `policy`: the IAM policies of people, pipelines and applications.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zae_limiter::StackName;
use zae_limiter_template::deployer::{
    Place, client_policy, deployer_policy, ensure_policy, plan_policy, provisioning_policy, purge_policy,
    redrive_policy,
};
use zae_limiter_template::{PolicyKind, RoleArn, StackOptions, export};

use super::options::Wanted;
use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::{Error, Result};

#[derive(Debug, Args)]
#[command(
    after_help = "A deployer needs `deployer` and, unless CloudFormation has a service role, `provisioning` as well.

Examples:
  zae-limiter policy deployer options.yaml -n my-app --region eu-west-1 --account 123456789012 > deployer.json
  zae-limiter policy acquire -n my-app --region eu-west-1 --account 123456789012 --format terraform"
)]
pub(crate) struct Arguments {
    /// The policy to print
    #[arg(value_name = "POLICY")]
    which: Which,
    #[command(flatten)]
    wanted: Wanted,
    /// The AWS account of the stack
    #[arg(long, value_name = "ID", value_parser = account, help_heading = "Options")]
    account: String,
    /// The AWS partition
    #[arg(long, value_name = "NAME", default_value = "aws", help_heading = "Options")]
    partition: String,
    /// The role that CloudFormation assumes (`deploy --service-role`), which `deployer` may then pass to it
    #[arg(long, value_name = "ARN", help_heading = "Options")]
    service_role: Option<RoleArn>,
    /// A policy document, or a Terraform data source
    #[arg(long, default_value = "json", help_heading = "Options")]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Plan, deploy, change and delete the stack
    Deployer,
    /// What CloudFormation does for a deployer, or as a service role
    Provisioning,
    /// Delete the stack with its data
    Purge,
    /// `plan --offline` in a pipeline: read only
    Plan,
    /// Count the dead letters of the aggregator: `usage redrive`
    Redrive,
    /// Observe the stack from an application
    Ensure,
    /// Acquire, adjust and release
    Acquire,
    /// Everything on the table's data
    Full,
    /// Read limits, buckets, usage and audit events
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A policy document
    Json,
    /// `data "aws_iam_policy_document"`
    Terraform,
}

fn account(text: &str) -> Result<String, String> {
    if text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err("must have 12 digits".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<CommandOutput> {
    let options = arguments.wanted.options()?;
    let place = Place {
        partition: arguments.partition.clone(),
        region: region(context)?,
        account: arguments.account.clone(),
    };
    let document = document(arguments, &context.name()?, &place, &options);
    Ok(CommandOutput::document(match arguments.format {
        Form::Json => format!("{document:#}\n"),
        Form::Terraform => export::policy_data_source(name(arguments.which), &document),
    }))
}

fn region(context: &Context) -> Result<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let given = context.location.region.clone();
    let region = given
        .or_else(|| variable("AWS_REGION"))
        .or_else(|| variable("AWS_DEFAULT_REGION"));
    region.ok_or_else(|| Error::usage("the policy names a region; pass --region or set AWS_REGION"))
}

fn document(arguments: &Arguments, name: &StackName, place: &Place, options: &StackOptions) -> Value {
    let client = |kind| client_policy(kind, name, place, options);
    match arguments.which {
        Which::Deployer => {
            let role = arguments.service_role.as_ref();
            json!(deployer_policy(name, place, options, role))
        }
        Which::Provisioning => json!(provisioning_policy(name, place, options)),
        Which::Purge => json!(purge_policy(name, place)),
        Which::Redrive => json!(redrive_policy(name, place, options)),
        Which::Plan => json!(plan_policy(name, place)),
        Which::Ensure => json!(ensure_policy(name, place)),
        Which::Acquire => client(PolicyKind::Acquire),
        Which::Full => client(PolicyKind::Full),
        Which::Read => client(PolicyKind::Read),
    }
}

const fn name(which: Which) -> &'static str {
    match which {
        Which::Deployer => "deployer",
        Which::Provisioning => "provisioning",
        Which::Purge => "purge",
        Which::Redrive => "redrive",
        Which::Plan => "plan",
        Which::Ensure => "ensure",
        Which::Acquire => "acquire",
        Which::Full => "full",
        Which::Read => "read",
    }
}
