#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| streamsan_fuzz::run("settings", input));
