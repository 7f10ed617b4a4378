//! The example `llm_gateway`, between a client and a fake provider, over real HTTP on this machine.

#[path = "../../examples/llm_gateway/gateway/mod.rs"]
mod gateway;
mod provider;

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use zae_limiter::{Limit, RateLimiter};

use gateway::{Settings, Upstreams, router};
use provider::{FakeProvider, Pieces, Reply};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// Serves on a free port until the test's runtime ends.
async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

struct Stage {
    provider: FakeProvider,
    limiter: RateLimiter,
    url: String,
}

impl Stage {
    async fn new(rpm: u64, cached_percent: u8) -> Self {
        let provider = FakeProvider::default();
        let upstream = provider.start().await;
        // So slow that nothing is refilled while a test runs.
        let limit = |name, tokens| Limit::custom(name, tokens, tokens, 1, Limit::MAX_PERIOD_SECONDS).unwrap();
        let parallel = Limit::concurrency("parallel", 2, Duration::from_mins(10)).unwrap();
        let limits = [limit("rpm", rpm), limit("tpm", 10_000), parallel];
        let limiter = RateLimiter::embedded().default_limits(limits).await.unwrap();
        let settings = Settings {
            callers: HashMap::from([("key-1".to_owned(), "user-1".to_owned())]),
            upstreams: Upstreams::new((&upstream, "secret-1"), (&upstream, "secret-2")).unwrap(),
            cached_percent,
        };
        let url = serve(router(settings, limiter.clone())).await;
        Self {
            provider,
            limiter,
            url,
        }
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> Response<Body> {
        let request = Request::post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {key}"))
            .header("x-trace", "1")
            .body(Body::from(body.to_string()))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        client.request(request).await.unwrap().map(Body::new)
    }

    /// What is left of `rpm` and `tpm` of a model when everything is written.
    async fn left(&self, model: &str) -> [i64; 2] {
        self.limiter.settled().await;
        let left = self.limiter.acquire("user-1", model).peek().await.unwrap();
        ["rpm", "tpm"].map(|limit| left.tokens(limit).unwrap())
    }
}

/// How many more calls may be in flight when everything is written.
async fn permits_left(stage: &Stage) -> i64 {
    stage.limiter.settled().await;
    let left = stage.limiter.acquire("user-1", "claude").peek().await.unwrap();
    left.tokens("parallel").unwrap()
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply {
        status,
        content_type: "application/json",
        body: Pieces::whole(body.to_string()),
    }
}

fn stream_reply(body: Pieces) -> Reply {
    Reply {
        status: 200,
        content_type: "text/event-stream",
        body,
    }
}

fn events(events: &[Value]) -> String {
    let lines: Vec<_> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    lines.concat()
}

/// Two tokens by the length of its role and content, and a response of at most 500.
fn prompt(model: &str) -> Value {
    json!({ "model": model, "max_tokens": 500, "messages": [{ "role": "user", "content": "hey!" }] })
}

#[tokio::test]
async fn a_whole_response_is_counted_by_its_usage() {
    let stage = Stage::new(10, 100).await;
    let body = json!({
        "choices": [],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": { "cached_tokens": 60 } },
    });
    stage.provider.reply(json_reply(200, &body));
    let response = stage.post(CHAT, "key-1", &prompt("gpt-4")).await;
    assert_eq!(response.status(), 200);
    let fields = &response.headers()["ratelimit"];
    assert!(
        fields.to_str().unwrap().contains("\"rpm\";r=9"),
        "not the provider's own: {fields:?}"
    );
    assert!(
        fields.to_str().unwrap().contains("\"tpm\";r=9498"),
        "the estimate is 502: {fields:?}"
    );
    assert_eq!(text(response).await, body.to_string());
    assert_eq!(stage.left("gpt-4").await, [9, 9_880]);
}

#[tokio::test]
async fn the_provider_gets_its_own_key_and_the_rest_of_the_request() {
    let stage = Stage::new(10, 100).await;
    for (path, name, value) in [
        (CHAT, "authorization", "Bearer secret-1"),
        (MESSAGES, "x-api-key", "secret-2"),
    ] {
        stage.provider.reply(json_reply(200, &json!({})));
        text(stage.post(path, "key-1", &prompt("m")).await).await;
        let received = stage.provider.received().pop().unwrap();
        assert_eq!(received.path, path);
        assert_eq!(received.headers[name], value);
        assert_eq!(received.headers["x-trace"], "1");
        assert_eq!(received.headers["accept-encoding"], "identity");
        assert!(!format!("{:?}", received.headers).contains("key-1"));
        assert_eq!(received.body, prompt("m"));
    }
}

#[tokio::test]
async fn a_stream_of_completions_is_counted_by_its_last_chunk() {
    let stage = Stage::new(10, 100).await;
    let sent = events(&[
        json!({ "choices": [{ "delta": { "content": "hi" } }], "usage": null }),
        json!({ "choices": [], "usage": { "prompt_tokens": 40, "completion_tokens": 3 } }),
    ]) + "data: [DONE]\n\n";
    stage.provider.reply(stream_reply(Pieces::whole(sent.clone())));
    let mut request = prompt("gpt-4");
    request["stream"] = true.into();
    let response = stage.post(CHAT, "key-1", &request).await;
    assert_eq!(text(response).await, sent);
    let received = stage.provider.received().pop().unwrap();
    assert_eq!(received.body["stream_options"]["include_usage"], true);
    assert_eq!(stage.left("gpt-4").await, [9, 9_957]);
}

#[tokio::test]
async fn a_stream_of_messages_is_counted_by_its_first_and_last_events_and_cached_tokens_in_part() {
    let stage = Stage::new(10, 10).await;
    let (sender, pieces) = Pieces::channel();
    stage.provider.reply(stream_reply(pieces));
    let response = stage.post(MESSAGES, "key-1", &prompt("claude")).await;
    assert_eq!(
        stage.left("claude").await,
        [9, 9_498],
        "the estimate, while it streams"
    );
    let usage = json!({ "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 1 });
    let sent = events(&[
        json!({ "type": "message_start", "message": { "usage": usage } }),
        json!({ "type": "message_delta", "usage": { "output_tokens": 45 } }),
    ]);
    // Cut anywhere.
    let (one, other) = sent.split_at(sent.len() / 3);
    sender.send(Bytes::from(one.to_owned())).unwrap();
    sender.send(Bytes::from(other.to_owned())).unwrap();
    drop(sender);
    assert_eq!(text(response).await, sent);
    assert_eq!(stage.left("claude").await, [9, 10_000 - 10 - 20 - 30 - 45]);
}

#[tokio::test]
async fn a_client_that_disconnects_pays_the_estimate_and_the_provider_is_stopped() {
    let stage = Stage::new(10, 100).await;
    let (sender, pieces) = Pieces::channel();
    stage.provider.reply(stream_reply(pieces));
    let mut response = stage.post(MESSAGES, "key-1", &prompt("claude")).await;
    sender.send(Bytes::from("data: {}\n\n")).unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    sender.closed().await;
    assert_eq!(stage.left("claude").await, [9, 9_498]);
    assert_eq!(stage.limiter.shutdown().await.unwritten_total, 0);
}

#[tokio::test]
async fn a_stream_holds_its_permit_until_its_last_byte() {
    let stage = Stage::new(10, 100).await;
    let mut streams = vec![];
    for _ in 0..2 {
        let (sender, pieces) = Pieces::channel();
        stage.provider.reply(stream_reply(pieces));
        let mut response = stage.post(MESSAGES, "key-1", &prompt("claude")).await;
        sender.send(Bytes::from("data: {}\n\n")).unwrap();
        response.body_mut().frame().await.unwrap().unwrap();
        streams.push((sender, response));
    }
    assert_eq!(permits_left(&stage).await, 0);
    let refused = stage.post(MESSAGES, "key-1", &prompt("claude")).await;
    assert_eq!(refused.status(), 429);
    let (sender, response) = streams.pop().unwrap();
    sender.send(Bytes::from("data: [DONE]\n\n")).unwrap();
    drop(sender);
    text(response).await;
    assert_eq!(permits_left(&stage).await, 1);
    stage.provider.reply(json_reply(200, &json!({})));
    let admitted = stage.post(MESSAGES, "key-1", &prompt("claude")).await;
    assert_eq!(admitted.status(), 200);
}

#[tokio::test]
async fn a_client_that_hangs_up_in_a_stream_releases_its_permit() {
    let stage = Stage::new(10, 100).await;
    let (sender, pieces) = Pieces::channel();
    stage.provider.reply(stream_reply(pieces));
    let mut response = stage.post(MESSAGES, "key-1", &prompt("claude")).await;
    sender.send(Bytes::from("data: {}\n\n")).unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(permits_left(&stage).await, 1);
    drop(response);
    sender.closed().await;
    assert_eq!(permits_left(&stage).await, 2);
}

#[tokio::test]
async fn an_error_of_the_provider_costs_nothing() {
    let stage = Stage::new(10, 100).await;
    for status in [500, 429, 400] {
        stage.provider.reply(json_reply(status, &json!({ "error": {} })));
        let response = stage.post(CHAT, "key-1", &prompt("gpt-4")).await;
        assert_eq!(response.status(), status);
        text(response).await;
        assert_eq!(stage.left("gpt-4").await, [10, 10_000], "{status}");
    }
}

#[tokio::test]
async fn a_call_beyond_the_limit_is_refused_and_never_reaches_the_provider() {
    let stage = Stage::new(1, 100).await;
    stage.provider.reply(json_reply(200, &json!({})));
    text(stage.post(CHAT, "key-1", &prompt("gpt-4")).await).await;
    let response = stage.post(CHAT, "key-1", &prompt("gpt-4")).await;
    assert_eq!(response.status(), 429);
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["violated-policies"], json!(["rpm"]));
    assert_eq!(stage.provider.received().len(), 1);
}

#[tokio::test]
async fn requests_that_it_cannot_read_are_refused_before_anything_is_counted() {
    let stage = Stage::new(10, 100).await;
    let model_missing = json!({ "messages": [] });
    for (path, key, body, status) in [
        (CHAT, "key-2", &prompt("gpt-4"), 401),
        ("/v1/files", "key-1", &prompt("gpt-4"), 404),
        (CHAT, "key-1", &model_missing, 400),
        (CHAT, "key-1", &prompt("not#a#name"), 400),
    ] {
        let response = stage.post(path, key, body).await;
        assert_eq!(response.status(), status, "{path} {key} {body}");
    }
    assert!(stage.provider.received().is_empty());
    assert_eq!(stage.limiter.stats().granted, 0);
}
