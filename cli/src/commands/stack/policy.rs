//! `policy`: the IAM policies of people, pipelines and applications.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zae_limiter::StackName;
use zae_limiter_template::deployer::{
    LONGEST_MANAGED_POLICY, Place, client_policy, deployer_policy, ensure_policy, function_policy,
    managed_policies, plan_policy, provisioning_policy, purge_policy, redrive_policy, terraform_policy,
};
use zae_limiter_template::model::iam::PolicyDocument;
use zae_limiter_template::{LambdaFunction, PolicyKind, RoleArn, StackOptions, export};

use super::options::Wanted;
use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::{Error, Result};

#[derive(Debug, Args)]
#[command(
    after_help = "A deployer needs `deployer` and, unless CloudFormation has a service role, `provisioning` as well.

A managed policy of IAM has at most 6,144 characters. A longer policy is printed in parts, with --part.

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
    /// The part of a policy that is longer than a managed policy may be
    #[arg(long, value_name = "NUMBER", help_heading = "Options")]
    part: Option<usize>,
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
    /// Apply the Terraform module
    Terraform,
    /// Delete the stack with its data
    Purge,
    /// `plan --offline` in a pipeline: read only
    Plan,
    /// Count the dead letters of the aggregator: `usage redrive`
    Redrive,
    /// The aggregator's role, for `aggregator_role_arn`
    Aggregator,
    /// The archiver's role, for `archiver_role_arn`
    Archiver,
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
    let document = document(arguments, &context.name()?, &place, &options)?;
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

fn document(arguments: &Arguments, name: &StackName, place: &Place, options: &StackOptions) -> Result<Value> {
    let client = |kind| Ok(client_policy(kind, name, place, options));
    let function = |function| Ok(function_policy(function, name, place, options));
    let whole = match arguments.which {
        Which::Deployer => deployer_policy(name, place, options, arguments.service_role.as_ref()),
        Which::Provisioning => provisioning_policy(name, place, options),
        Which::Terraform => terraform_policy(name, place, options),
        Which::Purge => purge_policy(name, place),
        Which::Redrive => redrive_policy(name, place, options),
        Which::Plan => plan_policy(name, place),
        Which::Ensure => ensure_policy(name, place),
        Which::Aggregator => return function(LambdaFunction::Aggregator),
        Which::Archiver => return function(LambdaFunction::Archiver),
        Which::Acquire => return client(PolicyKind::Acquire),
        Which::Full => return client(PolicyKind::Full),
        Which::Read => return client(PolicyKind::Read),
    };
    part(&whole, arguments.part).map(|part| json!(part))
}

/// The document if IAM accepts it, or the part that is asked for.
fn part(whole: &PolicyDocument, number: Option<usize>) -> Result<PolicyDocument> {
    let parts = managed_policies(whole)?;
    let count = parts.len();
    let Some(number) = number else {
        return match <[PolicyDocument; 1]>::try_from(parts) {
            Ok([one]) => Ok(one),
            Err(_) => Err(Error::usage(format!(
                "the policy has {} characters and a managed policy at most {LONGEST_MANAGED_POLICY}; print it in {count} parts with --part 1 to --part {count}, or shorten the stack's name",
                whole.characters()
            ))),
        };
    };
    let part = number
        .checked_sub(1)
        .and_then(|place| parts.into_iter().nth(place));
    part.ok_or_else(|| {
        Error::usage(format!(
            "the policy has {count} parts; --part must be 1 to {count}, not {number}"
        ))
    })
}

const fn name(which: Which) -> &'static str {
    match which {
        Which::Deployer => "deployer",
        Which::Provisioning => "provisioning",
        Which::Terraform => "terraform",
        Which::Purge => "purge",
        Which::Redrive => "redrive",
        Which::Plan => "plan",
        Which::Ensure => "ensure",
        Which::Aggregator => "aggregator",
        Which::Archiver => "archiver",
        Which::Acquire => "acquire",
        Which::Full => "full",
        Which::Read => "read",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_long_policy_is_refused_with_its_number_of_parts_and_printed_in_parts() {
        let name = StackName::parse("a".repeat(55)).unwrap();
        let place = Place {
            partition: "aws".into(),
            region: "eu-west-1".into(),
            account: "123456789012".into(),
        };
        let options = StackOptions::builder()
            .policy_name_format(format!("{}{{}}", "p".repeat(60)))
            .aggregator_role_arn(format!("arn:aws:iam::123456789012:role/{}", "r".repeat(500)))
            .archiver_role_arn(format!("arn:aws:iam::123456789012:role/{}", "r".repeat(500)))
            .build()
            .unwrap();
        let long = provisioning_policy(&name, &place, &options);
        let error = part(&long, None).unwrap_err().to_string();
        assert!(error.contains("--part 1 to --part 2"), "{error}");
        let both = [1, 2].map(|number| part(&long, Some(number)).unwrap().statements);
        assert_eq!(both.concat(), long.statements);
        for number in [0, 3] {
            assert!(part(&long, Some(number)).is_err());
        }
        let short = ensure_policy(&name, &place);
        assert_eq!(part(&short, None).unwrap(), short);
    }
}
