//! The resources of the stack, from its options.

mod aggregator;
mod alarms;
mod archive;
mod archiver;
mod code;
mod context;
pub(crate) mod dashboard;
mod function;
pub mod ids;
mod outputs;
mod policies;
pub(crate) mod provisioner;
mod roles;
mod table;
pub(crate) mod tags;

pub use code::{CodeBucket, CodeLocation, FunctionCode};
pub(crate) use context::Naming;
pub use function::LambdaFunction;
pub use outputs::AUDIT_RETENTION_DAYS;
pub(crate) use policies::send_events;
pub use tags::{stack_tags, tags_of_user};

use serde_json::{Map, json};
use zae_limiter_schema::{StackName, VersionRecord};

use crate::check::Facts;
use crate::model::iam::PolicyDocument;
use crate::model::{Handle, Model};
use crate::options::StackOptions;
use crate::{Error, VERSION};
use context::Context;
use ids::PolicyKind;
use outputs::Built;

impl Model {
    /// The stack with a fixed name, as a deployment renders it.
    pub fn of_stack(name: &StackName, options: &StackOptions, code: &FunctionCode) -> Result<Self, Error> {
        options.check_name(name)?;
        build(&Naming::Fixed(name.clone()), options, code)
    }

    /// The stack for any name, to export and deploy with other tools.
    ///
    /// Names are built from the stack's name at deployment, so an existing table cannot be imported, and the stack's name may
    /// have at most 53 characters.
    pub fn for_export(options: &StackOptions) -> Result<Self, Error> {
        build(&Naming::Deployed, options, &FunctionCode::parameters())
    }
}

fn build(naming: &Naming, options: &StackOptions, code: &FunctionCode) -> Result<Model, Error> {
    let name = naming.text();
    let facts = Facts {
        stack: name.clone(),
        alarm_topic: options.alarm_sns_topic().is_some(),
        boundary: options.permission_boundary().map(context::boundary),
    };
    let metadata = json!({
        "version": VERSION,
        "schema_version": VersionRecord::SCHEMA_VERSION,
        STORED_OPTIONS: options.stored(),
    });
    let metadata = Map::from_iter([(METADATA.to_owned(), metadata)]);
    let mut model = Model::new("zae-limiter: rate limits on DynamoDB", metadata, facts);

    let code = code::resolve(&mut model, code, &options.functions())?;
    let table = table::add(&mut model, name.clone(), options)?;
    let cx = Context {
        options,
        naming,
        name,
        table,
    };
    let policies = policies::add(&mut model, &cx)?;
    let roles = roles::add(&mut model, &cx, &policies)?;
    let (mut functions, mut archive) = (Vec::new(), None);
    for (function, code) in code {
        functions.push(match function {
            LambdaFunction::Aggregator => aggregator::add(&mut model, &cx, code)?,
            LambdaFunction::Archiver => {
                let bucket = archive.insert(archive::add(&mut model, &cx)?);
                archiver::add(&mut model, &cx, bucket, code)?
            }
        });
    }
    let alarms = alarms::add(&mut model, &cx, &functions)?;
    let dashboard = dashboard::add(&mut model, &cx, &functions)?;
    outputs::add(
        &mut model,
        &cx,
        &Built {
            functions,
            archive,
            policies,
            roles,
            alarms,
            dashboard,
        },
    )?;
    Ok(model)
}

/// The key of our entry in a template's `Metadata`, which marks a stack as ours.
pub const METADATA: &str = "zae-limiter";

/// The key in that entry of the options that the template was rendered from.
pub(crate) const STORED_OPTIONS: &str = "options";

/// The document of one of the stack's managed policies.
///
/// ```
/// use zae_limiter_template::{PolicyKind, StackOptions, policy_document};
///
/// let acquire = policy_document(PolicyKind::Acquire, &StackOptions::default());
/// let actions: Vec<_> = acquire.allowed_actions().iter().map(|action| action.as_str().to_owned()).collect();
/// assert_eq!(actions, ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"]);
/// ```
pub fn policy_document(policy: PolicyKind, options: &StackOptions) -> PolicyDocument {
    policies::document(policy, &Handle::new(ids::TABLE), options)
}

/// The policy document of a function's role. A role of your own needs the same.
pub fn function_policy_document(function: LambdaFunction, options: &StackOptions) -> PolicyDocument {
    let cx = Context {
        options,
        naming: &Naming::Deployed,
        name: Naming::Deployed.text(),
        table: Handle::new(ids::TABLE),
    };
    let data = match function {
        LambdaFunction::Aggregator => policies::count_usage(&cx.table, options),
        LambdaFunction::Archiver => vec![policies::archive_events(archive::arn(options))],
    };
    let ids = function.ids();
    PolicyDocument::new(policies::function(
        &cx,
        data,
        &Handle::new(ids.queue),
        &Handle::new(ids.log_group),
    ))
}
