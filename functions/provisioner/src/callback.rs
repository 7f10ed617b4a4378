//! The response to CloudFormation: a PUT to the pre-signed URL of the request.

use std::time::Duration;

use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

/// Attempts to deliver a response.
const ATTEMPTS: u32 = 5;
/// The longest that one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause after the first attempt. It doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// CloudFormation accepts responses of at most 4,096 bytes. The rest of a response is far below the difference.
const LONGEST_REASON: usize = 2_048;

/// Sends responses to CloudFormation.
#[derive(Debug, Clone)]
pub struct Callback {
    connector: SharedHttpConnector,
}

/// A response that CloudFormation did not take. The URL is not part of it: anyone with the URL can respond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("CloudFormation did not take the response after {attempts} attempts: {problem}")]
pub struct Undelivered {
    attempts: u32,
    problem: String,
    permanent: bool,
}

impl Undelivered {
    /// Whether the URL was refused, such as one that has expired: no attempt can succeed.
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }
}

/// Why one attempt failed, and whether every other would fail, too.
struct Problem {
    text: String,
    permanent: bool,
}

impl Problem {
    fn permanent(text: String) -> Self {
        Self {
            text,
            permanent: true,
        }
    }

    fn transient(text: String) -> Self {
        Self {
            text,
            permanent: false,
        }
    }
}

impl Default for Callback {
    fn default() -> Self {
        let settings = HttpConnectorSettings::builder()
            .connect_timeout(ATTEMPT_TIMEOUT)
            .read_timeout(ATTEMPT_TIMEOUT)
            .build();
        let connector = Connector::builder()
            .connector_settings(settings)
            .sleep_impl(TokioSleep::new())
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .build();
        Self {
            connector: SharedHttpConnector::new(connector),
        }
    }
}

impl Callback {
    /// The body of a response: what was done, or why it failed.
    pub fn body(echo: Value, outcome: &Result<Value, String>) -> Value {
        let mut body = echo;
        match outcome {
            Ok(data) => {
                body["Status"] = json!("SUCCESS");
                body["Data"] = data.clone();
            }
            Err(reason) => {
                body["Status"] = json!("FAILED");
                body["Reason"] = json!(shortened(reason));
            }
        }
        body
    }

    /// Sends a response, with at most 5 attempts. A URL that is refused is not tried again.
    pub async fn send(&self, url: &str, body: &Value) -> Result<(), Undelivered> {
        let mut attempts = 1;
        loop {
            let problem = match tokio::time::timeout(ATTEMPT_TIMEOUT, self.put(url, body)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(problem)) => problem,
                Err(_) => Problem::transient(format!("no response within {} s", ATTEMPT_TIMEOUT.as_secs())),
            };
            if problem.permanent || attempts == ATTEMPTS {
                return Err(Undelivered {
                    attempts,
                    problem: problem.text,
                    permanent: problem.permanent,
                });
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(attempts - 1)).await;
            attempts += 1;
        }
    }

    /// One attempt.
    async fn put(&self, url: &str, body: &Value) -> Result<(), Problem> {
        let mut request = HttpRequest::new(SdkBody::from(body.to_string()));
        // S3 signed the URL without a content type, so none may be sent.
        let made = request
            .set_method("PUT")
            .map_err(|_| ())
            .and_then(|()| request.set_uri(url).map_err(|_| ()));
        made.map_err(|()| Problem::permanent("the ResponseURL is not a URL".to_owned()))?;
        let response = self.connector.call(request).await;
        let response =
            response.map_err(|error| Problem::transient(format!("the connection failed: {error}")))?;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            status @ 400..=499 => Err(Problem::permanent(format!("status {status}"))),
            status => Err(Problem::transient(format!("status {status}"))),
        }
    }
}

fn shortened(reason: &str) -> String {
    if reason.len() <= LONGEST_REASON {
        return reason.to_owned();
    }
    let mut end = LONGEST_REASON;
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &reason[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_stays_below_what_cloudformation_accepts() {
        let body = Callback::body(json!({"StackId": "a".repeat(500)}), &Err("é".repeat(5_000)));
        assert!(body.to_string().len() < 4_096);
        assert_eq!(body["Status"], "FAILED");
        // Wherever the cut is, it is between characters.
        for start in ["", "x"] {
            let reason = format!("{start}{}", "é".repeat(5_000));
            let body = Callback::body(json!({}), &Err(reason));
            let reason = body["Reason"].as_str().unwrap_or_default();
            assert!(
                reason.len() > LONGEST_REASON - 2 && reason.ends_with("é…"),
                "{reason}"
            );
        }
        let body = Callback::body(json!({}), &Ok(json!({"Created": 1})));
        assert_eq!(body, json!({"Status": "SUCCESS", "Data": {"Created": 1}}));
    }

    #[tokio::test]
    async fn a_url_that_is_none_is_not_tried_again() {
        let error = Callback::default()
            .send("not a url", &json!({}))
            .await
            .unwrap_err();
        assert_eq!((error.attempts, error.is_permanent()), (1, true));
    }
}
