//! What a request asks of a model, and an estimate of its cost.

use serde_json::{Value, json};

use super::api::Api;

/// Tokens of a response whose length the request does not bound.
const USUAL_RESPONSE: u64 = 1_000;
/// English has about four characters a token.
const BYTES_PER_TOKEN: u64 = 4;

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) api: Api,
    pub(crate) model: String,
    /// Tokens of the request, and of the longest response that it allows.
    pub(crate) estimate: u64,
    /// What to send on.
    pub(crate) body: Value,
}

impl Prompt {
    /// Reads the JSON of a request. The error says what is wrong with it.
    pub(crate) fn parse(api: Api, body: &[u8]) -> Result<Self, String> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
        let Some(model) = body["model"].as_str().map(str::to_owned) else {
            return Err("model must be a string".to_owned());
        };
        let estimate = input(&body).saturating_add(longest_response(api, &body));
        Ok(Self {
            api,
            model,
            estimate: estimate.max(1),
            body: with_usage(api, body),
        })
    }
}

fn input(body: &Value) -> u64 {
    let parts = ["messages", "system", "prompt", "input", "instructions", "tools"];
    let bytes: u64 = parts.iter().map(|part| text_length(&body[part])).sum();
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The bytes of all text in a value. Encoded images and files are no text.
fn text_length(value: &Value) -> u64 {
    match value {
        Value::String(text) if text.starts_with("data:") => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(values) => values.iter().map(text_length).sum(),
        Value::Object(members) => {
            let texts = members.iter().filter(|(name, _)| *name != "data");
            texts.map(|(_, value)| text_length(value)).sum()
        }
        _ => 0,
    }
}

fn longest_response(api: Api, body: &Value) -> u64 {
    let bounds: &[&str] = match api {
        Api::Completions => &["max_completion_tokens", "max_tokens"],
        Api::Responses => &["max_output_tokens"],
        Api::Messages => &["max_tokens"],
        Api::Embeddings => return 0,
    };
    let bound = bounds.iter().find_map(|name| body[name].as_u64());
    bound.unwrap_or(USUAL_RESPONSE)
}

/// A stream of completions reports its usage only if asked.
fn with_usage(api: Api, mut body: Value) -> Value {
    if api == Api::Completions && body["stream"] == true {
        if !body["stream_options"].is_object() {
            body["stream_options"] = json!({});
        }
        body["stream_options"]["include_usage"] = true.into();
    }
    body
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(api: Api, body: &Value) -> Prompt {
        Prompt::parse(api, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_estimate_is_the_prompt_and_the_longest_response() {
        let body = json!({
            "model": "gpt-4",
            "max_completion_tokens": 300,
            "messages": [
                { "role": "user", "content": "1234567890" },
                { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }] },
            ],
        });
        // Roles and types are text too: 4 + 10 + 4 + 9 bytes.
        assert_eq!(parse(Api::Completions, &body).estimate, 300 + 7);
    }

    #[test]
    fn without_a_bound_the_usual_response_is_estimated_and_none_for_embeddings() {
        let body = json!({ "model": "m", "input": "12345678" });
        assert_eq!(parse(Api::Responses, &body).estimate, 1_002);
        assert_eq!(parse(Api::Embeddings, &body).estimate, 2);
    }

    #[test]
    fn a_stream_of_completions_is_asked_for_its_usage_and_nothing_else_changes() {
        let body = json!({ "model": "m", "stream": true, "messages": [], "stream_options": { "x": 1 } });
        let sent = parse(Api::Completions, &body).body;
        assert_eq!(sent["stream_options"], json!({ "x": 1, "include_usage": true }));
        assert_eq!(parse(Api::Messages, &body).body, body);
        let whole = json!({ "model": "m", "messages": [] });
        assert_eq!(parse(Api::Completions, &whole).body, whole);
    }

    #[test]
    fn a_request_without_a_model_is_refused() {
        assert_eq!(
            Prompt::parse(Api::Messages, b"{}").unwrap_err(),
            "model must be a string"
        );
        assert!(Prompt::parse(Api::Messages, b"{").is_err());
    }
}
