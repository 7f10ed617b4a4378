//! The program for libFuzzer, one for all targets: the variable `ZAE_FUZZ_TARGET` chooses. `scripts/fuzz` builds and runs it.
#![no_main]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

#[path = "../../fuzz/targets/mod.rs"]
mod targets;

fuzz_target!(|data: &[u8]| {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let wanted = std::env::var("ZAE_FUZZ_TARGET").expect("ZAE_FUZZ_TARGET names a target");
        let mut targets = targets::TARGETS.iter();
        targets
            .find(|(name, _)| *name == wanted)
            .expect("there is such a target")
            .1
    });
    target(data);
});
