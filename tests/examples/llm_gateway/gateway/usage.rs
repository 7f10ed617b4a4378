//! What a provider says that a call has used.

use serde_json::Value;

use super::api::Api;

/// Tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Input that was not read from the provider's cache.
    pub(crate) input: u64,
    /// Input that was read from the provider's cache.
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

impl Usage {
    /// Reads the usage from a whole response.
    pub(crate) fn of_response(api: Api, response: &Value) -> Option<Self> {
        let usage = response.get("usage").filter(|usage| usage.is_object())?;
        let number = |name: &str| usage[name].as_u64().unwrap_or(0);
        let detail = |name: &str| usage[name]["cached_tokens"].as_u64().unwrap_or(0);
        Some(match api {
            // The input of OpenAI includes what was cached; that of Anthropic does not.
            Api::Completions | Api::Embeddings => Self::including_cached(
                number("prompt_tokens"),
                detail("prompt_tokens_details"),
                number("completion_tokens"),
            ),
            Api::Responses => Self::including_cached(
                number("input_tokens"),
                detail("input_tokens_details"),
                number("output_tokens"),
            ),
            Api::Messages => Self {
                input: number("input_tokens").saturating_add(number("cache_creation_input_tokens")),
                cached: number("cache_read_input_tokens"),
                output: number("output_tokens"),
            },
        })
    }

    fn including_cached(input: u64, cached: u64, output: u64) -> Self {
        Self {
            input: input.saturating_sub(cached),
            cached,
            output,
        }
    }

    /// The tokens to count, if of every 100 cached ones this many count.
    pub(crate) fn counted(self, cached_percent: u8) -> u64 {
        let cached = u128::from(self.cached) * u128::from(cached_percent) / 100;
        let cached = u64::try_from(cached).unwrap_or(u64::MAX);
        self.input.saturating_add(cached).saturating_add(self.output)
    }
}

/// Collects the usage of a streamed response from its events.
#[derive(Debug)]
pub(crate) struct StreamedUsage {
    api: Api,
    /// Anthropic states the input at the start and the output at the end.
    started: Usage,
    total: Option<Usage>,
}

impl StreamedUsage {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            started: Usage::default(),
            total: None,
        }
    }

    /// Reads the data of an event. Most say nothing about usage.
    pub(crate) fn read(&mut self, data: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            // `[DONE]` is no JSON.
            return;
        };
        match self.api {
            Api::Completions | Api::Embeddings => {
                self.total = Usage::of_response(self.api, &event).or(self.total);
            }
            // Of `response.completed` and `response.incomplete`.
            Api::Responses => self.total = Usage::of_response(self.api, &event["response"]).or(self.total),
            Api::Messages => match event["type"].as_str() {
                Some("message_start") => {
                    let start = Usage::of_response(self.api, &event["message"]);
                    self.started = start.unwrap_or_default();
                }
                Some("message_delta") => {
                    if let Some(output) = event["usage"]["output_tokens"].as_u64() {
                        self.total = Some(Usage {
                            output,
                            ..self.started
                        });
                    }
                }
                _ => {}
            },
        }
    }

    /// The usage, once the event that states it was there.
    pub(crate) fn total(&self) -> Option<Usage> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_input_is_told_apart_for_every_api() {
        let expected = Some(Usage {
            input: 30,
            cached: 70,
            output: 5,
        });
        for (api, usage) in [
            (
                Api::Completions,
                json!({ "prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 70 } }),
            ),
            (
                Api::Responses,
                json!({ "input_tokens": 100, "output_tokens": 5, "input_tokens_details": { "cached_tokens": 70 } }),
            ),
            (
                Api::Messages,
                json!({ "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 5 }),
            ),
        ] {
            assert_eq!(
                Usage::of_response(api, &json!({ "usage": usage })),
                expected,
                "{api:?}"
            );
        }
        assert_eq!(
            Usage::of_response(Api::Completions, &json!({ "usage": null })),
            None
        );
    }

    #[test]
    fn cached_tokens_count_in_part() {
        let usage = Usage {
            input: 30,
            cached: 70,
            output: 5,
        };
        assert_eq!([0, 10, 100].map(|percent| usage.counted(percent)), [35, 42, 105]);
    }

    #[test]
    fn anthropic_states_the_input_first_and_the_output_last() {
        let mut usage = StreamedUsage::new(Api::Messages);
        for event in [
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 25, "cache_read_input_tokens": 9, "output_tokens": 1 } } }),
            json!({ "type": "content_block_delta", "delta": { "text": "hello" } }),
        ] {
            usage.read(event.to_string().as_bytes());
            assert_eq!(usage.total(), None, "the output is not known yet");
        }
        let last = json!({ "type": "message_delta", "usage": { "output_tokens": 40 } });
        usage.read(last.to_string().as_bytes());
        let total = Usage {
            input: 25,
            cached: 9,
            output: 40,
        };
        assert_eq!(usage.total(), Some(total));
    }

    #[test]
    fn the_end_of_a_stream_changes_nothing() {
        let mut usage = StreamedUsage::new(Api::Responses);
        let last = json!({ "type": "response.completed", "response": { "usage": { "input_tokens": 7, "output_tokens": 2 } } });
        usage.read(last.to_string().as_bytes());
        usage.read(b"[DONE]");
        assert_eq!(usage.total().map(|usage| usage.counted(100)), Some(9));
    }
}
