//! Requests and responses of batches, rewritten on their way.

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

/// The body of a request.
pub(super) fn body(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap()
}

pub(super) fn rewrite(request: &mut HttpRequest, change: impl FnOnce(&mut Value)) {
    let mut changed = body(request);
    change(&mut changed);
    *request.body_mut() = SdkBody::from(changed.to_string());
}

/// Takes every other half of each table's entries out of a batch and returns it.
pub(super) fn hold_back_half(request: &mut HttpRequest) -> Value {
    let mut held_back = json!({});
    rewrite(request, |body| {
        for (table, wanted) in body["RequestItems"].as_object_mut().unwrap() {
            let write = wanted.is_array();
            let entries = if write { &mut *wanted } else { &mut wanted["Keys"] };
            let entries = entries.as_array_mut().unwrap();
            let rest = entries.split_off(entries.len().div_ceil(2));
            if !rest.is_empty() {
                held_back[table] = if write {
                    json!(rest)
                } else {
                    json!({ "Keys": rest })
                };
            }
        }
    });
    held_back
}

/// The response to a batch of which nothing was processed.
pub(super) fn nothing_processed(operation: &str, request: &HttpRequest) -> Value {
    let mut response = json!({});
    if operation == "BatchGetItem" {
        response["Responses"] = json!({});
    }
    response[unprocessed(operation)] = body(request)["RequestItems"].take();
    response
}

/// Adds what was held back to the response.
pub(super) fn return_unprocessed(operation: &str, response: &mut HttpResponse, held_back: Value) {
    if held_back == json!({}) {
        return;
    }
    let mut body: Value = serde_json::from_slice(response.body().bytes().unwrap_or_default()).unwrap();
    body[unprocessed(operation)] = held_back;
    *response.body_mut() = SdkBody::from(body.to_string());
}

fn unprocessed(operation: &str) -> &'static str {
    if operation == "BatchGetItem" {
        "UnprocessedKeys"
    } else {
        "UnprocessedItems"
    }
}
