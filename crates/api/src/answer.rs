//! Converts events into the response that a client of a provider's API expects, either streamed or
//! complete.
//!
//! [`Front`] lists the APIs that clients speak. [`Encoder`] takes the events of one stream, as
//! `accumulate` emits them with live deltas, and writes the bytes of the response. This module
//! opens no connections, reads no clock, and does not merge deltas.

pub(crate) mod delta;
pub(crate) mod details;
pub(crate) mod encoder;
pub(crate) mod failure;
pub(crate) mod response;
pub(crate) mod service;
pub(crate) mod step;
pub(crate) mod turn;
pub(crate) mod writer;
