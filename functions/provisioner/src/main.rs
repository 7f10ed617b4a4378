//! The provisioner as Lambda runs it.

use std::process::ExitCode;
use std::sync::Arc;

use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::{Value, json};
use zae_limiter_function::Environment;
use zae_limiter_provisioner::Provisioner;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let provisioner = Arc::new(Provisioner::start(&Environment::of_process()));
    let served = lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| {
        let provisioner = Arc::clone(&provisioner);
        async move {
            let deadline = event.context.deadline();
            let handled = provisioner.handle(&event.payload, deadline).await;
            let (level, message) = match &handled {
                Ok(response) => ("INFO", response.to_string()),
                Err(failed) => ("ERROR", failed.to_string()),
            };
            let request = &event.context.request_id;
            println!(
                "{}",
                json!({"level": level, "requestId": request, "message": message})
            );
            match handled {
                Err(failed) if failed.is_refused_response() => Ok(Value::Null),
                handled => handled.map_err(lambda_runtime::Error::from),
            }
        }
    }));
    match served.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}", json!({"level": "ERROR", "message": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}
