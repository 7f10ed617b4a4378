//! A reverse proxy for LLM APIs that limits requests, tokens and calls in flight per caller and model.
//!
//! It serves the APIs of OpenAI (chat completions, completions, responses, embeddings; also those of the many providers that
//! have the same) and of Anthropic (messages). A call is admitted on an estimate of its tokens. What it really used is read
//! from the response, or from the last events of a streamed one, and the estimate is corrected.
//!
//!     export OPENAI_API_KEY=... ANTHROPIC_API_KEY=...
//!     GATEWAY_CALLERS=key-1=user-1,key-2=user-2 cargo run -p zae-limiter-tests --example llm_gateway
//!     curl http://127.0.0.1:8081/v1/chat/completions -H 'Authorization: Bearer key-1' -d '{"model": "gpt-4o", "messages": []}'
//!
//! | Variable | Meaning | Default |
//! |---|---|---|
//! | `GATEWAY_LISTEN` | address to listen on | `127.0.0.1:8081` |
//! | `GATEWAY_CALLERS` | keys of the callers and their entities, `KEY=ENTITY,KEY=ENTITY` | none: every call gets 401 |
//! | `GATEWAY_TABLE` | the table on AWS | a table in memory |
//! | `GATEWAY_CACHED_PERCENT` | how many of every 100 cached input tokens count | 100 |
//! | `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL` | other providers with the same API | theirs |

mod gateway;

use std::collections::HashMap;
use std::time::Duration;

use zae_limiter::{Limit, RateLimiter};

use gateway::{Settings, Upstreams, router};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn callers(text: &str) -> Result<HashMap<String, String>, Failure> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, entity) = pair
                .split_once('=')
                .ok_or_else(|| format!("GATEWAY_CALLERS: {pair:?} is invalid: it must be KEY=ENTITY"))?;
            Ok((key.to_owned(), entity.to_owned()))
        })
        .collect()
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Failure> {
    let open_ai = variable("OPENAI_BASE_URL", "https://api.openai.com");
    let anthropic = variable("ANTHROPIC_BASE_URL", "https://api.anthropic.com");
    let settings = Settings {
        callers: callers(&variable("GATEWAY_CALLERS", ""))?,
        upstreams: Upstreams::new(
            (&open_ai, &variable("OPENAI_API_KEY", "")),
            (&anthropic, &variable("ANTHROPIC_API_KEY", "")),
        )?,
        cached_percent: variable("GATEWAY_CACHED_PERCENT", "100").parse()?,
    };
    let builder = match std::env::var("GATEWAY_TABLE") {
        Ok(name) => RateLimiter::builder(name),
        Err(_) => RateLimiter::embedded(),
    };
    // For every caller and model without limits of its own.
    let parallel = Limit::concurrency("parallel", 10, Duration::from_mins(10))?;
    let limits = [
        Limit::per_minute("rpm", 60)?,
        Limit::per_minute("tpm", 100_000)?,
        parallel,
    ];
    let limiter = builder.default_limits(limits).await?;
    let listener = tokio::net::TcpListener::bind(variable("GATEWAY_LISTEN", "127.0.0.1:8081")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router(settings, limiter.clone()))
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    let report = limiter.shutdown().await;
    println!("{} corrections could not be written", report.unwritten_total);
    Ok(())
}
