//! The unreliable connection to the table: requests and responses are lost, late, throttled or refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use zae_limiter_dynamo::{CallError, ServerTime, SharedCredentials};
use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite};

use super::faults::Weather;
use super::unwritten::SharedUnwritten;
use super::world::{Shared, lock};
use crate::Clock as _;
use crate::builder::Settings;
use crate::error::Unavailable;
use crate::store::{BoxFuture, ConfigSource, ItemsRead, ItemsWanted, Store, WriteOutcome, WriteSlot};
use crate::{Error, Result};

/// How long a read is retried before it fails.
const NO_RESPONSE: Duration = Duration::from_millis(200);

/// One limiter's connection to the table.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) world: Shared,
    /// A crashed limiter neither sends nor hears anything.
    pub(super) alive: AtomicBool,
    /// Nobody responds to this limiter for a while.
    pub(super) silent: AtomicBool,
    /// Whether enough responses have shown the time. Not asked where dates are read.
    pub(super) knows_time: AtomicBool,
    pub(super) unwritten: SharedUnwritten,
    /// Reads the dates of responses.
    pub(super) dates: Option<ServerTime>,
    /// What requests are signed with.
    pub(super) credentials: Option<SharedCredentials>,
}

impl Port {
    pub(super) fn new(world: &Shared) -> Arc<Self> {
        Arc::new(Self::to(world))
    }

    /// A port that is not shared yet.
    pub(super) fn to(world: &Shared) -> Self {
        Self {
            world: world.clone(),
            alive: AtomicBool::new(true),
            silent: AtomicBool::new(false),
            knows_time: AtomicBool::new(true),
            unwritten: SharedUnwritten::default(),
            dates: None,
            credentials: None,
        }
    }

    fn elapsed(&self) -> Duration {
        lock(&self.world).clock.elapsed()
    }

    /// Counts a request, and says what becomes of it.
    fn request(&self) -> Weather {
        let weather = lock(&self.world).request();
        if self.silent.load(Ordering::Relaxed) {
            Weather::Silent
        } else {
            weather
        }
    }

    /// A response is read. Its date has whole seconds; sometimes it is that of a proxy whose clock is wrong.
    fn hears_date(&self, sent: Duration, back: Duration) {
        let Some(dates) = &self.dates else { return };
        let mut world = lock(&self.world);
        let (wrong_dates, back) = (world.scenario.wrong_dates, millis(back));
        let off_by = if wrong_dates > 0 && world.random(wrong_dates) {
            world.between(10_000..=600_000).cast_signed() - 300_000
        } else {
            0
        };
        let date = (world.clock.millis() - back + off_by).div_euclid(1_000) * 1_000;
        drop(world);
        dates.heard(Timestamp::from_millis(date), sent);
    }

    /// Waits for credentials, as long as a call has time.
    async fn signs(&self) -> Result<(), Error> {
        let Some(credentials) = &self.credentials else {
            return Ok(());
        };
        let deadline = Instant::now() + Settings::default().time_budget;
        credentials
            .ready_by(deadline)
            .await
            .map_err(|cause| denied(&cause))
    }

    /// How long it took.
    async fn wait_for_latency(&self) -> Duration {
        let latency = Duration::from_millis(lock(&self.world).between(1..=4));
        sleep(latency).await;
        latency
    }

    async fn wait_for_read(&self) -> Result<(), Error> {
        self.signs().await?;
        let weather = match self.request() {
            Weather::WritesSilent | Weather::WritesRefused => Weather::Clear,
            weather => weather,
        };
        if weather == Weather::Clear {
            self.wait_for_latency().await;
        } else {
            sleep(NO_RESPONSE).await;
        }
        let mut world = lock(&self.world);
        let failed = world.scenario.failed_reads;
        if weather != Weather::Clear || world.random(failed) {
            return Err(no_response());
        }
        Ok(())
    }

    async fn send(&self, write: &BucketWrite) -> WriteOutcome {
        if !self.alive.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let weather = self.request();
        match weather {
            Weather::Silent | Weather::WritesSilent => return std::future::pending().await,
            Weather::Refusing | Weather::WritesRefused => {
                sleep(Duration::from_millis(1)).await;
                return WriteOutcome::NotSent("simulated".to_owned());
            }
            Weather::Clear | Weather::BrownOut => {}
        }
        let brown_out = weather == Weather::BrownOut;
        let (lost_request, lost_answer, late, throttled, conflict, there, back, repeated) = {
            let mut world = lock(&self.world);
            let scenario = world.scenario.clone();
            (
                world.random(scenario.lost_requests),
                world.random(scenario.lost_responses),
                world.random(scenario.late),
                world.random(scenario.throttled),
                world.random(scenario.conflicts),
                world.between(1..=4),
                world.between(1..=3),
                scenario.repeated > 0 && world.random(scenario.repeated),
            )
        };
        if throttled || conflict {
            sleep(Duration::from_millis(there + back)).await;
            let reason = "simulated".to_owned();
            return if throttled {
                WriteOutcome::Throttled(reason)
            } else {
                WriteOutcome::Conflict(reason)
            };
        }
        let silent = lock(&self.world).silent_entity.as_ref() == Some(&write.key.entity);
        if lost_request || silent || (brown_out && lock(&self.world).random(500)) {
            return std::future::pending().await;
        }
        let lost_answer = lost_answer || brown_out;
        let there = if late {
            lock(&self.world).between(80..=600)
        } else {
            there
        };
        let (responder, response) = oneshot::channel();
        let (world, write) = (self.world.clone(), write.clone());
        let unwritten = self.unwritten.clone();
        let sent = self.elapsed();
        let seen = lock(&world).items.get(&write.key).cloned().unwrap_or_default();
        if repeated {
            // Another copy, whose response is lost. It may come before the other one, or after its response.
            let (world, write, seen) = (world.clone(), write.clone(), seen.clone());
            let (unwritten, delay) = (self.unwritten.clone(), lock(&self.world).between(0..=20));
            tokio::spawn(async move {
                sleep(Duration::from_millis(delay)).await;
                let mut world = lock(&world);
                if matches!(world.take_in(&write, &seen), WriteOutcome::Done(_)) {
                    unwritten.lock().unwrap().applied(&write);
                }
            });
        }
        // The request is on its way, whether its sender waits or not.
        tokio::spawn(async move {
            sleep(Duration::from_millis(there)).await;
            let interpret = || lock(&world).take_in(&write, &seen);
            let sdk = lock(&world).sdk.clone();
            let (outcome, difference) = match sdk {
                Some(sdk) => sdk.write(&write, interpret).await,
                None => (interpret(), None),
            };
            let outcome = {
                let mut world = lock(&world);
                world.differs(difference);
                if matches!(outcome, WriteOutcome::Done(_)) {
                    unwritten.lock().unwrap().applied(&write);
                }
                world.garble(outcome)
            };
            if lost_answer {
                // Nobody hears anything, not even that the connection is gone.
                return std::mem::forget(responder);
            }
            sleep(Duration::from_millis(back)).await;
            if responder.send(outcome).is_ok() {
                lock(&world).oracle.lost_debits.heard(&write);
            }
        });
        match response.await {
            Ok(outcome) => {
                self.hears_date(sent, Duration::from_millis(back));
                outcome
            }
            Err(_) => std::future::pending().await,
        }
    }
}

fn no_response() -> Error {
    Error::Unavailable(Unavailable::NoResponse {
        operation: "GetItem",
        table: "simulated".to_owned(),
        reason: "simulated".to_owned(),
        within: Duration::ZERO,
    })
}

fn denied(cause: &CallError) -> Error {
    Error::PermissionDenied {
        operation: "loading credentials",
        table: "simulated".to_owned(),
        message: cause.to_string(),
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl ConfigSource for Port {
    fn read_items<'a>(&'a self, wanted: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>> {
        Box::pin(async move {
            let sent = self.elapsed();
            self.wait_for_read().await?;
            let read = lock(&self.world).read(wanted);
            let back = self.wait_for_latency().await;
            self.hears_date(sent, back);
            Ok(read)
        })
    }

    fn clock_offset(&self) -> i64 {
        self.dates.as_ref().map_or(0, ServerTime::offset)
    }
}

impl Store for Port {
    fn accepts_writes(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            match self.request() {
                // In a brown-out all responses to writes are lost.
                Weather::Silent | Weather::WritesSilent | Weather::BrownOut => std::future::pending().await,
                Weather::Refusing | Weather::WritesRefused => {
                    sleep(Duration::from_millis(1)).await;
                    false
                }
                Weather::Clear => {
                    self.wait_for_latency().await;
                    true
                }
            }
        })
    }

    fn read_bucket<'a>(
        &'a self,
        key: &'a BucketKey,
        consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Attributes>>> {
        Box::pin(async move {
            lock(&self.world).reads += 1;
            let sent = self.elapsed();
            self.wait_for_read().await?;
            let interpret = || lock(&self.world).item(key, consistent).cloned();
            let sdk = lock(&self.world).sdk.clone();
            let (found, difference) = match sdk.filter(|_| consistent) {
                Some(sdk) => sdk.read(key, interpret).await,
                None => (interpret(), None),
            };
            lock(&self.world).differs(difference);
            let back = self.wait_for_latency().await;
            self.hears_date(sent, back);
            Ok(found)
        })
    }

    fn write_bucket<'a>(&'a self, write: &'a BucketWrite) -> BoxFuture<'a, WriteOutcome> {
        Box::pin(self.send(write))
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.wait_for_read())
    }

    fn ready(&self) -> BoxFuture<'_, Result<WriteSlot, WriteOutcome>> {
        Box::pin(async {
            self.signs().await.map_err(WriteOutcome::Failed)?;
            Ok(WriteSlot::default())
        })
    }

    fn denial(&self) -> Option<Error> {
        let denial = self.credentials.as_ref()?.denial()?;
        Some(denied(&denial))
    }

    /// Dates have whole seconds.
    fn latest_time(&self) -> Option<Timestamp> {
        if let Some(dates) = &self.dates {
            return dates.latest();
        }
        let latest = lock(&self.world).clock.millis() + 1_000;
        let knows_time = self.knows_time.load(Ordering::Relaxed);
        knows_time.then_some(Timestamp::from_millis(latest))
    }
}
