//! What each path of `acquire` costs in calls and DynamoDB's units, indexes counted, measured on the store in memory.
//!
//!     cargo run -p zae-limiter --example costs

mod meter;
mod paths;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> zae_limiter::Result<()> {
    println!("| Path | Calls | RCU | WCU | Round trips | Which calls |");
    println!("|---|---|---|---|---|---|");
    for cost in paths::measure().await? {
        let bill = &cost.bill;
        let mut calls = bill.calls.clone();
        calls.dedup();
        println!(
            "| {} | {} | {:.1} | {:.1} | {} | {} |",
            cost.path,
            bill.calls.len(),
            bill.read_units,
            bill.write_units,
            cost.round_trips,
            if calls.is_empty() {
                "none".to_owned()
            } else {
                calls.join(", ")
            },
        );
    }
    println!("\nA write whose condition fails is charged one unit, as DynamoDB does.");
    Ok(())
}
