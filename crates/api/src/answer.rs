//! Events into the answer that a client of a provider's API expects: its stream, or the whole
//! answer at once.
//!
//! What it is: the APIs that clients speak ([`Front`]), and [`Encoder`], which takes
//! the events of one stream and writes the bytes of the answer. The events are those that
//! `accumulate` emits with live deltas. What it is not: it opens no connection, has no clock, and
//! merges no deltas.

pub(crate) mod details;
pub(crate) mod encoder;
pub(crate) mod failure;
pub(crate) mod response;
pub(crate) mod service;
pub(crate) mod step;
pub(crate) mod turn;
pub(crate) mod writer;
