//! A walk through the arithmetic of a bucket: what a limit is, taking, exact refill, debt, the time to retry, and two
//! writers of whom one comes too late. It needs no table and no network, and its clock is a number.
//!
//! ```sh
//! cargo run -p zae-limiter-schema --example bucket_arithmetic
//! ```

use std::error::Error;

use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, BucketWrite, Decoded, Demand, Evaluation, Image, Incarnation,
    Params, RetryAfter, Slot, SlotBefore, SlotIndex, TokenBucket, TtlRule,
};
use zae_limiter_schema::{EntityId, Limit, LimitSet, Rate, Resource, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let tpm: Limit = "tpm:10000:15000".parse()?;
    let rate = tpm.rate().ok_or("tpm is a rate")?;
    limits(&tpm, rate);
    let after = estimate_and_correct(rate)?;
    retry(&after);
    exact_refill()?;
    two_writers(&tpm)?;
    println!();
    println!("That is the arithmetic: it computes writes and sends none. What follows is the client, which");
    println!(
        "compiles each write to one conditional DynamoDB update, so that all processes share the bucket."
    );
    Ok(())
}

fn heading(text: &str) {
    println!("\n{text}\n{}", "-".repeat(text.len()));
}

/// Millitokens as people read them.
fn tokens(millis: i128) -> String {
    let sign = if millis < 0 { "-" } else { "" };
    format!(
        "{sign}{}.{:03}",
        millis.unsigned_abs() / 1000,
        millis.unsigned_abs() % 1000
    )
}

fn limits(tpm: &Limit, rate: &Rate) {
    heading("A limit");
    println!("{tpm} on the command line means:");
    println!(
        "  {} tokens come back every {} s,",
        rate.refill_amount(),
        rate.refill_period_seconds()
    );
    println!("  and at most {} are there at once.", tpm.burst());
    let params = Params::from(rate);
    println!(
        "The table keeps thousandths, in whole numbers: {} millitokens,",
        params.amount()
    );
    println!(
        "every {} ms. An empty bucket is full after {} ms.",
        params.period(),
        params.fill_time()
    );
}

/// A call is admitted on an estimate and corrected when its cost is known; the level may go below zero.
fn estimate_and_correct(rate: &Rate) -> Result<TokenBucket, Box<dyn Error>> {
    heading("Estimate, then correct");
    let full = TokenBucket::full(Params::from(rate));
    println!("full:                        {:>10}", tokens(full.tokens));
    let admitted = full.try_take(0, 14_000_000).map_err(|_| "it is there")?;
    println!("14,000 are taken:            {:>10}", tokens(admitted.tokens));
    let corrected = admitted.force_take(0, 3_000_000);
    println!(
        "3,000 more were used:        {:>10}  (debt: a correction never fails)",
        tokens(corrected.tokens)
    );
    println!(
        "after 12 s:                  {:>10}",
        tokens(corrected.available(12_000))
    );
    let unused = corrected.credit(15_000, 250_000);
    println!("after 15 s, 250 given back:  {:>10}", tokens(unused.tokens));
    println!(
        "an hour later:               {:>10}  (never above the burst)",
        tokens(unused.available(3_600_000))
    );
    Ok(corrected)
}

/// The promised time is exact: one millisecond earlier the same call is refused.
fn retry(in_debt: &TokenBucket) {
    heading("When to try again");
    let verdict = |elapsed, amount| match in_debt.try_take(elapsed, amount) {
        Ok(_) => "admitted",
        Err(_) => "refused",
    };
    if let RetryAfter::After(time) = in_debt.wait_for(0, 500_000) {
        let millis = i128::try_from(time.as_millis()).unwrap_or(i128::MAX);
        println!(
            "500 tokens at a level of {}: in {millis} ms.",
            tokens(in_debt.tokens)
        );
        for elapsed in [0, millis - 1, millis] {
            println!("  after {elapsed:>5} ms: {}", verdict(elapsed, 500_000));
        }
    }
    println!(
        "15,001 tokens: {:?}, for that is more than the burst.",
        in_debt.wait_for(0, 15_001_000)
    );
}

/// The remainder of each division is kept, so that looking often loses nothing.
fn exact_refill() -> Result<(), Box<dyn Error>> {
    heading("Exact refill");
    let rpm = Limit::per_minute("rpm", 100)?;
    let full = TokenBucket::full(Params::from(rpm.rate().ok_or("rpm is a rate")?));
    let empty = TokenBucket { tokens: 0, ..full };
    println!("100 a minute, looked at after each millisecond; 1 ms brings 100,000 / 60,000 millitokens:");
    let mut often = empty;
    for millis in 1..=6 {
        often = often.refilled(1);
        println!(
            "  {millis} ms: {:>2} millitokens, remainder {:>5}",
            often.tokens, often.remainder
        );
    }
    let often = (6..6_000).fold(often, |token_bucket, _| token_bucket.refilled(1));
    println!("6,000 looks, 1 ms each:      {:>10}", tokens(often.tokens));
    println!(
        "one look after 6,000 ms:     {:>10}",
        tokens(empty.refilled(6_000).tokens)
    );
    println!(
        "without the remainders:      {:>10}",
        tokens(6_000 * empty.refilled(1).tokens)
    );
    Ok(())
}

/// Two processes read the same item. Each write states for which items it is exact, so a stale one is refused.
fn two_writers(tpm: &Limit) -> Result<(), Box<dyn Error>> {
    heading("Two writers, one bucket");
    let start = Timestamp::parse("2026-01-31T12:00:00Z")?;
    let later = start.plus_millis(6_000);
    let config = BucketConfig::new(LimitSet::new([tpm.clone()])?, None, false, TtlRule::Never);

    let create = Evaluation::create(&config, start);
    let a = plan(&create, tpm, 0, 15_000)?;
    let item = send(
        "A creates the bucket and takes 15,000",
        &a,
        &Attributes::default(),
    )?;

    println!("6 s later 1,000 have come back. B and C read the item, and both plan with them:");
    let seen = image(&item)?;
    let same = Evaluation::live(&seen, &config, later);
    let (b, c) = (plan(&same, tpm, 1, 600)?, plan(&same, tpm, 2, 300)?);
    let item = send("B takes 600", &b, &item)?;
    if send("C takes 300", &c, &item).is_err() {
        println!("C's plan would have booked the same refill a second time.");
    }

    println!("A refusal carries the item as it is now, and C plans again with that:");
    let seen = image(&item)?;
    let again = Evaluation::live(&seen, &config, later);
    let item = send("C takes 300", &plan(&again, tpm, 2, 300)?, &item)?;

    let seen = image(&item)?;
    let fits = Evaluation::live(&seen, &config, later).fits(&batch(tpm, 101));
    println!(
        "1,000 - 600 - 300: would 101 more fit? {}.",
        if fits { "Yes" } else { "No" }
    );
    Ok(())
}

fn batch(limit: &Limit, tokens: i128) -> Batch {
    let demand = Demand {
        debit: tokens * 1000,
        ..Demand::default()
    };
    Batch {
        demands: [(limit.name().clone(), demand)].into(),
        acquires: 1,
        ..Batch::default()
    }
}

/// The write that takes the given tokens, if the last image has them.
fn plan(
    evaluation: &Evaluation<'_>,
    limit: &Limit,
    slot: u8,
    tokens: i128,
) -> Result<BucketWrite, Box<dyn Error>> {
    let key = BucketKey {
        entity: EntityId::parse("user-1")?,
        resource: Resource::parse("gpt-4")?,
    };
    let slot = Slot {
        index: SlotIndex::new(slot),
        before: SlotBefore::Empty,
        number: i128::from(evaluation.now().millis()),
    };
    let write = evaluation.write(key, &batch(limit, tokens), slot, Incarnation::from_random(1));
    Ok(write.ok_or("too few tokens")?)
}

/// What the table makes of the item: the write's conditions decide, on the item as it is there and then.
fn send(what: &str, write: &BucketWrite, item: &Attributes) -> Result<Attributes, Box<dyn Error>> {
    let after = item.apply(&write.statement());
    let outcome = match &after {
        Ok(after) => {
            let left = image(after)?
                .limits
                .values()
                .map(|limit| limit.token_bucket.tokens)
                .sum();
            format!("{} left", tokens(left))
        }
        Err(refused) => format!("refused ({refused:?})"),
    };
    println!("  {what}, by a {:?} write: {outcome}", write.kind);
    after.map_err(|_| "the item is not as the write expected it".into())
}

fn image(item: &Attributes) -> Result<Image, Box<dyn Error>> {
    match item.decode()? {
        Decoded::Bucket(image) => Ok(image),
        Decoded::Stub => Err("there is no bucket".into()),
    }
}
