//! How responses of the bucket affect the result.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use zae_limiter_archiver::CallError;

use super::*;
use crate::output::{Color, Format, Paint, Terminal, View, Zone};

/// A bucket with bucketed failures by event number.
#[derive(Default)]
struct ScriptedBucket {
    failures: BTreeMap<usize, CallError>,
    kept: RefCell<Vec<String>>,
    running: Cell<usize>,
    max_running: Cell<usize>,
}

impl ScriptedBucket {
    fn failing(number: usize, failure: CallError) -> Self {
        Self {
            failures: [(number, failure)].into(),
            ..Self::default()
        }
    }
}

impl Store for ScriptedBucket {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        self.running.set(self.running.get() + 1);
        self.max_running
            .set(self.max_running.get().max(self.running.get()));
        tokio::task::yield_now().await;
        self.running.set(self.running.get() - 1);
        let number: usize = object.key.parse().unwrap();
        if let Some(failure) = self.failures.get(&number) {
            return Err(failure.clone());
        }
        self.kept.borrow_mut().push(object.key.clone());
        Ok(())
    }
}

async fn put_all(bucket: &ScriptedBucket, count: usize, concurrency: usize) -> (Result<()>, Summary) {
    let at = Timestamp::from_seconds(1_769_889_600);
    let objects = (0..count).map(|number| {
        let (key, body) = (number.to_string(), vec![0; 10]);
        (format!("AUDIT#{number}"), Object { key, body, at })
    });
    let paint = Paint::new(Color::Never, false);
    let terminal = Terminal {
        format: Format::Table,
        view: View {
            width: None,
            paint,
            zone: Zone::Utc,
        },
        errors: paint,
        live: false,
        verbose: false,
    };
    let mut summary = Summary::new("bucket".to_owned(), at, None, false);
    let mut progress = Progress::new(&terminal, None);
    let concurrency = NonZeroUsize::new(concurrency).unwrap();
    let done = put(
        objects.collect(),
        concurrency,
        bucket,
        &mut summary,
        &mut progress,
    )
    .await;
    (done, summary)
}

#[tokio::test]
async fn uploads_respect_the_concurrency_and_all_are_made() {
    let bucket = ScriptedBucket::default();
    let (done, summary) = put_all(&bucket, 50, 7).await;
    done.unwrap();
    assert_eq!(
        (
            bucket.max_running.get(),
            bucket.kept.borrow().len(),
            summary.archived
        ),
        (7, 50, 50)
    );
}

#[tokio::test]
async fn a_rejected_event_is_left_out_and_the_others_are_archived() {
    let bucket = ScriptedBucket::failing(3, CallError::Invalid("KeyTooLongError".to_owned()));
    let (done, summary) = put_all(&bucket, 10, 4).await;
    done.unwrap();
    assert_eq!((summary.archived, summary.left_out), (9, 1));
}

#[tokio::test]
async fn a_denied_or_unavailable_bucket_fails_with_the_next_step() {
    let bucket = ScriptedBucket::failing(3, CallError::Denied("NoSuchBucket".to_owned()));
    let (done, _) = put_all(&bucket, 10, 1).await;
    let error = done.unwrap_err();
    assert_eq!((error.exit(), error.kind()), (Exit::Error, "denied"));
    assert!(error.to_string().contains("bucket/audit/*"), "{error}");

    let bucket = ScriptedBucket::failing(3, CallError::Unavailable("SlowDown".to_owned()));
    let (done, _) = put_all(&bucket, 10, 1).await;
    let error = done.unwrap_err();
    assert_eq!((error.exit(), error.kind()), (Exit::Unavailable, "unavailable"));
    let text = error.to_string();
    assert!(
        text.contains("3 events are archived") && text.contains("again"),
        "{text}"
    );
}
