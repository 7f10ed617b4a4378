//! What the tests share.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod archive;
pub(crate) mod calls;
pub(crate) mod ministack;
pub(crate) mod permits;
pub(crate) mod requests;

use std::sync::{Arc, Mutex};

use zae_limiter_stack::{Code, Event, LambdaFunction, Observer, StackName, StackOptions};

pub(crate) fn name(name: &str) -> StackName {
    StackName::parse(name).unwrap()
}

/// Both functions, as tiny archives.
pub(crate) fn code() -> Code {
    code_of("#!/bin/sh\nsleep 1\n")
}

pub(crate) fn code_of(script: &str) -> Code {
    Code::bundled(
        LambdaFunction::ALL.map(|function| (function, archive::zip("bootstrap", script.as_bytes()))),
    )
}

/// No functions, so no archives are needed.
pub(crate) fn bare() -> StackOptions {
    StackOptions::builder()
        .enable_aggregator(false)
        .enable_audit_archival(false)
        .build()
        .unwrap()
}

/// Remembers what happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<Event>>>);

impl Diary {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Diary {
    fn observe(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}
