//! Whole connections: `cargo +nightly fuzz run conversation` in `crates/grpc`.
//!
//! The input is the script of a conversation, so that most inputs are long conversations and few are noise.

#![no_main]

#[path = "../../tests/fuzz/caller.rs"]
mod caller;
#[allow(dead_code)] // the test from seeds prints the tally
#[path = "../../tests/fuzz/conversation.rs"]
mod conversation;
#[path = "../../tests/fuzz/monitor.rs"]
mod monitor;
#[path = "../../tests/fuzz/script.rs"]
mod script;

#[allow(dead_code)] // the conformance test uses other parts of it
#[path = "../../tests/common/echo.rs"]
mod echo;
#[allow(dead_code)] // the conformance test uses other parts of it
#[path = "../../tests/common/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    conversation::fuzz(bytes);
});
