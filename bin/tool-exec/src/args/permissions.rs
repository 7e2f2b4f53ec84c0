//! What may run, as it was typed.

use clap::Args;
use std::path::PathBuf;
use tool::{ApprovalLevel, CallAnswer, CallReference};

/// What may run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What may run")]
pub struct Permissions {
    /// Run only tools whose name matches (may be given many times; * matches any characters, ?
    /// matches one)
    #[arg(long, value_name = "GLOB")]
    pub allow: Vec<String>,
    /// Never run tools whose name matches, not even with --allow
    #[arg(long, value_name = "GLOB")]
    pub deny: Vec<String>,
    /// Use the tools file, its programs, its lock file and the policy although other users can
    /// write them
    #[arg(long)]
    pub trust: bool,
    /// The least class that needs a person's yes, asked on the terminal: danger, write, all, or
    /// none [default: danger]
    #[arg(long, value_name = "CLASS", value_parser = approve, hide_default_value = true)]
    pub approve: Option<ApprovalLevel>,
    /// Run this call although it needs approval, or was started before and its result is unknown
    /// (as --list-pending prints it)
    #[arg(long, value_name = "ID:HASH", value_parser = CallReference::read, allow_hyphen_values = true)]
    pub approve_call: Vec<CallReference>,
    /// Refuse this call: it gets a `denied` result, even with --approve-call
    #[arg(long, value_name = "ID:HASH", value_parser = CallReference::read, allow_hyphen_values = true)]
    pub deny_call: Vec<CallReference>,
    /// Give the result of this call, which was started before and whose result is unknown: it is
    /// not run again
    #[arg(long, value_name = "ID:HASH=RESULT", value_parser = CallAnswer::read, allow_hyphen_values = true)]
    pub answer_call: Vec<CallAnswer>,
    /// How many calls of a turn a person is asked about; further ones are denied
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub max_questions: usize,
    /// After how many turns in a row with the same result the same call is denied; 0: never
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub max_repeats: u32,
    /// A policy: rules by tool and by argument, and limits of the conversation (docs/policy.md)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The command that the results of waiting calls name, without a line on standard error
    /// [default: this one, with --resume]
    #[arg(long, value_name = "COMMAND")]
    pub continue_with: Option<String>,
}

fn approve(text: &str) -> Result<ApprovalLevel, String> {
    ApprovalLevel::of(text).ok_or_else(|| "not one of danger, write, all, none".to_owned())
}
