//! Sending the thresholds that quotas have reached, each at least once and always with the same ID.
//!
//! The table has a [mark](ThresholdMark) for each threshold that was reached: the first record that reaches it makes the mark,
//! and only that record sends the event. If the record is delivered again, or comes out of the dead-letter queue, it finds its
//! own mark and sends the event again.

use std::cell::RefCell;
use std::collections::BTreeSet;

use zae_limiter_function::{CallError, Invocation, processing, spread};

use crate::{Position, Table, ThresholdEvent, ThresholdMark, UsageDelta};

/// Where events about thresholds go.
pub trait Alerts {
    /// Sends events, at most [`MAX_EVENTS`] of them. Returns what became of each, in the same order.
    fn send(
        &self,
        events: &[&ThresholdEvent],
    ) -> impl Future<Output = Result<Vec<Result<(), CallError>>, CallError>>;
}

/// The most events of one call. EventBridge accepts ten, of 256 KB in all; the largest event has 2 KB.
pub const MAX_EVENTS: usize = 10;

/// No destination: nothing is sent.
#[derive(Debug, Clone, Copy)]
pub enum NoAlerts {}

impl Alerts for NoAlerts {
    async fn send(&self, _: &[&ThresholdEvent]) -> Result<Vec<Result<(), CallError>>, CallError> {
        match *self {}
    }
}

impl<A: Alerts> Alerts for &A {
    async fn send(&self, events: &[&ThresholdEvent]) -> Result<Vec<Result<(), CallError>>, CallError> {
        (*self).send(events).await
    }
}

/// An event and the record that it is about, by its index in the batch.
pub(crate) struct Announcement<'d> {
    pub(crate) index: usize,
    pub(crate) event: ThresholdEvent,
    position: &'d Position,
}

/// The events of a batch, each once.
pub(crate) fn announcements(deltas: &[(usize, UsageDelta)]) -> Vec<Announcement<'_>> {
    let mut known = BTreeSet::new();
    let all = deltas.iter().flat_map(|(index, delta)| {
        delta.crossings.iter().map(move |crossing| Announcement {
            index: *index,
            event: ThresholdEvent::new(delta, crossing),
            position: &delta.position,
        })
    });
    all.filter(|announcement| known.insert(announcement.event.id.clone()))
        .collect()
}

/// What became of the events of a batch.
#[derive(Default)]
pub(crate) struct Announced<'d> {
    /// How many were sent.
    pub(crate) sent: u64,
    /// Those that were not, and why.
    pub(crate) failed: Vec<(Announcement<'d>, CallError)>,
}

pub(crate) struct Announcer<'a, T, A> {
    pub(crate) table: &'a T,
    pub(crate) alerts: &'a A,
    pub(crate) retention_days: u32,
    pub(crate) invocation: &'a Invocation,
}

impl<T: Table, A: Alerts> Announcer<'_, T, A> {
    /// Marks the thresholds and sends the events of those that no other record has marked.
    pub(crate) async fn announce<'d>(&self, announcements: Vec<Announcement<'d>>) -> Announced<'d> {
        let mut announced = Announced::default();
        let mut marked = Vec::new();
        let jobs = announcements.into_iter().map(|announcement| async move {
            let Announcement { event, position, .. } = &announcement;
            let mark = ThresholdMark::new(event, position, self.retention_days);
            let made = processing(self.invocation.retry(|| self.table.mark(&mark))).await;
            (announcement, made)
        });
        spread(jobs, |(announcement, made)| {
            match made {
                Ok(true) => marked.push(announcement),
                Ok(false) => {}
                Err(error) => announced.failed.push((announcement, error)),
            }
            true
        })
        .await;
        while !marked.is_empty() {
            let part: Vec<_> = marked.drain(..marked.len().min(MAX_EVENTS)).collect();
            let outcomes = self.send(&part).await;
            for (announcement, outcome) in part.into_iter().zip(outcomes) {
                match outcome {
                    Ok(()) => announced.sent += 1,
                    Err(error) => announced.failed.push((announcement, error)),
                }
            }
        }
        announced
    }

    /// Sends events until each is sent or refused, or there is no time left. A call may take some of them and not others.
    async fn send(&self, part: &[Announcement<'_>]) -> Vec<Result<(), CallError>> {
        let outcomes: RefCell<Vec<Option<Result<(), CallError>>>> = RefCell::new(vec![None; part.len()]);
        let attempt = async || {
            let open: Vec<usize> = {
                let outcomes = outcomes.borrow();
                (0..part.len())
                    .filter(|place| outcomes[*place].is_none())
                    .collect()
            };
            let events: Vec<_> = open.iter().map(|place| &part[*place].event).collect();
            let mut transient = None;
            for (place, outcome) in open.iter().zip(self.alerts.send(&events).await?) {
                match outcome {
                    Err(error) if error.is_transient() => transient = Some(error),
                    settled => outcomes.borrow_mut()[*place] = Some(settled),
                }
            }
            transient.map_or(Ok(()), Err)
        };
        let tried = processing(self.invocation.retry(attempt)).await;
        let unsettled = tried
            .err()
            .unwrap_or_else(|| CallError::Unavailable("no response for this event".to_owned()));
        let outcomes = outcomes.into_inner().into_iter();
        outcomes
            .map(|outcome| outcome.unwrap_or_else(|| Err(unsettled.clone())))
            .collect()
    }
}
