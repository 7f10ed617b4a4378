//! The loop around a function: runtime API, time budget, log.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde_json::json;
use zae_limiter_schema::Timestamp;

use crate::report::millis;
use crate::{Batch, DynamoDbEventResponse, Environment, Function, InvalidSetting, Invocation, Level, Report};

/// Starts a function from the environment of the process and serves Lambda until the process ends.
pub async fn run<F: Function>(start: impl FnOnce(&Environment) -> Result<F, InvalidSetting>) -> ExitCode {
    let environment = Environment::of_process();
    std::panic::set_hook(Box::new(|panic| log_error(panic)));
    let level = match log_level(&environment) {
        Ok(level) => level,
        Err(error) => return give_up(&error),
    };
    match start(&environment) {
        Ok(function) => serve(function, level).await,
        Err(error) => give_up(&error),
    }
}

fn log_level(environment: &Environment) -> Result<Level, InvalidSetting> {
    match environment.optional("LOG_LEVEL") {
        Some(_) => environment.parsed("LOG_LEVEL", Level::parse),
        None => Ok(Level::Info),
    }
}

async fn serve<F: Function>(function: F, level: Level) -> ExitCode {
    let function = Arc::new(function);
    let served = lambda_runtime::run(service_fn(move |event: LambdaEvent<Batch>| {
        let function = Arc::clone(&function);
        async move { invoke(&*function, level, &event.payload, &event.context).await }
    }))
    .await;
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => give_up(&error),
    }
}

async fn invoke<F: Function>(
    function: &F,
    level: Level,
    batch: &Batch,
    context: &Context,
) -> Result<DynamoDbEventResponse, lambda_runtime::Error> {
    let started = Instant::now();
    let mut report = Report::new(level, F::METRICS);
    let response = function
        .handle(batch, &Invocation::until(context.deadline()), &mut report)
        .await;
    if let Err(error) = &response {
        report.note(Level::Error, error.to_string());
    }
    let name = &context.env_config.function_name;
    for line in report.lines(name, &context.request_id, SystemTime::now(), started.elapsed()) {
        println!("{line}");
    }
    Ok(response?)
}

fn give_up(error: &dyn Display) -> ExitCode {
    log_error(error);
    ExitCode::FAILURE
}

fn log_error(error: &dyn Display) {
    let now = Timestamp::from_millis(millis(SystemTime::now()));
    println!(
        "{}",
        json!({"timestamp": now, "level": "ERROR", "message": error.to_string()})
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_log_level_names_variable_value_and_rule() {
        let environment = Environment::of([("LOG_LEVEL", "chatty")]);
        assert_eq!(
            log_level(&environment).map_err(|error| error.to_string()),
            Err(
                r#"environment variable LOG_LEVEL is "chatty": it must be debug, info, warn or error"#
                    .to_owned()
            )
        );
        assert_eq!(log_level(&Environment::of([])), Ok(Level::Info));
    }
}
