//! One acquire: the lease, or the rejection.

use std::collections::BTreeMap;

use serde::Serialize;
use zae_limiter::{
    Admission, EntityId, Error as Limiter, LimitName, LimitStatus, RateLimitExceeded, RateLimiter, Resource,
};

use super::Arguments;
use crate::answer::{Answer, Text};
use crate::commands::available::status_table;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::View;

#[derive(Debug, Serialize)]
struct Leased {
    admitted: bool,
    /// `counted`, or `allowed_while_unavailable`.
    admission: &'static str,
    entity_id: EntityId,
    resource: Resource,
    /// What was used in all, adjustments included.
    consumed: BTreeMap<LimitName, i64>,
    /// How the limits stood once the tokens were taken, before adjustments.
    limits: Vec<LimitStatus>,
}

impl Text for Leased {
    fn text(&self, view: &View) -> String {
        let used: Vec<_> = self
            .consumed
            .iter()
            .map(|(name, tokens)| format!("{name}:{tokens}"))
            .collect();
        let head = format!(
            "{} {}/{} used {}",
            view.paint.good("admitted:"),
            self.entity_id,
            self.resource,
            used.join(" ")
        );
        if self.limits.is_empty() {
            return format!(
                "{head}\nnot counted: the table could not be reached, and the policy is to allow"
            );
        }
        format!("{head}\n{}", status_table(&self.limits).render(view))
    }
}

/// The Python peer's shape, as the library serialises it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Rejected(RateLimitExceeded);

impl Text for Rejected {
    fn text(&self, view: &View) -> String {
        format!(
            "{} {}\n{}",
            view.paint.bad("limited:"),
            self.0,
            status_table(self.0.statuses()).render(view)
        )
    }
}

pub(super) async fn run(arguments: &Arguments, limiter: &RateLimiter) -> Result<Answer> {
    let mut lease = match arguments.acquire(limiter).await {
        Ok(lease) => lease,
        Err(Limiter::RateLimitExceeded(exceeded)) => {
            return Ok(Answer::of(Rejected(*exceeded)).with_exit(Exit::Limited));
        }
        Err(error) => return Err(error.into()),
    };
    arguments.adjust(&mut lease);
    let leased = Leased {
        admitted: true,
        admission: match lease.admission() {
            Admission::Counted => "counted",
            Admission::Local => "local",
            Admission::PartlyCounted => "partly_counted",
            _ => "allowed_while_unavailable",
        },
        entity_id: lease.entity().clone(),
        resource: lease.resource().clone(),
        consumed: lease.consumed(),
        limits: lease.statuses(),
    };
    let committed = lease.commit().await;
    settle(limiter).await?;
    committed?;
    Ok(Answer::of(leased))
}

/// Waits for what goes on in the background; the process ends after it.
pub(super) async fn settle(limiter: &RateLimiter) -> Result<()> {
    let left = limiter.shutdown().await;
    match left.unwritten.first() {
        None => Ok(()),
        Some(first) => Err(Error::Unwritten {
            left: left.unwritten_total,
            reason: first.reason.clone(),
        }),
    }
}
