//! The reconciler against recorded answers: what no local cloud does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

#[path = "recorded/artifact_buckets.rs"]
mod artifact_buckets;
#[path = "recorded/artifact_storage.rs"]
mod artifact_storage;
#[path = "recorded/artifacts.rs"]
mod artifacts;
#[path = "recorded/change_sets.rs"]
mod change_sets;
#[path = "recorded/cloudformation.rs"]
mod cloudformation;
#[path = "recorded/creations.rs"]
mod creations;
#[path = "recorded/deadlines.rs"]
mod deadlines;
#[path = "recorded/deletions.rs"]
mod deletions;
#[path = "recorded/drift.rs"]
mod drift;
#[path = "recorded/early_validation.rs"]
mod early_validation;
#[path = "recorded/errors.rs"]
mod errors;
#[path = "recorded/existing_table.rs"]
mod existing_table;
#[path = "recorded/failed_states.rs"]
mod failed_states;
#[path = "recorded/functions.rs"]
mod functions;
#[path = "recorded/imports.rs"]
mod imports;
#[path = "recorded/kept.rs"]
mod kept;
#[path = "recorded/logged_import.rs"]
mod logged_import;
#[path = "recorded/losses.rs"]
mod losses;
#[path = "recorded/managers.rs"]
mod managers;
#[path = "recorded/modes.rs"]
mod modes;
#[path = "recorded/obstacles.rs"]
mod obstacles;
#[path = "recorded/options.rs"]
mod options;
#[path = "recorded/pages.rs"]
mod pages;
#[path = "recorded/patience.rs"]
mod patience;
#[path = "recorded/permissions.rs"]
mod permissions;
#[path = "recorded/plans.rs"]
mod plans;
#[path = "recorded/polling.rs"]
mod polling;
#[path = "recorded/preflight.rs"]
mod preflight;
#[path = "recorded/protection.rs"]
mod protection;
#[path = "recorded/protection_failures.rs"]
mod protection_failures;
#[path = "recorded/purges.rs"]
mod purges;
#[path = "recorded/queue_names.rs"]
mod queue_names;
#[path = "recorded/random.rs"]
mod random;
#[path = "recorded/readers.rs"]
mod readers;
#[path = "recorded/refused_tables.rs"]
mod refused_tables;
#[path = "recorded/retries.rs"]
mod retries;
#[path = "recorded/rollbacks.rs"]
mod rollbacks;
#[path = "recorded/service_role.rs"]
mod service_role;
#[path = "recorded/states.rs"]
mod states;
#[path = "recorded/tape.rs"]
mod tape;
#[path = "recorded/throttling.rs"]
mod throttling;
#[path = "recorded/unfinished_imports.rs"]
mod unfinished_imports;

use std::collections::BTreeMap;

use support::calls::Calls;
use support::permits::Caller;
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
