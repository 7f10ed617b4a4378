//! Many limiters on one bucket.

use std::net::SocketAddr;
use std::time::Duration;

use zae_limiter::CapacityMeter;

use crate::clients::{self, RESOURCE};
use crate::measure::Figures;

/// Many limiters, each with its own connections, on one bucket at 60 % of its limit.
pub(super) async fn fleet(endpoint: SocketAddr, limiters: u32) -> Figures {
    const RUN: Duration = Duration::from_secs(2);
    let (meter, entity) = (CapacityMeter::new(), format!("fleet-{limiters}"));
    let mut tasks = Vec::new();
    let pause = Duration::from_secs_f64(f64::from(limiters) / 120.0);
    let started = tokio::time::Instant::now() + Duration::from_millis(200);
    for index in 0..limiters {
        let limiter = clients::limiter(endpoint).meter(meter.clone()).await.unwrap();
        let entity = entity.clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let mut next = started + pause * index / limiters;
            while next < started + RUN {
                tokio::time::sleep_until(next).await;
                let asked = std::time::Instant::now();
                if let Ok(lease) = limiter.acquire(&entity, RESOURCE).consume("rpm", 1).await {
                    lease.commit().await.unwrap();
                    times.push(asked.elapsed().as_secs_f64() * 1e6);
                }
                next += pause;
            }
            times
        }));
    }
    let mut times: Vec<f64> = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    times.sort_by(f64::total_cmp);
    let consumed = meter.consumed();
    let at = |part: f64| {
        times
            .get((times.len() as f64 * part) as usize)
            .copied()
            .unwrap_or(0.0)
    };
    let per_call = |sum: f64| Some(sum / times.len().max(1) as f64);
    Figures {
        rate: times.len() as f64 / RUN.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        calls: per_call(consumed.calls as f64),
        rcu: per_call(consumed.read_units),
        wcu: per_call(consumed.write_units),
        ..Figures::default()
    }
}
