//! One program for all targets; the variable `ZAE_FUZZ_TARGET` says which one.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let wanted = std::env::var("ZAE_FUZZ_TARGET").expect("ZAE_FUZZ_TARGET names a target");
        let mut targets = zae_limiter_fuzz::TARGETS.iter();
        targets
            .find(|(name, _)| *name == wanted)
            .expect("there is such a target")
            .1
    });
    target(data);
});
