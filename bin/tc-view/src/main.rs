//! `tc-view`: events for people.

use std::process::ExitCode;

fn main() -> ExitCode {
    tc_view::main()
}
