//! `tc-accumulate`: deltas merged into tool calls.

use std::process::ExitCode;

fn main() -> ExitCode {
    tc_accumulate::main()
}
