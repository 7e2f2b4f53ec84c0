//! The laws of what `tc-serve` writes, from the bytes of an upstream to those of a client, with the
//! machines in memory: every recorded body on every front, as a stream and whole. `chat.rs`,
//! `responses.rs` and `messages.rs` are strict readers of the three APIs.

extern crate tag as toolpipe_tag;

mod chat;
mod dialects;
mod faults;
#[allow(dead_code, reason = "a test of the crate writes the files")]
#[path = "../../crates/tag/tests/cases/file.rs"]
mod file;
mod frames;
mod generated;
mod laws;
mod messages;
#[allow(dead_code, reason = "a test of the crate compares outcomes")]
#[path = "../../crates/tag/tests/cases/outcome.rs"]
mod outcome;
mod pipe;
mod prefix;
mod read;
mod reading;
mod recorded;
mod responses;
mod steps;
mod truth;
