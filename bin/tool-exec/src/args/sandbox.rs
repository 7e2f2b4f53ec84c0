//! What confines commands, as it was typed.

use clap::Args;
use tool::SandboxKind;

/// What confines commands.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What commands may reach")]
pub struct Confining {
    /// What confines each command at the least: none, landlock or bwrap; a tool may ask for more
    /// with `exec.sandbox`
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = kind)]
    pub sandbox: SandboxKind,
    /// Print what is in force here for commands of this user, one line each; with --sandbox, status
    /// 2 if that cannot be had
    #[arg(long, conflicts_with_all = ["tools", "files"], help_heading = "Looking only")]
    pub doctor: bool,
}

fn kind(text: &str) -> Result<SandboxKind, String> {
    SandboxKind::of(text).ok_or_else(|| "not one of none, landlock, bwrap".to_owned())
}
