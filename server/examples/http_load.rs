//! Acquires per second over loopback HTTP next to those of the client in the same process, on an embedded store.
//!
//! Prints JSON: for one hot bucket and for a bucket per connection (`own`), the rate, p50, p99 and calls to the table of
//! both, and the ratio of their rates. Both run in turns, so that what else the machine does slows both alike. What the
//! load generator itself costs counts against HTTP.
//!
//! ```text
//! cargo run --release -p zae-limiter-server --example http_load -- [SECONDS]
//! ```
//!
//! ```json
//! { "connections": 64, "seconds": 5, "unwritten": 0,
//!   "hot": { "http_to_client": 0.5,
//!     "http": { "acquires": 1, "acquires_per_second": 1, "table_calls": 1, "p50_ms": 1, "p99_ms": 1 }, "client": {} },
//!   "own": {} }
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use zae_limiter::{CapacityMeter, Limit, RateLimiter};
use zae_limiter_server::Server;

const CONNECTIONS: usize = 64;
const DEFAULT_SECONDS: u64 = 5;
/// How often HTTP and the client take turns.
const TURNS: u32 = 5;
const RESOURCE: &str = "gpt-4";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let seconds = std::env::args()
        .nth(1)
        .map(|seconds| seconds.parse())
        .transpose()?;
    let time = Duration::from_secs(seconds.unwrap_or(DEFAULT_SECONDS));
    let limits = [Limit::per_minute("rpm", 1_000_000_000)?];
    let meter = CapacityMeter::new();
    let limiter = RateLimiter::embedded()
        .default_limits(limits)
        .meter(meter.clone());
    let limiter = limiter.await?;
    let server = Server::builder(limiter.clone())
        .bind("127.0.0.1:0".parse()?)
        .await?;
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let mut report = json!({ "connections": CONNECTIONS, "seconds": time.as_secs() });
    for (name, entity) in [("hot", hot as fn(usize) -> String), ("own", own)] {
        // The first second creates buckets and connections.
        let warm = Duration::from_secs(1).min(time);
        over_http(address, entity, warm).await?;
        let (mut http, mut client) = (Side::default(), Side::default());
        for _ in 0..TURNS {
            let before = meter.consumed().calls;
            http.latencies
                .extend(over_http(address, entity, time / TURNS).await?);
            let between = meter.consumed().calls;
            client
                .latencies
                .extend(in_process(&limiter, entity, time / TURNS).await?);
            http.table_calls += between - before;
            client.table_calls += meter.consumed().calls - between;
        }
        report[name] = json!({
            "http": http.report(time),
            "client": client.report(time),
            "http_to_client": http.rate(time) / client.rate(time),
        });
    }
    drop(stop);
    let closed = running.await?;
    report["unwritten"] = closed.unwritten.into();
    println!("{report:#}");
    Ok(())
}

fn hot(_: usize) -> String {
    "hot".to_owned()
}

fn own(connection: usize) -> String {
    format!("own-{connection}")
}

/// How long each acquire took, in microseconds.
type Latencies = Vec<u64>;

/// What was measured over HTTP, or of the client.
#[derive(Debug, Default)]
struct Side {
    latencies: Latencies,
    table_calls: u64,
}

impl Side {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn rate(&self, time: Duration) -> f64 {
        self.latencies.len() as f64 / time.as_secs_f64()
    }

    fn report(&mut self, time: Duration) -> Value {
        self.latencies.sort_unstable();
        let (count, latencies) = (self.latencies.len(), &self.latencies);
        let percentile = |percent: usize| {
            let index = (count * percent / 100).min(count.saturating_sub(1));
            let micros = latencies.get(index).copied().unwrap_or_default();
            Duration::from_micros(micros).as_secs_f64() * 1_000.0
        };
        json!({
            "acquires": count,
            "acquires_per_second": self.rate(time).round(),
            "table_calls": self.table_calls,
            "p50_ms": percentile(50),
            "p99_ms": percentile(99),
        })
    }
}

fn record(latencies: &mut Latencies, start: Instant) {
    latencies.push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
}

async fn join(mut tasks: JoinSet<Result<Latencies, Failure>>) -> Result<Latencies, Failure> {
    let mut all = vec![];
    while let Some(latencies) = tasks.join_next().await {
        all.extend(latencies??);
    }
    Ok(all)
}

async fn in_process(
    limiter: &RateLimiter,
    entity: fn(usize) -> String,
    time: Duration,
) -> Result<Latencies, Failure> {
    let mut tasks = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let (limiter, entity) = (limiter.clone(), entity(connection));
        tasks.spawn(async move {
            let mut latencies = vec![];
            let end = Instant::now() + time;
            while Instant::now() < end {
                let start = Instant::now();
                let lease = limiter.acquire(&entity, RESOURCE).consume("rpm", 1).await?;
                lease.commit().await?;
                record(&mut latencies, start);
            }
            Ok(latencies)
        });
    }
    join(tasks).await
}

async fn over_http(
    address: SocketAddr,
    entity: fn(usize) -> String,
    time: Duration,
) -> Result<Latencies, Failure> {
    let mut tasks = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let request = request(&entity(connection));
        tasks.spawn(async move {
            let mut latencies = vec![];
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let mut response = Vec::with_capacity(4_096);
            let end = Instant::now() + time;
            while Instant::now() < end {
                let start = Instant::now();
                stream.write_all(request.as_bytes()).await?;
                read_response(&mut stream, &mut response).await?;
                record(&mut latencies, start);
            }
            Ok(latencies)
        });
    }
    join(tasks).await
}

fn request(entity: &str) -> String {
    let body = json!({ "entity": entity, "resource": RESOURCE, "consume": { "rpm": 1 }, "lease_ms": 0 });
    let body = body.to_string();
    format!(
        "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads one response with a length, whole. Anything but 200 is an error.
async fn read_response(stream: &mut TcpStream, response: &mut Vec<u8>) -> Result<(), Failure> {
    response.clear();
    loop {
        if stream.read_buf(response).await? == 0 {
            return Err("the server closed the connection".into());
        }
        let Some(head) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&response[..head])?;
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .ok_or("the response has no length")?;
        if response.len() < head + 4 + length.parse::<usize>()? {
            continue;
        }
        if !text.starts_with("HTTP/1.1 200 ") {
            return Err(format!("refused: {text}").into());
        }
        return Ok(());
    }
}
