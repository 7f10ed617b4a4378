//! Counts calls to AWS, and holds them against the policies that are documented for those who make them.

use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use zae_limiter_stack::Clients;

use super::permits::Caller;
use super::requests::Request;

/// The names of the operations that were sent, retries included.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    caller: Caller,
    names: Arc<Mutex<Vec<String>>>,
}

impl Calls {
    pub(crate) fn of(caller: Caller) -> Self {
        Self {
            caller,
            names: Arc::default(),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }

    /// Clients like these whose calls are counted.
    pub(crate) fn counted(&self, clients: &Clients) -> Clients {
        macro_rules! counted {
            ($module:ident, $client:expr) => {
                $module::Client::from_conf(
                    $client
                        .config()
                        .to_builder()
                        .interceptor(self.clone())
                        .build(),
                )
            };
        }
        Clients {
            cloudformation: counted!(aws_sdk_cloudformation, clients.cloudformation),
            s3: counted!(aws_sdk_s3, clients.s3),
            dynamodb: counted!(aws_sdk_dynamodb, clients.dynamodb),
            cloudwatch: counted!(aws_sdk_cloudwatch, clients.cloudwatch),
            iam: counted!(aws_sdk_iam, clients.iam),
            lambda: counted!(aws_sdk_lambda, clients.lambda),
            logs: counted!(aws_sdk_cloudwatchlogs, clients.logs),
            sns: counted!(aws_sdk_sns, clients.sns),
            sqs: counted!(aws_sdk_sqs, clients.sqs),
            sts: counted!(aws_sdk_sts, clients.sts),
        }
    }
}

#[dyn_dispatch_hint]
impl Intercept for Calls {
    fn name(&self) -> &'static str {
        "Calls"
    }

    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let metadata = cfg.load::<Metadata>().expect("every operation has a name");
        self.caller.must_be_allowed(&Request {
            service: metadata.service().to_owned(),
            operation: metadata.name().to_owned(),
            input: format!("{:?}", context.input()),
        });
        Ok(())
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let metadata = cfg.load::<Metadata>().expect("every operation has a name");
        self.names.lock().unwrap().push(metadata.name().to_owned());
        Ok(())
    }
}
