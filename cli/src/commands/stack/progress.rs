//! Progress while CloudFormation works: a bar and rows on a terminal, timed lines in CI, JSON lines for programs.

mod bar;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use zae_limiter::stack::{Event, Plan, ResourceEvent};

use super::plan::text as plan_text;
use crate::output::live::{self, Style, line, print};
use crate::output::{Paint, Terminal};

/// Shows events as they come. Clones show together.
#[derive(Clone)]
pub(super) struct Progress {
    inner: Arc<Mutex<Shown>>,
}

struct Shown {
    style: Style,
    paint: Paint,
    started: Instant,
    /// The endpoint, unless it is that of AWS.
    endpoint: Option<String>,
    /// How many resources change.
    total: usize,
    /// Resources by their latest status.
    latest: BTreeMap<String, ResourceEvent>,
}

impl Progress {
    pub(super) fn new(terminal: &Terminal, endpoint: Option<String>) -> Self {
        let shown = Shown {
            style: Style::of(terminal),
            paint: terminal.errors,
            started: Instant::now(),
            endpoint,
            total: 0,
            latest: BTreeMap::new(),
        };
        Self {
            inner: Arc::new(Mutex::new(shown)),
        }
    }

    fn with(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Shows what is going to be done.
    pub(super) fn plan(&self, plan: &Plan) {
        self.with(|shown| {
            // What was waited for before is not part of it.
            shown.latest.clear();
            shown.total = plan.changes.len();
            match shown.style {
                Style::Json => line(
                    &json!({ "event": "plan", "stack": plan.stack, "account": plan.account, "region": plan.region,
                    "endpoint": shown.endpoint, "action": plan.action, "changes": plan.changes,
                    "refusals": plan.refusals, "warnings": plan.warnings }),
                ),
                Style::Live | Style::Lines => print(&plan_text(plan, shown.endpoint.as_deref())),
            }
        });
    }

    /// Sets how many resources to wait for.
    pub(super) fn expect(&self, total: usize) {
        self.with(|shown| shown.total = total);
    }

    pub(super) fn event(&self, event: &Event) {
        self.with(|shown| shown.event(event));
    }

    /// Reports the end, as an object for programs; people read the command's output.
    pub(super) fn result(&self, result: &Value) {
        self.with(|shown| {
            if shown.style == Style::Json {
                line(result);
            }
        });
    }

    /// Redraws the clock.
    pub(super) fn tick(&self) {
        self.with(|shown| {
            if shown.style == Style::Live {
                shown.draw();
            }
        });
    }

    /// Clears the status line.
    pub(super) fn finish(&self) {
        self.with(|shown| {
            if shown.style == Style::Live {
                print(live::CLEAR);
            }
        });
    }

    pub(super) fn is_json(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).style == Style::Json
    }
}

impl Shown {
    fn event(&mut self, event: &Event) {
        if let Event::Resource(resource) = event {
            self.latest.insert(resource.logical_id.clone(), resource.clone());
        }
        match self.style {
            Style::Json => line(&as_json(event)),
            Style::Lines => print(&format!(
                "{} {}\n",
                live::clock(self.started.elapsed()),
                as_line(event)
            )),
            Style::Live => {
                let settled = match event {
                    Event::Resource(resource) => !resource.status.ends_with("_IN_PROGRESS"),
                    _ => true,
                };
                // What is settled stays on the terminal; what goes on is in the bar.
                if settled {
                    let row = self.row(event);
                    print(&format!("{}{row}\n", live::CLEAR));
                }
                self.draw();
            }
        }
    }

    fn row(&self, event: &Event) -> String {
        let Event::Resource(resource) = event else {
            return format!("  {event}");
        };
        let (sign, status) = if bar::failed(&resource.status) {
            (self.paint.bad("✗"), self.paint.bad(&resource.status))
        } else {
            (self.paint.good("✓"), self.paint.good(&resource.status))
        };
        let reason = resource.reason.as_ref().filter(|_| bar::failed(&resource.status));
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        format!(
            "{sign} {} {} {status}{reason}",
            resource.logical_id,
            self.paint.faint(&resource.resource_type)
        )
    }

    fn draw(&self) {
        let line = bar::line(&self.latest, self.total, self.started.elapsed(), live::width());
        print(&format!("{}{line}", live::CLEAR));
    }
}

fn as_line(event: &Event) -> String {
    match event {
        Event::Resource(resource) => {
            let reason = resource
                .reason
                .as_ref()
                .map(|reason| format!(": {reason}"))
                .unwrap_or_default();
            format!(
                "{} {} ({}){reason}",
                resource.status, resource.logical_id, resource.resource_type
            )
        }
        other => other.to_string(),
    }
}

fn as_json(event: &Event) -> Value {
    let mut object = match event {
        Event::Resource(resource) => {
            let mut object = serde_json::to_value(resource).unwrap_or_default();
            object["event"] = "resource".into();
            return object;
        }
        Event::BucketCreated { bucket } => json!({ "event": "bucket_created", "bucket": bucket }),
        Event::Uploaded { function, key, bytes } => {
            json!({ "event": "uploaded", "function": function.as_str(), "key": key, "bytes": bytes })
        }
        Event::Started { operation } => json!({ "event": "started", "operation": operation }),
        Event::Awaiting { status } => json!({ "event": "awaiting", "status": status }),
        Event::TryingAgain { after_seconds, .. } => {
            json!({ "event": "trying_again", "after_seconds": after_seconds })
        }
        Event::NotChecked { what, .. } => json!({ "event": "not_checked", "what": what }),
        Event::Warning { .. } => json!({ "event": "warning" }),
        Event::Purged { what } => json!({ "event": "purged", "what": what }),
        _ => json!({ "event": "other" }),
    };
    object["message"] = event.to_string().into();
    object
}
