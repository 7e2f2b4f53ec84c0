//! `llm-stream`: a model's stream as events.

use std::process::ExitCode;

fn main() -> ExitCode {
    llm_stream::main()
}
