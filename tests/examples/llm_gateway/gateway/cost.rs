//! The cost of a call, read from its response as it passes.

use axum::http::header::CONTENT_TYPE;
use axum::http::response::Parts;
use zae_limiter::tower::ResponseCost;

use super::api::Api;
use super::event_stream::EventStream;
use super::usage::{StreamedUsage, Usage};

/// A response longer than this is not read: the estimate stands.
const MAX_RESPONSE: usize = 16 << 20;

/// Corrects the limit `tpm` from the estimate to what the provider says. Without its word (an interrupted stream, a
/// response that is too long), the estimate stands.
#[derive(Debug)]
pub(crate) struct TokenCost {
    api: Api,
    estimate: u64,
    cached_percent: u8,
    response: Response,
}

#[derive(Debug)]
enum Response {
    Whole(Vec<u8>),
    Events(EventStream, StreamedUsage),
}

impl TokenCost {
    pub(crate) fn new(api: Api, estimate: u64, cached_percent: u8) -> Self {
        Self {
            api,
            estimate,
            cached_percent,
            response: Response::Whole(vec![]),
        }
    }

    fn usage(&self) -> Option<Usage> {
        match &self.response {
            Response::Whole(body) => Usage::of_response(self.api, &serde_json::from_slice(body).ok()?),
            Response::Events(_, usage) => usage.total(),
        }
    }
}

impl ResponseCost for TokenCost {
    fn head(&mut self, head: &Parts) {
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        if content_type.is_some_and(|value| value.starts_with("text/event-stream")) {
            self.response = Response::Events(EventStream::default(), StreamedUsage::new(self.api));
        }
    }

    fn data(&mut self, chunk: &[u8]) {
        match &mut self.response {
            // A truncated response is not valid JSON, so its usage is unknown.
            Response::Whole(body) => body.extend(chunk.iter().take(MAX_RESPONSE.saturating_sub(body.len()))),
            Response::Events(events, usage) => events.read(chunk).iter().for_each(|data| usage.read(data)),
        }
    }

    fn adjustments(&mut self) -> Vec<(String, i64)> {
        let Some(usage) = self.usage() else {
            return vec![];
        };
        let (used, estimate) = (usage.counted(self.cached_percent), self.estimate);
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        vec![("tpm".to_owned(), signed(used).saturating_sub(signed(estimate)))]
    }
}
