//! The laws of what `tc-serve` writes, from the bytes of an upstream to those of a client, with the
//! machines in memory: every recorded body on every front, as a stream and whole. `chat.rs`,
//! `responses.rs` and `messages.rs` are strict readers of the three APIs.

mod chat;
mod dialects;
mod faults;
mod frames;
mod generated;
mod laws;
mod messages;
mod pipe;
mod prefix;
mod read;
mod reading;
mod recorded;
mod responses;
mod steps;
mod truth;
