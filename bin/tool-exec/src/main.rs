//! `tool-exec`: run the tool calls of a stream, and answer them.

use std::process::ExitCode;

fn main() -> ExitCode {
    tool_exec::main()
}
