#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolpipe_fuzz::run(
    &toolpipe_fuzz::laws::sse::TARGET,
    bytes
));
