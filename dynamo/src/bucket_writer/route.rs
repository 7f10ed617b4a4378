//! How a bucket write reaches the table: endpoint, connections, credentials and user agent of the SDK's client.
//!
//! The SDK resolves all of this for each call and has no function that returns it. So it prepares an UpdateItem, and an interceptor
//! stops that request before it is sent and keeps what it found. Nothing leaves the process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::auth::{AuthScheme, AuthSchemeId};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::identity::{ResolveCachedIdentity, SharedIdentityResolver};
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::Layer;
use zae_limiter_schema::Timestamp;

use super::sign::{CONTENT_TYPE, Signer, TARGET};
use crate::CallError;

/// What every bucket write of a client has in common.
pub(super) struct Route {
    /// A request without body and signature.
    template: HttpRequest,
    connector: SharedHttpConnector,
    /// None if the client does not sign.
    auth: Option<Auth>,
}

/// Who signs.
struct Auth {
    /// Whose credentials the route was found with: the endpoint may depend on their account.
    access_key_id: String,
    signer: Signer,
    resolver: SharedIdentityResolver,
    components: RuntimeComponents,
    config: ConfigBag,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("uri", &self.template.uri())
            .finish_non_exhaustive()
    }
}

impl Route {
    /// The route of a client to a table.
    pub(super) async fn find(client: &Client, table: &str) -> Result<Self, CallError> {
        let finder = RouteFinder::default();
        let request = client.update_item().table_name(table).customize();
        let stopped = request.interceptor(finder.clone()).send().await;
        match (finder.found(), stopped) {
            // A mistake of the configuration, which no later attempt mends.
            (Some(route), _) => route.map_err(|error| CallError::Invalid(error.to_string())),
            (None, Err(error)) => Err(CallError::from(&error)),
            (None, Ok(_)) => Err(CallError::Invalid("the SDK ran no interceptors".to_owned())),
        }
    }

    fn of(
        request: &HttpRequest,
        components: &RuntimeComponents,
        config: &ConfigBag,
    ) -> Result<Self, BoxError> {
        let headers = request.headers();
        let mut template = HttpRequest::empty();
        template.set_method("POST")?;
        template.set_uri(request.uri())?;
        template.headers_mut().try_insert("content-type", CONTENT_TYPE)?;
        template.headers_mut().try_insert("x-amz-target", TARGET)?;
        if let Some(user_agent) = headers.get("user-agent") {
            template
                .headers_mut()
                .try_insert("user-agent", user_agent.to_owned())?;
        }
        let timeouts = config.load::<TimeoutConfig>();
        let mut settings = HttpConnectorSettings::builder();
        settings.set_connect_timeout(timeouts.and_then(TimeoutConfig::connect_timeout));
        settings.set_read_timeout(timeouts.and_then(TimeoutConfig::read_timeout));
        let http_client = components.http_client().ok_or("the client has no HTTP client")?;
        let auth = headers.get("authorization");
        Ok(Self {
            template,
            connector: http_client.http_connector(&settings.build(), components),
            auth: auth
                .map(|header| Auth::of(header, request.uri(), components, config))
                .transpose()?,
        })
    }

    /// The credentials as they are now: from the SDK's cache, which replaces them before they expire. None if the client does not sign.
    pub(super) async fn credentials(&self) -> Result<Option<Credentials>, CallError> {
        let Some(auth) = &self.auth else { return Ok(None) };
        let cache = auth.components.identity_cache();
        let identity = cache
            .resolve_cached_identity(auth.resolver.clone(), &auth.components, &auth.config)
            .await
            .map_err(not_dispatched)?;
        let credentials = identity.data::<Credentials>().cloned();
        let wrong =
            || CallError::Invalid("the client's identity is not a pair of AWS credentials".to_owned());
        credentials.map(Some).ok_or_else(wrong)
    }

    /// True if this route is the one that the SDK would find with these credentials.
    pub(super) fn is_for(&self, credentials: Option<&Credentials>) -> bool {
        self.auth.as_ref().map(|auth| auth.access_key_id.as_str())
            == credentials.map(Credentials::access_key_id)
    }

    /// A signed request with this body.
    pub(super) fn request(
        &self,
        body: String,
        credentials: Option<&Credentials>,
        now: Timestamp,
    ) -> Result<HttpRequest, CallError> {
        let invalid =
            |what: &dyn fmt::Display| CallError::Invalid(format!("the request cannot be sent: {what}"));
        let template = self.template.try_clone();
        let mut request = template.ok_or_else(|| invalid(&"it cannot be copied"))?;
        let headers = request.headers_mut();
        if let (Some(auth), Some(credentials)) = (&self.auth, credentials) {
            let signature = auth.signer.sign(&body, credentials, now);
            let signature = signature.ok_or_else(|| invalid(&"the clock shows no date"))?;
            let token = credentials.session_token().map(str::to_owned);
            let signed = [
                ("x-amz-date", Some(signature.date)),
                ("x-amz-security-token", token),
                ("authorization", Some(signature.authorization)),
            ];
            for (name, value) in signed {
                if let Some(value) = value {
                    headers.try_insert(name, value).map_err(|error| invalid(&error))?;
                }
            }
        }
        *request.body_mut() = SdkBody::from(body);
        Ok(request)
    }

    /// Sends a request once.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, CallError> {
        let response = self.connector.call(request).await;
        response.map_err(|error| CallError::from(&dispatch_failure(error)))
    }
}

impl Auth {
    /// From the header `authorization` of a request that the SDK signed.
    fn of(
        header: &str,
        uri: &str,
        components: &RuntimeComponents,
        config: &ConfigBag,
    ) -> Result<Self, BoxError> {
        let scope = header
            .strip_prefix("AWS4-HMAC-SHA256 Credential=")
            .and_then(|rest| rest.split(',').next())
            .map(|scope| scope.split('/').collect::<Vec<_>>());
        let Some([access_key_id, _, region, service, _]) = scope.as_deref() else {
            return Err(
                "bucket writes are signed with Signature Version 4, and this client signs otherwise".into(),
            );
        };
        let scheme = components.auth_scheme(AuthSchemeId::from("sigv4"));
        let resolver = scheme.and_then(|scheme| scheme.identity_resolver(components));
        // What the cache of credentials asks the configuration for.
        let mut layer = Layer::new("bucket writes");
        layer.store_or_unset(config.load::<TimeoutConfig>().cloned());
        layer.store_or_unset(config.load::<RetryConfig>().cloned());
        Ok(Self {
            access_key_id: (*access_key_id).to_owned(),
            signer: Signer::new(&uri.parse()?, region, service),
            resolver: resolver.ok_or("the client has no credentials")?,
            components: components.clone(),
            config: ConfigBag::of_layers([layer]),
        })
    }
}

/// The error of a request that was not sent, as the SDK would report it.
fn not_dispatched(error: BoxError) -> CallError {
    CallError::from(&dispatch_failure(ConnectorError::other(error, None)))
}

fn dispatch_failure(error: ConnectorError) -> SdkError<UpdateItemError, HttpResponse> {
    SdkError::dispatch_failure(error)
}

/// Finds the route of a request, and stops the request.
#[derive(Debug, Clone, Default)]
struct RouteFinder {
    found: Arc<Mutex<Option<Result<Route, BoxError>>>>,
}

impl RouteFinder {
    fn found(&self) -> Option<Result<Route, BoxError>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[dyn_dispatch_hint]
impl Intercept for RouteFinder {
    fn name(&self) -> &'static str {
        "RouteFinder"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let route = Route::of(context.request(), components, config);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(route);
        Err("the route is found, and the request is not sent".into())
    }
}
