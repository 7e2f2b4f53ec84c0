//! `tool-exec`: run the tool calls of a stream and write their answers.

use std::process::ExitCode;

fn main() -> ExitCode {
    tool_exec::main()
}
