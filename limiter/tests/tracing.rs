//! Spans and events. In a process of its own: what other threads do decides what `tracing` skips.
#![allow(clippy::unwrap_used)]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use zae_limiter::{Clock as _, Limit, ManualClock, RateLimiter, SystemClock};

/// Writes down spans and events of this crate, with their fields.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Notes {
    fn note(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields(String::new());
        record(&mut fields);
        let kind = if metadata.is_span() {
            metadata.name()
        } else {
            "event"
        };
        let note = format!("{} {kind}{}", metadata.level(), fields.0);
        self.0.lock().unwrap().push(note);
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("zae_limiter") && *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata(), |fields| event.record(fields));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn an_acquire_is_a_span_and_a_refusal_an_event() {
    let notes = Notes::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(notes.clone(), || {
        runtime.block_on(async {
            let limits = [Limit::per_minute("rpm", 1).unwrap()];
            let clock = ManualClock::at(SystemClock::new().now());
            let limiter = RateLimiter::embedded().default_limits(limits).clock(clock);
            let limiter = limiter.await.unwrap();
            notes.0.lock().unwrap().clear();
            let call = limiter.acquire("user-1", "gpt-4").consume("rpm", 1);
            call.clone().await.unwrap().commit().await.unwrap();
            call.await.unwrap_err();
        });
    });
    assert_eq!(
        *notes.0.lock().unwrap(),
        [
            r#"DEBUG acquire entity="user-1" resource="gpt-4""#,
            r#"DEBUG acquire entity="user-1" resource="gpt-4""#,
            "DEBUG event message=an acquire was refused refusal=Rate limit exceeded for user-1/gpt-4: [rpm]. \
             Retry after 60.0s",
        ]
    );
}

#[test]
fn the_first_lease_that_is_dropped_without_a_commit_is_logged() {
    let notes = Notes::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(notes.clone(), || {
        runtime.block_on(async {
            let limits = [Limit::per_minute("rpm", 3).unwrap()];
            let limiter = RateLimiter::embedded().default_limits(limits).await.unwrap();
            for user in ["user-1", "user-2"] {
                drop(limiter.acquire(user, "gpt-4").consume("rpm", 1).await.unwrap());
            }
            let call = || limiter.acquire("user-3", "gpt-4").consume("rpm", 1);
            call().commit().await.unwrap();
            call().await.unwrap().rollback().await.unwrap();
            call().await.unwrap().commit_in_background();
            assert_eq!(limiter.stats().rolled_back, 2);
        });
    });
    let notes = notes.0.lock().unwrap();
    let warnings: Vec<_> = notes.iter().filter(|note| note.starts_with("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("entity=user-1 resource=gpt-4"),
        "{warnings:?}"
    );
}
