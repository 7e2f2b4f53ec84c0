//! `tc-eval`: how good is a checker of tool calls?

use std::process::ExitCode;

fn main() -> ExitCode {
    tc_eval::main()
}
