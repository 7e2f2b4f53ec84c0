//! A test for each screen of `fixtures/views` and for each recorded log.
//! `cargo test -p toolpipe-view --test fixtures NAME` runs those whose name contains NAME.

use std::process::ExitCode;
use testkit::trials;

mod golden;
mod otlp;

fn main() -> ExitCode {
    trials::run([golden::trials(), otlp::trials()])
}
