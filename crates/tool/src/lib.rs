//! Tools and the rules for running them: the tools file, argument checks, the plan (a state machine
//! for order and concurrency), cache keys, and results.
//!
//! This crate never spawns a process, opens a file or reads a clock. It uses no shell, and it never
//! builds a path from a model's text: a tool's name is looked up in a table, and an argument only
//! fills a placeholder in a fixed command line or address.

mod approval;
mod argument;
mod argv;
mod call;
mod canonical;
mod exec;
mod history;
mod judge;
mod log;
pub mod mcp;
mod members;
mod output;
mod plan;
mod policy;
mod recorded;
mod reference;
mod result;
mod tools;
mod variables;
mod visible;

pub use approval::{AnswerSource, ApprovalLevel, Class, PersonAnswer, Reason};
pub use argument::{ArgumentRefusal, Arguments, MAX_ITEM, MAX_URL, key as cache_key};
pub use argv::Template;
pub use call::RequestedCall;
pub use canonical::{Hash, hex, pretty, sha256};
pub use event::Glob;
pub use exec::{
    AllowedAddresses, CommandLimits, CommandNetwork, CommandRun, Exec, HttpRequest, HttpRun,
    McpRun, RunnerKind, Sandbox, SandboxKind, Work,
};
pub use judge::{Consent, Judge, ReadyCall, Rules};
pub use log::{Log, LogReader};
pub use output::{BinaryKind, CallStep, ProgressLines, binary, shorten};
pub use plan::{Order, Plan, PlanSettings, PlanStep, PlanTally, Question};
pub use policy::{CallBudget, Effect, Policy, PolicyError, Rate, Rule};
pub use recorded::{CallReplay, RecordedApproval, RecordedCalls};
pub use reference::{
    CallAnswer, CallHash, CallReference, Continuation, PastAnswer, ReferenceError, UnusedAnswer,
    call_hash,
};
pub use result::{CallFailure, MayHaveRun, Status, ToolAnswer, message, text};
pub use tools::{FileError, Tool, Tools};
pub use variables::{CALL_ID, MissingVariable, VariableError, VariableText, fill};
pub use visible::{is_unclear, one_line, visible_json};
