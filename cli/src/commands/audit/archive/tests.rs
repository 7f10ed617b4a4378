//! What a bucket may say, and what becomes of the events.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::*;
use crate::output::{Color, Format, Paint, Terminal, View, Zone};

/// A bucket that answers by the number of an event.
#[derive(Default)]
struct Script {
    failures: BTreeMap<usize, CallFailure>,
    kept: RefCell<Vec<String>>,
    running: Cell<usize>,
    most: Cell<usize>,
}

impl Script {
    fn failing(number: usize, failure: CallFailure) -> Self {
        Self {
            failures: [(number, failure)].into(),
            ..Self::default()
        }
    }
}

impl Store for Script {
    async fn put(&self, object: &Object) -> Result<(), CallFailure> {
        self.running.set(self.running.get() + 1);
        self.most.set(self.most.get().max(self.running.get()));
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

async fn put_all(script: &Script, count: usize, at_once: usize) -> (Result<()>, Summary) {
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
    let at_once = NonZeroUsize::new(at_once).unwrap();
    let done = put(objects.collect(), at_once, script, &mut summary, &mut progress).await;
    (done, summary)
}

#[tokio::test]
async fn no_more_are_put_at_once_than_asked_for_and_all_are_put() {
    let script = Script::default();
    let (done, summary) = put_all(&script, 50, 7).await;
    done.unwrap();
    assert_eq!(
        (script.most.get(), script.kept.borrow().len(), summary.archived),
        (7, 50, 50)
    );
}

#[tokio::test]
async fn an_event_that_the_bucket_can_never_take_is_left_out_and_the_others_are_put() {
    let script = Script::failing(3, CallFailure::Rejected("KeyTooLongError".to_owned()));
    let (done, summary) = put_all(&script, 10, 4).await;
    done.unwrap();
    assert_eq!((summary.archived, summary.left_out), (9, 1));
}

#[tokio::test]
async fn a_bucket_that_is_not_there_or_does_not_answer_ends_it_with_what_to_do() {
    let script = Script::failing(3, CallFailure::Denied("NoSuchBucket".to_owned()));
    let (done, _) = put_all(&script, 10, 1).await;
    let error = done.unwrap_err();
    assert_eq!((error.exit(), error.kind()), (Exit::Error, "denied"));
    assert!(error.to_string().contains("bucket/audit/*"), "{error}");

    let script = Script::failing(3, CallFailure::Transient("SlowDown".to_owned()));
    let (done, _) = put_all(&script, 10, 1).await;
    let error = done.unwrap_err();
    assert_eq!((error.exit(), error.kind()), (Exit::Unavailable, "unavailable"));
    let text = error.to_string();
    assert!(
        text.contains("3 are archived") && text.contains("again"),
        "{text}"
    );
}
