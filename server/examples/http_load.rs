//! Acquires per second over loopback HTTP next to those of the client in the same process, on an embedded store.
//!
//! Prints JSON: for one hot bucket and for a bucket per connection, the rate, p50, p99 and calls to the table of both, and the
//! ratio of their rates.
//!
//! ```text
//! cargo run --release -p zae-limiter-server --example http_load -- [SECONDS]
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
        let before = meter.consumed().calls;
        let http = over_http(address, entity, time).await?;
        let between = meter.consumed().calls;
        let client = in_process(&limiter, entity, time).await?;
        let after = meter.consumed().calls;
        report[name] = json!({
            "http": http.report(time, between - before),
            "client": client.report(time, after - between),
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
#[derive(Debug, Default)]
struct Latencies(Vec<u64>);

impl Latencies {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn rate(&self, time: Duration) -> f64 {
        self.0.len() as f64 / time.as_secs_f64()
    }

    /// In milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        let micros = self.0.get(index).copied().unwrap_or_default();
        Duration::from_micros(micros).as_secs_f64() * 1_000.0
    }

    fn report(&self, time: Duration, calls: u64) -> Value {
        json!({
            "acquires": self.0.len(),
            "acquires_per_second": self.rate(time).round(),
            "table_calls": calls,
            "p50_ms": self.percentile(50),
            "p99_ms": self.percentile(99),
        })
    }

    fn record(&mut self, start: Instant) {
        self.0
            .push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
    }

    async fn join(mut tasks: JoinSet<Result<Self, Failure>>) -> Result<Self, Failure> {
        let mut all = Self::default();
        while let Some(latencies) = tasks.join_next().await {
            all.0.extend(latencies??.0);
        }
        all.0.sort_unstable();
        Ok(all)
    }
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
            let mut latencies = Latencies::default();
            let end = Instant::now() + time;
            while Instant::now() < end {
                let start = Instant::now();
                let lease = limiter.acquire(&entity, RESOURCE).consume("rpm", 1).await?;
                lease.commit().await?;
                latencies.record(start);
            }
            Ok(latencies)
        });
    }
    Latencies::join(tasks).await
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
            let mut latencies = Latencies::default();
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let mut response = Vec::with_capacity(4_096);
            let end = Instant::now() + time;
            while Instant::now() < end {
                let start = Instant::now();
                stream.write_all(request.as_bytes()).await?;
                read_response(&mut stream, &mut response).await?;
                latencies.record(start);
            }
            Ok(latencies)
        });
    }
    Latencies::join(tasks).await
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
