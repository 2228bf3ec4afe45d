//! All targets in one program, for machines without Rust: `STREAMSAN_FUZZ_TARGET` names the one to run.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("STREAMSAN_FUZZ_TARGET").expect("STREAMSAN_FUZZ_TARGET names a target"));

libfuzzer_sys::fuzz_target!(|input: &[u8]| streamsan_fuzz::run(&TARGET, input));
