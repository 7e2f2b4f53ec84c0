//! What is asked of the machine.

use json::{RecentTools, ToolList};
use std::collections::HashSet;
use std::rc::Rc;

/// When a call is emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmitOn {
    /// As soon as its arguments have closed.
    #[default]
    Balanced,
    /// When the provider closed its block, or a later call began.
    Sealed,
    /// When the stream has ended with `stop` or `tool_calls`.
    Final,
}

/// What is asked of a [`crate::Accumulate`].
#[derive(Clone, Debug, Default)]
pub struct AccumulateOptions {
    /// The tools that arguments are validated against. Without them the stream's own `tools` are
    /// used.
    pub tools: Option<Rc<ToolList>>,
    /// The lists that came with the streams before.
    pub recent: Rc<RecentTools>,
    /// When a call is emitted.
    pub emit_on: EmitOn,
    /// Refuse arguments that are not valid JSON, in place of a repair.
    pub no_repair: bool,
    /// Pass the deltas, too.
    pub keep_deltas: bool,
    /// Emit in place of each native delta what it makes certain: a `tool_call_delta` with `index`
    /// (that of the `tool_call`), `tool_id`, `tool_name` (in the call's first one) and `arguments`,
    /// whose bytes add up to a beginning of the arguments of the `tool_call`, without white space
    /// between tokens. A call from text has none, and `retract` always has a `tool_id`. One case
    /// differs: a repair that ends a string before what was emitted of it, since a quote is
    /// missing. A client that has the bytes must not run that call.
    pub live: bool,
    /// Emit the best reading of a call's arguments while they grow.
    pub partial: bool,
    /// The most bytes that are kept of one stream: its text, its reasoning and its calls, until the
    /// message is written. The turn has failed where there are more, as where the message is longer
    /// than a line may be; see [`event::Sink::too_long`].
    pub max_kept: Option<usize>,
    /// Write no message, and keep no text for it. Calls that a stream withdraws as it fails are
    /// retracted nevertheless.
    pub no_message: bool,
    /// The ids of the calls earlier in the conversation. A call that comes under one of them gets a
    /// made id: openai-agents refuses an id that it knows, Claude Code then asks without end, and
    /// some servers count the calls of each answer from 0.
    pub taken_ids: HashSet<String>,
}
