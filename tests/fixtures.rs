//! A test for each fixture. `cargo test --test fixtures NAME` runs those whose name contains NAME:
//! `cases/` and `streams/` are the kinds, `cases/row-07` some of them.

use std::process::ExitCode;
use testkit::trials;

mod cases;
mod serve_bugs;
mod streams;

mod pipeline {
    pub(crate) mod schema;
}

/// The strict readers of the answers of `tc-serve`.
#[allow(dead_code, reason = "the laws use the rest")]
mod serve {
    mod chat;
    mod frames;
    mod messages;
    pub(crate) mod pipe;
    mod prefix;
    pub(crate) mod read;
    mod reading;
    mod responses;
}

fn main() -> ExitCode {
    trials::run([cases::trials(), serve_bugs::trials(), streams::trials()])
}
