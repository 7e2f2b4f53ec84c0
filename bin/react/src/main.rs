//! `react`: the agent loop, put together with pipes.

use std::process::ExitCode;

fn main() -> ExitCode {
    react::main()
}
