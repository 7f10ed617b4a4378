//! Calls whose cost is known only afterwards: admit on an estimate, correct when the response is complete, and let a long
//! response make debt that the next calls wait for.
//!
//!     cargo run -p zae-limiter --example llm_tokens

use std::sync::Arc;
use std::time::Duration;

use zae_limiter::{Clock, Error, Lease, Limit, ManualClock, RateLimiter, SystemClock};

/// Stands for a model: each response has a cost of its own.
async fn call_model(cost: i64) -> Result<i64, Error> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    Ok(cost)
}

async fn ask(limiter: &RateLimiter, estimate: u64, cost: i64) -> Result<(), Error> {
    let call = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpm", 1)
        .consume("tpm", estimate);
    // Commits if the body succeeds, gives everything back if it fails.
    let responded = call.run(async |lease: &mut Lease| {
        let used = call_model(cost).await?;
        lease.adjust("tpm", used - i64::try_from(estimate).unwrap_or(i64::MAX));
        Ok(used)
    });
    match responded.await {
        Ok(used) => println!("estimated {estimate:>6}, used {used:>6}"),
        Err(Error::Refused(refusal)) => println!("estimated {estimate:>6}: {refusal}"),
        Err(other) => return Err(other),
    }
    let left = limiter.acquire("user-1", "gpt-4").peek().await?;
    for status in left.statuses() {
        println!(
            "{:>20} {:>6} left",
            status.limit.name().as_str(),
            status.available
        );
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // A clock that is moved by hand, so that nobody has to wait for the minute to pass.
    let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
    let limiter = RateLimiter::embedded().clock(clock.clone()).await?;
    let limits = [Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?];
    limiter
        .repository()
        .set_resource_defaults("gpt-4", limits)
        .await?;

    println!("A response shorter than estimated refunds tokens:");
    ask(&limiter, 2_000, 1_500).await?;
    println!("One that is much longer makes debt, and is never cut off:");
    ask(&limiter, 2_000, 13_500).await?;
    println!("Until time has paid the debt, calls are refused and told when to come again:");
    ask(&limiter, 500, 500).await?;
    println!("A minute later:");
    clock.advance(Duration::from_secs(60));
    ask(&limiter, 500, 500).await?;

    let report = limiter.shutdown().await;
    println!("{} corrections could not be written", report.unwritten_total);
    Ok(())
}
