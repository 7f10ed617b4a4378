//! The reconciler against recorded responses: what no local cloud does.

mod artifact_buckets;
mod artifact_storage;
mod artifacts;
mod change_sets;
mod cloudformation;
mod creations;
mod deadlines;
mod deletions;
mod drift;
mod early_validation;
mod errors;
mod existing_table;
mod failed_states;
mod functions;
mod imports;
mod kept;
mod logged_import;
mod losses;
mod managers;
mod modes;
mod obstacles;
mod options;
mod pages;
mod patience;
mod permissions;
mod plans;
mod polling;
mod preflight;
mod protection;
mod protection_failures;
mod purges;
mod queue_names;
mod random;
mod readers;
mod refused_tables;
mod retries;
mod rollbacks;
mod service_role;
mod states;
mod tape;
mod throttling;
mod unfinished_imports;

use crate::support;
use std::collections::BTreeMap;

use crate::support::calls::Calls;
use crate::support::permits::Caller;
use tape::Tape;
use zae_limiter_stack::{Code, Stack, StackOptions};
use zae_limiter_template::FunctionCode;

const NAME: &str = "demo";
const ID: &str = "arn:aws:cloudformation:us-east-1:123456789012:stack/demo/1";
const CHANGE_SET: &str = "arn:aws:cloudformation:us-east-1:123456789012:changeSet/zl/1";

/// What the options without functions render to.
fn body(options: &StackOptions) -> serde_json::Value {
    let template =
        zae_limiter_template::render(&support::name(NAME), options, &FunctionCode::none()).unwrap();
    template.to_value().clone()
}

fn tags(options: &StackOptions) -> BTreeMap<String, String> {
    let tags = zae_limiter_template::stack_tags(&support::name(NAME), options);
    tags.into_iter().map(|tag| (tag.key, tag.value)).collect()
}

/// Options that differ from [`support::bare`] by a property that is changed in place.
fn changed() -> StackOptions {
    support::bare()
        .to_builder()
        .enable_deletion_protection(true)
        .build()
        .unwrap()
}

/// A stack that hears the tape, and the calls that it makes, which a deployer's policies must permit.
fn stack(options: &StackOptions, tape: &Tape) -> (Stack, Calls) {
    stack_of(Caller::deployer(NAME, options), options, tape)
}

fn stack_of(caller: Caller, options: &StackOptions, tape: &Tape) -> (Stack, Calls) {
    let calls = Calls::of(caller);
    let clients = calls.counted(&tape.clients());
    (
        Stack::with_clients(support::name(NAME), options.clone(), clients).code(Code::AsDeployed),
        calls,
    )
}

/// How often an operation was called.
fn count(calls: &Calls, operation: &str) -> usize {
    calls.names().iter().filter(|name| *name == operation).count()
}
