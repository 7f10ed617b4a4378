//! One bucket, live.

use maud::{Markup, html};
use zae_limiter::{BucketLimit, BucketLimitKind, BucketState, Counted, LimitStatus, Timestamp};

use super::mode;
use crate::ui::level::Level;
use crate::ui::load::{LiveBucket, Loaded};
use crate::ui::page::{Nav, Section, View};
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::text::{amount, grouped, rate, rate_of, time};
use crate::ui::url::Url;

pub(crate) fn bucket(
    title: &str,
    here: &Url,
    events: &Url,
    data: &Loaded<LiveBucket>,
    edit: Option<&Url>,
) -> View {
    let lead = html! {
        p.actions {
            span.live-state data-live-state { "As of the last reload" }
            button type="button" data-live-pause hidden { "Pause" }
            @if let Some(edit) = edit { a.button href=(edit) { "Change limits" } }
        }
    };
    let section = Section::new("Now").markup(html! {
        div #live data-live=(events) { (live(data)) }
    });
    let view = View::new(Nav::Entities, title, here.clone())
        .lead(lead)
        .section(section);
    match data {
        Ok(data) => view.section(Section::new("As tables").table(limits(data)).table(writers(data))),
        Err(_) => view,
    }
}

/// The part that is sent again and again.
pub(crate) fn live(data: &Loaded<LiveBucket>) -> Markup {
    match data {
        Err(failure) => failure.to_html(),
        Ok(data) => html! {
            (mode::note(data.mode.0, data.mode.1))
            @if let Some(parent) = &data.disabled_parent {
                p.mode { strong { "Every call is refused" } ": the parent " a href=(Url::entity(parent)) { (parent) } " is disabled here." }
            }
            @if data.statuses.is_empty() && data.bucket.is_none() {
                div.empty {
                    p.empty-message { "No limits apply here, and nothing was used." }
                    p { "Set limits with " code { "zae-limiter entity set-limits " (data.entity) " -r " (data.resource) " -l rpm:100" } "." }
                }
            }
            @if !data.statuses.is_empty() {
                div.gauges { @for status in &data.statuses { (gauge(data, status)) } }
            }
            @match &data.bucket {
                None => { p.note { "There is no bucket yet: it appears with the first call, full." } }
                Some(bucket) => { (about(bucket)) }
            }
        },
    }
}

fn gauge(data: &LiveBucket, status: &LimitStatus) -> Markup {
    let money = data.money.as_ref() == Some(status.limit.name());
    let level = Level::of(
        &status.limit,
        status.topped_up,
        status.available,
        status.used,
        money,
    );
    let (shown, most) = level.amounts();
    let refill = rate_of(&status.limit, money);
    html! {
        div.gauge {
            h3 {
                (status.limit.name())
                @if status.entity != data.entity { span.of { " of parent " a href=(Url::bucket(&status.entity, &status.resource)) { (status.entity) } } }
            }
            p.amount { span.big { (shown) } " of " (most) }
            (level.to_svg())
            p.note {
                @match level.counted {
                    Counted::Available => { "refills " (refill) }
                    Counted::Used | Counted::Held => { (refill) }
                }
                @if status.topped_up > 0 { ", topped up by " (amount(status.topped_up, money)) }
                @if let Some(reset) = status.reset { ", resets " (time(reset.at)) }
                @if status.available < 0 { ", " strong { "in debt" } }
            }
        }
    }
}

fn about(bucket: &BucketState) -> Markup {
    html! {
        dl.about {
            dt { "Acquires" } dd.number { (grouped(bucket.acquires)) }
            dt { "Last refill" } dd { (time(bucket.refilled_at)) }
            @if let Some(expires) = bucket.expires_at { dt { "Expires" } dd { (time(expires)) } }
            dt { "Writers" }
            dd {
                @if bucket.writers.is_empty() { "none known" }
                @for (index, writer) in bucket.writers.iter().enumerate() {
                    @if index > 0 { ", " }
                    code { (writer.client) } " at " (time(writer.wrote_at))
                }
            }
        }
    }
}

fn limits(data: &LiveBucket) -> Table {
    let empty = Empty::new(
        "The bucket has no limits yet.",
        html! { "They appear with the first call." },
    );
    let limits = data.bucket.iter().flat_map(|bucket| &bucket.limits);
    // Most buckets have rates alone.
    let has_used = limits.clone().any(|limit| used_or_held(limit).0.is_some());
    let has_resets = limits.clone().any(|limit| used_or_held(limit).1.is_some());
    let only_if = |has, align| if has { align } else { Align::ExportOnly };
    Table::new("limits", "Limits of the bucket", empty)
        .column("limit_name", "Limit", Align::Start)
        .column("available", "Available", Align::End)
        .column("debt", "Debt", Align::ExportOnly)
        .column("burst", "Burst", Align::End)
        .column("capacity", "Capacity", Align::End)
        .column("refill", "Refill", Align::End)
        .column("used", "Used or held", only_if(has_used, Align::End))
        .column("resets_at", "Resets", only_if(has_resets, Align::Start))
        .column("consumed", "Total consumed", Align::End)
        .rows(limits.map(|limit| {
            let money = data.money.as_ref() == Some(&limit.name);
            let (used, resets_at) = used_or_held(limit);
            vec![
                Cell::code(&limit.name),
                Cell::amount(limit.available, true, money),
                Cell::amount(limit.available.saturating_neg().max(0), true, money),
                Cell::amount(limit.burst, true, money),
                Cell::amount(limit.capacity, true, money),
                Cell::text(refill(limit, money)),
                used.map_or(Cell::Empty, |used| Cell::amount(used, true, money)),
                resets_at.map_or(Cell::Empty, Cell::Time),
                Cell::amount(limit.consumed, true, money),
            ]
        }))
}

/// How a limit of a bucket comes back.
fn refill(limit: &BucketLimit, money: bool) -> String {
    let most = amount(limit.capacity, money);
    match &limit.kind {
        BucketLimitKind::Rate {
            refill_amount,
            refill_period_ms,
        } => rate(*refill_amount, *refill_period_ms, money),
        BucketLimitKind::Quota { period, .. } => format!("{most} per {period}"),
        BucketLimitKind::Concurrency {
            expires_after_seconds,
            ..
        } => format!("{most} at once for {expires_after_seconds}s"),
        _ => String::new(),
    }
}

/// What was used of a quota and when it resets, or the permits that are held.
fn used_or_held(limit: &BucketLimit) -> (Option<i64>, Option<Timestamp>) {
    match limit.kind {
        BucketLimitKind::Quota { used, period_end, .. } => (Some(used), period_end),
        BucketLimitKind::Concurrency { held, .. } => (Some(held), None),
        _ => (None, None),
    }
}

fn writers(data: &LiveBucket) -> Table {
    let empty = Empty::new(
        "Nothing has been written yet.",
        html! { "Each process that calls appears here, the latest first." },
    );
    let writers = data.bucket.iter().flat_map(|bucket| &bucket.writers);
    Table::new("writers", "Processes that wrote the bucket", empty)
        .column("client", "Process", Align::Start)
        .column("wrote_at", "Last write", Align::Start)
        .rows(writers.map(|writer| vec![Cell::code(&writer.client), Cell::Time(writer.wrote_at)]))
}
