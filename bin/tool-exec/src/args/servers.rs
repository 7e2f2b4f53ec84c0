//! Servers of tools, as it was typed.

use clap::Args;
use std::path::PathBuf;

/// Servers of tools.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Servers of tools (mcpServers)")]
pub struct ServerArgs {
    /// The lock file: the tools of the servers as a person has accepted them (default: the tools
    /// file with .lock at its end)
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Start the servers, print what has changed of their tools, accept it into the lock file, and
    /// stop
    #[arg(long, conflicts_with_all = ["list", "dry_run", "list_pending"])]
    pub update_lock: bool,
    /// Start the servers, run COMMAND (tool-exec --hub -t FILE -- COMMAND…), and end them with it:
    /// each tool-exec that COMMAND starts uses them
    #[arg(long, conflicts_with_all = ["list", "dry_run", "list_pending", "update_lock"])]
    pub hub: bool,
}
