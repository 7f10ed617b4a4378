//! The commands, one module per group.

pub(crate) mod acquire;
pub(crate) mod audit;
pub(crate) mod available;
pub(crate) mod bucket;
pub(crate) mod buckets;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
mod embedded_archive;
pub(crate) mod entity;
mod function_environment;
pub(crate) mod limits;
pub(crate) mod local;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod mode;
pub(crate) mod pagination;
pub(crate) mod prices;
pub(crate) mod record_reports;
pub(crate) mod resource;
pub(crate) mod serve;
pub(crate) mod stack;
mod stack_health;
pub(crate) mod system;
pub(crate) mod ui;
pub(crate) mod usage;
pub(crate) mod version;

use std::future::Future;

use zae_limiter::stack::StackOptions;

use crate::args::Command;
use crate::command_output::CommandOutput;
use crate::connect::Place;
use crate::context::Context;
use crate::deferred::Deferred;
use crate::error::{Error, Result};

/// Runs a command.
pub(crate) fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    dispatch(command, context).map_err(|error| with_place(error, context))
}

/// What is missing is often in another account or region, and what does not respond at another endpoint: the error names them.
fn with_place(error: Error, context: &Context) -> Error {
    if context.location.embedded.is_some() {
        return error;
    }
    if error.is_unreachable() {
        return match block_on(Place::of_calls(&context.location)) {
            Ok(place) => Error::Unreachable {
                error: Box::new(error),
                place,
            },
            Err(_) => error,
        };
    }
    if !error.is_about_a_place() {
        return error;
    }
    let place = block_on(async {
        let stack = stack::stack(context, StackOptions::default()).await?;
        Ok(Place::of_caller(&stack, &context.location).await)
    });
    match place {
        Ok(place) => error.in_place(place),
        Err(_) => error,
    }
}

/// Only commands that make network calls start an async runtime.
fn dispatch(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Acquire(Deferred(arguments)) => block_on(acquire::run(arguments, context)),
        Command::Available(Deferred(arguments)) => block_on(available::run(arguments, context)),
        Command::Buckets(Deferred(arguments)) => block_on(buckets::run(arguments, context)),
        Command::TopUp(Deferred(arguments)) => block_on(bucket::top_up(arguments, context)),
        Command::Reset(Deferred(arguments)) => block_on(bucket::reset(arguments, context)),
        Command::Entity(Deferred(command)) => block_on(entity::run(command, context)),
        Command::Resource(Deferred(command)) => block_on(resource::run(command, context)),
        Command::System(Deferred(command)) => block_on(system::run(command, context)),
        Command::Config(Deferred(command)) => block_on(config::run(command, context)),
        Command::Limits(Deferred(command)) => block_on(limits::run(command, context)),
        Command::Mode(Deferred(command)) => block_on(mode::run(command, context)),
        Command::Prices(Deferred(command)) => block_on(prices::run(command, context)),
        Command::Audit(Deferred(command)) => block_on(audit::run(command, context)),
        Command::Usage(Deferred(command)) => block_on(usage::run(command, context)),
        Command::Plan(arguments) => block_on(stack::plan::run(*arguments, context)),
        Command::Deploy(arguments) => block_on(stack::deploy::run(*arguments, context)),
        Command::Upgrade(arguments) => block_on(stack::upgrade::run(*arguments, context)),
        Command::Status(Deferred(arguments)) => block_on(stack::status::run(arguments, context)),
        Command::Outputs(Deferred(arguments)) => block_on(stack::outputs::run(arguments, context)),
        Command::List(Deferred(arguments)) => block_on(stack::list::run(arguments, context)),
        Command::Drift(Deferred(arguments)) => block_on(stack::drift::run(arguments, context)),
        Command::Delete(Deferred(arguments)) => block_on(stack::delete::run(arguments, context)),
        Command::CfnTemplate(arguments) => stack::template::run(&arguments, context),
        Command::Policy(arguments) => stack::policy::run(&arguments, context),
        Command::LambdaExport(arguments) => stack::lambda_export::run(&arguments, context),
        Command::Version(Deferred(arguments)) => block_on(version::run(arguments, context)),
        Command::Check(Deferred(arguments)) => block_on(check::run(arguments, context)),
        Command::Migrate(Deferred(arguments)) => block_on(migrate::run(arguments, context)),
        Command::Serve(Deferred(arguments)) => block_on_all_cores(serve::run(arguments, context)),
        Command::Ui(Deferred(arguments)) => block_on_all_cores(ui::run(arguments, context)),
        Command::Local(Deferred(command)) => local::run(command, context),
        Command::Completions(Deferred(arguments)) => Ok(completions::run(&arguments)),
        Command::Man(Deferred(arguments)) => man::run(&arguments),
    }
}

/// Runs a future to completion on a single-threaded runtime: commands mostly wait for responses.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    run_on(tokio::runtime::Builder::new_current_thread(), work)
}

/// Runs a future to completion on as many threads as the machine has cores.
fn block_on_all_cores<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    run_on(tokio::runtime::Builder::new_multi_thread(), work)
}

fn run_on<T>(mut runtime: tokio::runtime::Builder, work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = runtime.enable_all().build().map_err(|source| Error::Io {
        what: "the async runtime".to_owned(),
        doing: "started",
        source,
    })?;
    runtime.block_on(work)
}
