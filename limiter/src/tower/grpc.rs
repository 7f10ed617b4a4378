//! Refusals of gRPC calls: a status in the head of a response without messages.

use std::fmt::Write;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::Error;
use crate::http::{Kind, problem_response};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// True for the requests that tonic and other gRPC clients send; gRPC-Web is none of them.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(CONTENT_TYPE).map(HeaderValue::to_str) else {
        return false;
    };
    let rest = value.strip_prefix("application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The response to a gRPC call that is not admitted, with the header fields as metadata.
pub(super) fn response(error: &Error) -> Response<String> {
    let kind = Kind::of(error);
    let (head, _) = problem_response(error).into_parts();
    let mut response = Response::new(String::new());
    *response.headers_mut() = head.headers;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(GRPC_STATUS, HeaderValue::from(code(kind)));
    if let Ok(message) = HeaderValue::try_from(percent_encoded(&kind.detail(error))) {
        headers.insert(GRPC_MESSAGE, message);
    }
    if kind != Kind::QuotaExceeded {
        headers.remove(RETRY_AFTER);
    }
    response
}

/// The status code of the gRPC specification.
const fn code(kind: Kind) -> u16 {
    match kind {
        Kind::InvalidRequest => 3,                                       // INVALID_ARGUMENT
        Kind::Disabled => 7,                                             // PERMISSION_DENIED
        Kind::QuotaExceeded => 8,                                        // RESOURCE_EXHAUSTED
        Kind::NoLimits => 9,                                             // FAILED_PRECONDITION
        Kind::Internal => 13,                                            // INTERNAL
        Kind::Unavailable | Kind::Overloaded | Kind::ShuttingDown => 14, // UNAVAILABLE
    }
}

/// Visible ASCII characters and spaces stay as they are, except the percent sign.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_grpc_is_grpc() {
        for (value, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;x=1", true),
            ("application/grpc-web", false),
            ("application/json", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(is_grpc(&headers), expected, "{value}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(percent_encoded("100 % é\n"), "100 %25 %C3%A9%0A");
    }
}
