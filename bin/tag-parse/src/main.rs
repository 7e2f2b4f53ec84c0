//! `tag-parse`: tool calls written as text, as tool-call events.

use std::process::ExitCode;

fn main() -> ExitCode {
    tag_parse::main()
}
