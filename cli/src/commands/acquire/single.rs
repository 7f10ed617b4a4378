//! One acquire: a lease or a refusal.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use zae_limiter::money::dollars;
use zae_limiter::{
    Admission, EntityId, Error as Limiter, Lease, LimitName, LimitStatus, RateLimiter, Refusal, Resource,
};

use super::Arguments;
use crate::command_output::{CommandOutput, Text};
use crate::commands::available::status_table;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::money::MoneyLimits;
use crate::output::View;

#[derive(Debug, Serialize)]
struct AdmittedReport {
    admitted: bool,
    /// How the call was counted: `counted`, `local`, `partly_counted`, or `allowed_while_unavailable`.
    admission: &'static str,
    entity_id: EntityId,
    resource: Resource,
    /// Tokens used in total, adjustments included.
    consumed: BTreeMap<LimitName, i64>,
    /// The same of the other resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<AlsoConsumed>,
    /// The limits after the tokens were taken, before adjustments.
    limits: Vec<LimitStatus>,
    #[serde(skip)]
    money: MoneyLimits,
}

#[derive(Debug, Serialize)]
struct AlsoConsumed {
    resource: Resource,
    consumed: BTreeMap<LimitName, i64>,
}

impl AlsoConsumed {
    fn all(lease: &Lease) -> Vec<Self> {
        let others = lease.resources().skip(1).map(|resource| Self {
            resource: resource.clone(),
            consumed: lease.consumed_on(resource).unwrap_or_default(),
        });
        others.collect()
    }
}

impl Text for AdmittedReport {
    fn text(&self, view: &View) -> String {
        // As they are written on the command line.
        let amount = |resource: &Resource, name: &LimitName, tokens: i64| {
            if self.money.has(resource, name) {
                format!("{name}:{}", dollars(tokens.into()))
            } else {
                format!("{name}:{tokens}")
            }
        };
        let used = self.consumed.iter();
        let used = used.map(|(name, tokens)| amount(&self.resource, name, *tokens));
        let mut used: Vec<_> = used.collect();
        for AlsoConsumed { resource, consumed } in &self.also {
            let others = consumed.iter();
            used.extend(
                others.map(|(name, tokens)| format!("{resource}/{}", amount(resource, name, *tokens))),
            );
        }
        let head = format!(
            "{} {}/{} used {}",
            view.paint.good("admitted:"),
            self.entity_id,
            self.resource,
            used.join(" ")
        );
        if self.limits.is_empty() {
            return format!("{head}\nnot counted: the table is unavailable, and on_unavailable is allow");
        }
        format!("{head}\n{}", status_table(&self.limits, &self.money).render(view))
    }
}

/// The same JSON as the Python package, as the library serializes it.
#[derive(Debug, Serialize)]
struct RefusedReport {
    #[serde(flatten)]
    refusal: Refusal,
    #[serde(skip)]
    money: MoneyLimits,
}

impl Text for RefusedReport {
    fn text(&self, view: &View) -> String {
        format!(
            "{} {}\n{}",
            view.paint.bad("rate limited:"),
            self.refusal,
            status_table(self.refusal.statuses(), &self.money).render(view)
        )
    }
}

pub(super) async fn run(arguments: &Arguments, limiter: &RateLimiter) -> Result<CommandOutput> {
    let mut lease = match arguments.acquire(limiter).await {
        Ok(lease) => lease,
        Err(Limiter::Refused(refusal)) => {
            finish_writes(limiter).await?;
            let money = arguments.money(limiter).await;
            let refusal = Arc::unwrap_or_clone(refusal);
            return Ok(CommandOutput::new(RefusedReport { refusal, money }).with_exit(Exit::Limited));
        }
        Err(error) => return Err(error.into()),
    };
    arguments.adjust(&mut lease);
    let report = AdmittedReport {
        admitted: true,
        admission: match lease.admission() {
            Admission::Counted => "counted",
            Admission::Local => "local",
            Admission::PartlyCounted => "partly_counted",
            Admission::Observed => "observed",
            Admission::Bypassed => "bypassed",
            _ => "allowed_while_unavailable",
        },
        entity_id: lease.entity().clone(),
        resource: lease.resource().clone(),
        consumed: lease.consumed(),
        also: AlsoConsumed::all(&lease),
        limits: lease.statuses(),
        money: arguments.money(limiter).await,
    };
    let committed = lease.commit().await;
    finish_writes(limiter).await?;
    committed?;
    Ok(CommandOutput::new(report))
}

/// Waits for background writes, since the process is about to exit.
pub(super) async fn finish_writes(limiter: &RateLimiter) -> Result<()> {
    let left = limiter.shutdown().await;
    match left.unwritten.first() {
        None => Ok(()),
        Some(first) => Err(Error::Unwritten {
            left: left.unwritten_total,
            reason: first.reason.clone(),
        }),
    }
}
