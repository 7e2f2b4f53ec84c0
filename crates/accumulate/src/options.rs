//! The options of the state machine.

use json::{RecentTools, ToolList};
use std::collections::HashSet;
use std::rc::Rc;

/// When a call is emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmitOn {
    /// As soon as its arguments are balanced.
    #[default]
    Balanced,
    /// When the provider has closed its block, or a later call has started.
    Sealed,
    /// When the stream has ended with `stop` or `tool_calls`.
    Final,
}

/// The options of a [`crate::Accumulate`].
#[derive(Clone, Debug, Default)]
pub struct AccumulateOptions {
    /// The tools that arguments are validated against. `None` means the `tools` of the stream
    /// itself.
    pub tools: Option<Rc<ToolList>>,
    /// The lists that came with the streams before.
    pub recent: Rc<RecentTools>,
    /// When a call is emitted.
    pub emit_on: EmitOn,
    /// Reject arguments that are not valid JSON instead of repairing them.
    pub no_repair: bool,
    /// Also forward the deltas.
    pub keep_deltas: bool,
    /// Replace each native delta by the argument bytes that it makes certain: a `tool_call_delta`
    /// with `index` (that of the `tool_call`), `tool_id`, `tool_name` (only in the call's first
    /// delta) and `arguments`. Concatenated, these `arguments` are a prefix of the arguments of the
    /// `tool_call`, without white space between tokens. A call that the model wrote as text gets no
    /// such deltas, and `retract` always has a `tool_id`. The prefix differs in one case: a quote
    /// is missing, and the repair ends a string before bytes that were already emitted. A client
    /// that has received those bytes must not run that call.
    pub live: bool,
    /// Emit the best reading of a call's arguments while they arrive.
    pub partial: bool,
    /// Maximum bytes kept of a stream until its message is written: text, reasoning and calls.
    /// `None` means no limit. A turn that exceeds the limit fails, as does one whose message is
    /// longer than the line limit; see [`event::Sink::too_long`].
    pub max_kept: Option<usize>,
    /// Write no message, and keep no text for it. If the stream fails, its calls are still
    /// retracted.
    pub no_message: bool,
    /// The ids of earlier calls in the conversation. A call that arrives with such an id gets a
    /// generated one: openai-agents rejects an id that it has seen, Claude Code then repeats the
    /// request without end, and some servers number the calls of each answer from 0.
    pub taken_ids: HashSet<String>,
}
