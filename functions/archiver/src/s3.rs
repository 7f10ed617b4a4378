//! The bucket that holds the archive: PutObject on the SDK's runtime.
//!
//! The SDK's S3 client is not linked. It can do everything that S3 can, and was a third of the archive (ADR 101).

use aws_runtime::auth::sigv4::{SCHEME_ID, SigV4AuthScheme};
use aws_runtime::auth::{SigV4OperationSigningConfig, SigningOptions};
use aws_runtime::recursion_detection::RecursionDetectionInterceptor;
use aws_runtime::user_agent::{ApiMetadata, UserAgentInterceptor};
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::auth::AuthSchemeOptionResolverParams;
use aws_smithy_runtime_api::client::auth::static_resolver::StaticAuthSchemeOptionResolver;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_runtime_api::client::runtime_plugin::StaticRuntimePlugin;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::Layer;
use aws_smithy_types::error::ErrorMetadata;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::region::SigningRegion;
use aws_types::{SdkConfig, SigningName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zae_limiter_function::CallError;

use crate::bucket_url::bucket_url;
use crate::{Object, Store};

/// A bucket in S3.
#[derive(Debug, Clone)]
pub struct S3 {
    put: Operation<Object, (), ErrorMetadata>,
}

impl S3 {
    /// The bucket of that name. Region, endpoint, credentials, timeouts and HTTP client are those of the configuration; its
    /// retries are not used.
    pub fn new(config: &SdkConfig, bucket: &str) -> Self {
        let timeouts = config.timeout_config().cloned();
        let mut put = Operation::builder()
            .service_name("s3")
            .operation_name("PutObject")
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&bucket_url(config, bucket))
            .timeout_config(timeouts.unwrap_or_else(TimeoutConfig::disabled))
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .no_retry()
            .with_connection_poisoning()
            .interceptor(UserAgentInterceptor::new())
            .interceptor(RecursionDetectionInterceptor::new())
            .runtime_plugin(signatures(config))
            .serializer(request)
            .deserializer(outcome);
        if let Some(client) = config.http_client() {
            put = put.http_client(client);
        }
        Self { put: put.build() }
    }
}

impl Store for S3 {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        let put = self.put.invoke(object.clone()).await;
        put.map_err(|error| CallError::from(&error))
    }
}

/// Requests are signed as S3 wants it: the path is encoded once, and the hash of the body is a header.
fn signatures(config: &SdkConfig) -> StaticRuntimePlugin {
    let mut signing_options = SigningOptions::default();
    signing_options.double_uri_encode = false;
    signing_options.normalize_uri_path = false;
    signing_options.content_sha256_header = true;
    let mut settings = Layer::new("S3");
    settings.store_put(SigV4OperationSigningConfig {
        region: config.region().cloned().map(SigningRegion::from),
        name: Some(SigningName::from_static("s3")),
        signing_options,
        ..SigV4OperationSigningConfig::default()
    });
    settings.store_put(AuthSchemeOptionResolverParams::new(()));
    settings.store_put(ApiMetadata::new("s3", env!("CARGO_PKG_VERSION")));
    let schemes = StaticAuthSchemeOptionResolver::new(vec![SCHEME_ID]);
    let mut components = RuntimeComponentsBuilder::new("S3")
        .with_auth_scheme(SigV4AuthScheme::new())
        .with_auth_scheme_option_resolver(Some(schemes));
    if let Some(credentials) = config.credentials_provider() {
        components.set_identity_resolver(SCHEME_ID, credentials);
    }
    StaticRuntimePlugin::new()
        .with_config(settings.freeze())
        .with_runtime_components(components)
}

fn request(object: Object) -> Result<HttpRequest, BoxError> {
    let mut crc = flate2::Crc::new();
    crc.update(&object.body);
    let length = object.body.len();
    let mut request = HttpRequest::new(SdkBody::from(object.body));
    request.set_method("PUT")?;
    request.set_uri(format!("/{}", encoded(&object.key)))?;
    let headers = request.headers_mut();
    headers.try_insert("content-type", Object::CONTENT_TYPE)?;
    headers.try_insert("content-encoding", Object::CONTENT_ENCODING)?;
    headers.try_insert("content-length", length.to_string())?;
    // Required for a bucket with Object Lock.
    headers.try_insert("x-amz-sdk-checksum-algorithm", "CRC32")?;
    headers.try_insert("x-amz-checksum-crc32", STANDARD.encode(crc.sum().to_be_bytes()))?;
    Ok(request)
}

fn outcome(response: &HttpResponse) -> Result<(), OrchestratorError<ErrorMetadata>> {
    if response.status().is_success() {
        return Ok(());
    }
    let body = response.body().bytes().unwrap_or_default();
    Err(OrchestratorError::operation(error(&String::from_utf8_lossy(
        body,
    ))))
}

/// The error in the body of a response: `<Error><Code>…</Code><Message>…</Message>…</Error>`. Whatever else answers, such as a
/// proxy, has neither, and its status decides.
fn error(body: &str) -> ErrorMetadata {
    let text = |open: &str, close: &str| {
        let (_, rest) = body.split_once(open)?;
        rest.split_once(close).map(|(text, _)| text)
    };
    let mut error = ErrorMetadata::builder();
    if let Some(code) = text("<Code>", "</Code>") {
        error = error.code(code);
    }
    if let Some(message) = text("<Message>", "</Message>") {
        error = error.message(message);
    }
    error.build()
}

/// The key as the path of a URL. S3 signs over the bytes outside of this set in their encoded form, `=` among them.
fn encoded(key: &str) -> String {
    let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
    let mut path = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            _ => path.extend(['%', digit(byte >> 4), digit(byte & 0xF)]),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_s3_has_its_code_and_message_and_that_of_others_has_none() {
        let body = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist\
                    </Message><BucketName>archive</BucketName></Error>";
        let read = error(body);
        assert_eq!(read.code(), Some("NoSuchBucket"));
        assert_eq!(read.message(), Some("The specified bucket does not exist"));
        for body in [
            "",
            "Bad Gateway",
            "<Error><Code>",
            r#"{"__type":"FutureException"}"#,
        ] {
            assert_eq!(error(body).code(), None, "{body}");
        }
    }

    #[test]
    fn a_key_is_encoded_as_s3_encodes_it_for_signatures() {
        assert_eq!(
            encoded("audit/year=2026/01KG-_.~ é+.jsonl.gz"),
            "audit/year%3D2026/01KG-_.~%20%C3%A9%2B.jsonl.gz"
        );
    }
}
