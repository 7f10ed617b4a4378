//! The whole system in one go, on this machine: `make demo`.
//!
//! Starts the local cloud, deploys the stack with the real functions, runs LLM-like traffic with parents and
//! adjustments, and compares what the aggregator has counted with what was really used. It fails if they differ.
//!
//! With `make demo DEMO_KEEP=1` it keeps everything, serves the UI and names its address.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zae_limiter::audit::AuditSubject;
use zae_limiter::stack::{Code, Event, Stack, StackName, StackOptions};
use zae_limiter::usage::{UsageQuery, WindowKind};
use zae_limiter::{Error, Limit, NewEntity, OnUnavailable, PageRequest, RateLimiter, StackSetup};
use zae_limiter_testing::{MiniStack, dev_functions};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const NAME: &str = "demo";
const MODEL: &str = "gpt-4";
const KEYS: [&str; 3] = ["key-1", "key-2", "key-3"];
/// How long calls are made.
const TRAFFIC: Duration = Duration::from_secs(4);
/// How long the stream and the functions may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Requests and tokens that were really used, and calls that were limited, by entity.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Used {
    requests: i64,
    tokens: i64,
    limited: u64,
}

type Tally = Arc<Mutex<BTreeMap<String, Used>>>;

fn say(title: &str) {
    println!("\n== {title}");
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    say("a local cloud on a free port, without Docker");
    let cloud = MiniStack::start();
    println!("listening on {}", cloud.endpoint());
    let aws = cloud.aws();
    let options = StackOptions::builder().snapshot_windows("hourly,daily").build()?;
    let code = Code::Directory(dev_functions());

    say("the plan");
    let stack = Stack::new(StackName::parse(NAME)?, options.clone(), &aws).code(code.clone());
    print!("{}", stack.plan().await?);

    say("ensure_infrastructure(): table, indexes, stream, policies, alarms, queues and both functions");
    let setup = StackSetup::new(options)
        .code(code)
        .observer(|event: &Event| println!("  {event}"));
    let limiter = RateLimiter::builder(NAME)
        .sdk_config(aws)
        .principal("demo")
        .stack(setup)
        .await?;
    let outcome = limiter
        .ensure_infrastructure()
        .await?
        .ok_or("a stack was declared")?;
    println!("{:?}: table {}", outcome.change, outcome.outputs["TableName"]);

    say("limits at three levels, and three keys whose calls count on their project too");
    configure(&limiter).await?;
    for key in KEYS {
        let resolved = limiter.repository().resolve_limits(key, MODEL).await?;
        let limits: Vec<_> = resolved.limits.iter().map(ToString::to_string).collect();
        let from = resolved
            .limits_from
            .map_or_else(String::new, |source| source.to_string());
        println!("{key}: {} (from {from})", limits.join(" "));
    }

    say("four seconds of concurrent calls: an estimate first, the real cost afterwards");
    let used = traffic(&limiter).await?;
    let shutdown = limiter.shutdown().await;
    println!(
        "{:<10} {:>9} {:>9} {:>9}",
        "entity", "admitted", "limited", "tokens"
    );
    for (entity, used) in &used {
        println!(
            "{entity:<10} {:>9} {:>9} {:>9}",
            used.requests, used.limited, used.tokens
        );
    }
    println!(
        "adjustments that could not be written: {}",
        shutdown.unwritten_total
    );

    say("what the aggregator has counted from the table's stream, next to what was really used");
    compare(&limiter, &used).await?;

    say("the audit trail of key-1, and the archive in S3");
    let subject: AuditSubject = KEYS[0].parse()?;
    for event in limiter
        .repository()
        .list_audit_events(&subject, &PageRequest::default())
        .await?
        .items
    {
        println!(
            "{} {} by {}",
            event.timestamp,
            event.action,
            event.principal.as_deref().unwrap_or("unknown")
        );
    }
    show_archive(&cloud, &outcome.outputs["AuditArchiveBucketName"]).await?;

    say("the plan again");
    print!("{}", stack.plan().await?);

    if std::env::var("DEMO_KEEP").is_ok_and(|keep| keep == "1") {
        return keep(&cloud);
    }

    say("everything is taken down");
    let deleted = stack.delete().await?;
    println!("deleted; kept because they hold data: {}", deleted.kept.len());
    Ok(())
}

/// Serves the UI on the demo's table with the command line's own command, until Ctrl-C.
fn keep(cloud: &MiniStack) -> Result<(), Failure> {
    say("everything is kept: look at it, and end with Ctrl-C");
    let built = std::env::current_exe()?;
    let built = built
        .ancestors()
        .nth(2)
        .ok_or("the demo is not where cargo builds examples")?;
    let status = Command::new(built.join("zae-limiter"))
        .args([
            "--name",
            NAME,
            "--region",
            "us-east-1",
            "--endpoint-url",
            &cloud.endpoint(),
        ])
        .args(["ui", "--edit"])
        .envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")])
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("zae-limiter ui: {status}").into())
    }
}

async fn configure(limiter: &RateLimiter) -> Result<(), Failure> {
    limiter
        .repository()
        .set_system_defaults([Limit::per_minute("rpm", 60)?, Limit::per_minute("tpm", 6_000)?])
        .await?;
    limiter
        .repository()
        .set_resource_defaults(
            MODEL,
            [
                Limit::per_minute("rpm", 6_000)?,
                Limit::per_minute("tpm", 600_000)?,
            ],
        )
        .await?;
    limiter
        .repository()
        .create_entity(NewEntity::new("project"))
        .await?;
    for key in KEYS {
        limiter
            .repository()
            .create_entity(NewEntity::new(key).parent("project").cascade(true))
            .await?;
    }
    // One key is on a small plan.
    limiter
        .repository()
        .set_limits(
            "key-3",
            MODEL,
            [Limit::per_minute("rpm", 60)?, Limit::per_minute("tpm", 3_000)?],
        )
        .await?;
    Ok(())
}

async fn traffic(limiter: &RateLimiter) -> Result<BTreeMap<String, Used>, Failure> {
    let tally = Tally::default();
    let end = Instant::now() + TRAFFIC;
    let mut callers = Vec::new();
    for caller in 0..6_i64 {
        let (limiter, tally) = (limiter.clone(), tally.clone());
        callers.push(tokio::spawn(async move {
            let mut call = caller;
            while Instant::now() < end {
                call += 6;
                one_call(
                    &limiter,
                    &tally,
                    KEYS[usize::try_from(call % 3).unwrap_or(0)],
                    call,
                )
                .await?;
                tokio::time::sleep(Duration::from_millis(15)).await;
            }
            Ok::<_, Failure>(())
        }));
    }
    for caller in callers {
        caller.await??;
    }
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(tally)
}

/// One call of a model: every fifth fails and gives back what it took.
async fn one_call(limiter: &RateLimiter, tally: &Tally, key: &str, call: i64) -> Result<(), Failure> {
    let acquire = limiter.acquire(key, MODEL).consume("rpm", 1).consume("tpm", 100);
    let mut lease = match acquire.on_unavailable(OnUnavailable::Block).await {
        Ok(lease) => lease,
        Err(Error::Refused(_)) => {
            note(tally, key, |used| used.limited += 1);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    if call % 5 == 0 {
        return Ok(lease.rollback().await?);
    }
    let tokens = 40 + (call * 37) % 160;
    lease.adjust("tpm", tokens - 100);
    lease.commit().await?;
    for entity in [key, "project"] {
        note(tally, entity, |used| {
            used.requests += 1;
            used.tokens += tokens;
        });
    }
    Ok(())
}

fn note(tally: &Tally, entity: &str, change: impl FnOnce(&mut Used)) {
    change(
        tally
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(entity.to_owned())
            .or_default(),
    );
}

/// Waits until usage equals consumption for every entity, and fails if it never does.
async fn compare(limiter: &RateLimiter, used: &BTreeMap<String, Used>) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    for (entity, used) in used {
        let query = UsageQuery::of_entity(entity)?.resource(MODEL)?;
        let counted = loop {
            let summary = limiter
                .repository()
                .get_usage_summary(&query, WindowKind::Hourly)
                .await?;
            let total = |limit: &str| {
                let found = summary.totals.iter().find(|(name, _)| name.as_str() == limit);
                found.map_or(0, |(_, tokens)| *tokens)
            };
            let counted = (total("rpm"), total("tpm"));
            if counted == (used.requests, used.tokens) || Instant::now() > deadline {
                break counted;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        let equal = counted == (used.requests, used.tokens);
        println!(
            "{entity:<10} counted {:>5} requests {:>7} tokens, used {:>5} and {:>7}: {}",
            counted.0,
            counted.1,
            used.requests,
            used.tokens,
            if equal { "equal" } else { "DIFFERENT" }
        );
        if !equal {
            return Err(format!("the usage of {entity} is not what was used").into());
        }
    }
    Ok(())
}

async fn show_archive(cloud: &MiniStack, bucket: &str) -> Result<(), Failure> {
    let config = aws_sdk_s3::config::Builder::from(&cloud.aws())
        .force_path_style(true)
        .build();
    let s3 = aws_sdk_s3::Client::from_conf(config);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = s3
            .list_objects_v2()
            .bucket(bucket)
            .prefix("audit/")
            .send()
            .await?;
        match listed.contents().first().and_then(|object| object.key()) {
            Some(key) => {
                println!("{} objects, such as s3://{bucket}/{key}", listed.contents().len());
                return Ok(());
            }
            None if Instant::now() > deadline => return Err("nothing was archived".into()),
            None => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}
