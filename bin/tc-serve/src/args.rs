//! What was typed.

use clap::Parser;

/// Serves any model to any client, with correct tool calls
#[derive(Debug, Parser)]
#[command(name = "tc-serve", version, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub common: ::args::Common,
}
