//! What `tc-serve` costs under load: `load run` starts a mock upstream and the servers to compare,
//! asks them in interleaved rounds, and prints a table. `benches/README.md` says what each figure
//! means.

mod ask;
mod figures;
mod follow;
mod leave;
mod memory;
mod mock;
mod proxy;
mod rounds;
mod server;
mod stalled;
mod stamp;

use std::process::ExitCode;

const USAGE: &str = "\
Usage:
  load run [--rounds N] [--seconds N] [--upstream-port N] [--server NAME=PORT]…
                                                              compare, print a table and a line of JSON
  load memory [--streams N] [--requests N]                    memory of tc-serve
  load stalled [--readers N] [--events N]                     what readers that stall cost the others
  load leave                                                  from a client that leaves to the upstream's close
  load follow [--followers N] [--lines N] [--sessions N]      followers of sessions: memory, lateness, resuming
  load mock PORT                                              the mock upstream alone
  load proxy PORT UPSTREAM_PORT                               the byte-copying proxy alone

TC_SERVE names the command (default: target/release/tc-serve).";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let done = runtime.block_on(tokio::task::LocalSet::new().run_until(async {
        match words.as_slice() {
            ["mock", port] => mock::serve(number(port) as u16).await,
            ["proxy", port, upstream] => {
                proxy::serve(number(port) as u16, number(upstream) as u16).await
            }
            ["run", rest @ ..] => rounds::run(&rounds::Plan::of(rest)).await,
            ["memory", rest @ ..] => memory::run(rest).await,
            ["stalled", rest @ ..] => stalled::run(rest).await,
            ["follow", rest @ ..] => follow::run(rest).await,
            ["leave"] => leave::run().await,
            _ => Err(USAGE.into()),
        }
    }));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("load: {why}");
            ExitCode::from(2)
        }
    }
}

/// A number that was typed.
pub fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| {
        eprintln!("load: {word:?} is not a number");
        std::process::exit(2)
    })
}
