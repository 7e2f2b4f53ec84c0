//! `tc-detect`: is there a tool call in this stream?

use std::process::ExitCode;

fn main() -> ExitCode {
    tc_detect::main()
}
