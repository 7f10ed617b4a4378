//! The shortest program that limits something: no account, no server, no set-up.
//!
//!     cargo run -p zae-limiter --example quickstart

use zae_limiter::{Error, Limit, RateLimiter};

#[tokio::main(flavor = "current_thread")]
async fn main() -> zae_limiter::Result<()> {
    // The table lives in this process. `RateLimiter::builder("name").region("eu-west-1")` is the same on AWS.
    let limiter = RateLimiter::embedded().await?;
    limiter
        .repository()
        .set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 3)?])
        .await?;

    for call in 1..=4 {
        match limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await {
            Ok(lease) => {
                println!("call {call}: admitted, {} left", lease.statuses()[0].available);
                lease.commit().await?; // without this it would be given back
            }
            Err(Error::Refused(exceeded)) => println!("call {call}: {exceeded}"),
            Err(other) => return Err(other),
        }
    }
    limiter.shutdown().await;
    Ok(())
}
