//! Bucket writes past the SDK's own serialization: an interceptor that sends a body which is ready, and returns that of the
//! response unread.
//!
//! The SDK still resolves credentials and endpoint, signs, and sends. Its input and output have no place for a body, so the request's
//! stands in the update expression, and the response's in an attribute without a name.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use aws_runtime::invocation_id::InvocationIdInterceptor;
use aws_runtime::request_info::RequestInfoInterceptor;
use aws_runtime::user_agent::UserAgentInterceptor;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextMut, BeforeSerializationInterceptorContextRef,
    BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{Builder, ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ConsumedCapacity};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{Error, Input, Output};
use aws_smithy_runtime_api::client::interceptors::{disable_interceptor, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::ser_de::{
    DeserializeResponse, SerializeRequest, SharedRequestSerializer, SharedResponseDeserializer,
};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::{Storable, StoreReplace};

use super::response;

const NAME: &str = "DirectWrites";
/// The name of the attribute in which the response's body stands.
const BODY: &str = "";

/// A client that [`send`] works with: the same one if it is such a client already.
pub(super) fn client_for(client: &Client) -> Client {
    let has_it = client.config().interceptors().any(|one| one.name() == NAME);
    if has_it {
        return client.clone();
    }
    Client::from_conf(with_direct_writes(client.config().to_builder()).build())
}

/// A configuration whose clients can send bucket writes. Without it, [`BucketWriter`](crate::BucketWriter) makes a client of its own,
/// which has connections of its own.
pub fn with_direct_writes(mut config: Builder) -> Builder {
    config.push_interceptor(SharedInterceptor::permanent(DirectWrites::default()));
    config
}

/// Sends the body of an UpdateItem once; the body of the response.
pub(super) async fn send(
    client: &Client,
    table: &str,
    body: String,
) -> Result<Vec<u8>, SdkError<UpdateItemError, HttpResponse>> {
    let request = client.update_item().table_name(table).update_expression(body);
    let answer = request.send().await?;
    Ok(
        match answer
            .attributes
            .and_then(|mut attributes| attributes.remove(BODY))
        {
            Some(AttributeValue::B(body)) => body.into_inner(),
            _ => Vec::new(),
        },
    )
}

/// The body that stands in the place of the update expression. No expression begins with a brace.
fn body_in(input: &Input) -> Option<&str> {
    let input = input.downcast_ref::<UpdateItemInput>()?;
    let body = input.update_expression.as_deref()?;
    body.starts_with('{').then_some(body)
}

#[derive(Debug, Default)]
struct DirectWrites {
    /// The user agent of the first request. Putting it together takes the SDK longer than all our own work on a request.
    user_agent: Arc<OnceLock<String>>,
}

/// The request is one of ours.
#[derive(Debug)]
struct IsDirect;

impl Storable for IsDirect {
    type Storer = StoreReplace<Self>;
}

/// Somebody counts the consumed capacity.
#[derive(Debug)]
struct IsMetered;

impl Storable for IsMetered {
    type Storer = StoreReplace<Self>;
}

#[dyn_dispatch_hint]
impl Intercept for DirectWrites {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read_before_execution(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if body_in(context.input()).is_none() {
            return Ok(());
        }
        let serializer = ReadyBody {
            user_agent: self.user_agent.clone(),
        };
        let state = config.interceptor_state();
        state.store_put(IsDirect);
        state.store_put(SharedRequestSerializer::new(serializer));
        // Both number the SDK's own retries, which are off.
        state.store_put(disable_interceptor::<InvocationIdInterceptor>("not retried"));
        state.store_put(disable_interceptor::<RequestInfoInterceptor>("not retried"));
        if self.user_agent.get().is_some() {
            state.store_put(disable_interceptor::<UserAgentInterceptor>("known"));
        }
        Ok(())
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.user_agent.get().is_none()
            && config.load::<IsDirect>().is_some()
            && let Some(user_agent) = context.request().headers().get("user-agent")
        {
            // Whoever was first, it is the same.
            let _ = self.user_agent.set(user_agent.to_owned());
        }
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // Errors are for the SDK to read.
        if context.response().status().is_success() && config.load::<IsDirect>().is_some() {
            config
                .interceptor_state()
                .store_put(SharedResponseDeserializer::new(UnreadBody));
        }
        Ok(())
    }
}

/// Makes the request out of a body that is ready.
#[derive(Debug)]
struct ReadyBody {
    user_agent: Arc<OnceLock<String>>,
}

impl SerializeRequest for ReadyBody {
    fn serialize_input(&self, input: Input, config: &mut ConfigBag) -> Result<HttpRequest, BoxError> {
        let input = input
            .downcast::<UpdateItemInput>()
            .map_err(|_| "the input is no UpdateItem")?;
        let mut body = input.update_expression.unwrap_or_default();
        if let Some(wanted) = input.return_consumed_capacity
            && body.ends_with('}')
        {
            body.pop();
            body.push_str(",\"ReturnConsumedCapacity\":\"");
            body.push_str(wanted.as_str());
            body.push_str("\"}");
            config.interceptor_state().store_put(IsMetered);
        }
        let length = body.len().to_string();
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST")?;
        let headers = request.headers_mut();
        headers.try_insert("content-type", "application/x-amz-json-1.0")?;
        headers.try_insert("x-amz-target", "DynamoDB_20120810.UpdateItem")?;
        headers.try_insert("content-length", length)?;
        if let Some(user_agent) = self.user_agent.get() {
            headers.try_insert("user-agent", user_agent.clone())?;
        }
        Ok(request)
    }
}

/// Returns the body of a response in the place of an attribute.
#[derive(Debug)]
struct UnreadBody;

impl DeserializeResponse for UnreadBody {
    fn deserialize_nonstreaming_with_config(
        &self,
        response: &HttpResponse,
        config: &ConfigBag,
    ) -> Result<Output, OrchestratorError<Error>> {
        let body = response.body().bytes().unwrap_or_default();
        let mut output = UpdateItemOutput::builder().set_attributes(Some(HashMap::from([(
            BODY.to_owned(),
            AttributeValue::B(Blob::new(body)),
        )])));
        if config.load::<IsMetered>().is_some() {
            let units = response::consumed_units(body).map_err(OrchestratorError::other)?;
            let consumed = ConsumedCapacity::builder().set_capacity_units(units);
            output = output.consumed_capacity(consumed.build());
        }
        Ok(Output::erase(output.build()))
    }
}
