//! Tools and what may run: the tools file, the rules for arguments, the plan (order and concurrency
//! as a state machine), cache keys, and results.
//!
//! Nothing here starts a process, opens a file or reads a clock. There is no shell, and no path is
//! made of a model's words: the name of a tool is looked up in a table, and an argument fills a
//! place in a list.

mod approval;
mod argument;
mod argv;
mod binary;
mod cache;
mod call;
mod call_answer;
mod call_digest;
mod call_hash;
mod call_reference;
mod cancel;
mod canonical;
mod class;
mod commit;
mod consent;
mod continuation;
mod exec;
mod failure;
mod history;
mod intake;
mod judge;
mod log;
mod logged_call;
pub mod mcp;
mod names;
mod number;
mod plan;
mod policy;
mod pretty;
mod progress;
mod questions;
mod refusal;
mod repeats;
mod result;
mod retract;
mod rules;
mod schedule;
mod seen;
mod shorten;
mod starts;
mod step;
mod tally;
mod tools;
mod turn;
mod visible;

pub use approval::{AnswerSource, ApprovalLevel, PersonAnswer, Reason};
pub use argument::Arguments;
pub use argv::Template;
pub use binary::{BinaryKind, binary};
pub use cache::key as cache_key;
pub use call::RequestedCall;
pub use call_answer::CallAnswer;
pub use call_digest::call_hash;
pub use call_hash::CallHash;
pub use call_reference::{CallReference, ReferenceError};
pub use canonical::{Hash, hex, sha256};
pub use class::Class;
pub use consent::Consent;
pub use continuation::{Continuation, shell_word};
pub use event::Glob;
pub use exec::{
    AllowedAddresses, CALL_ID, CommandRun, Exec, HttpRequest, HttpRun, Limits, McpRun, Run,
    VariableError, VariableText, Work,
};
pub use exec::{Network, Sandbox, SandboxKind};
pub use failure::CallFailure;
pub use judge::{Judge, ReadyCall};
pub use log::Log;
pub use plan::Plan;
pub use policy::{Budget, Effect, Policy, PolicyError, Rate, Rule};
pub use pretty::pretty;
pub use progress::{CommandProgress, ProgressLines};
pub use refusal::{MAX_ITEM, MAX_URL, Refusal};
pub use result::{Answer, Status, message, one_line, text};
pub use rules::Rules;
pub use shorten::shorten;
pub use step::{Order, PlanStep, Settings};
pub use tally::Tally;
pub use tools::{FileError, Tool, Tools};
pub use visible::{is_unclear, visible_json};
