//! `tc-serve`: any client, any model, correct tool calls.

use std::process::ExitCode;

fn main() -> ExitCode {
    tc_serve::main()
}
