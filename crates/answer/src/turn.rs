//! Events into steps: calls one after the other, one finish reason that fits the content, nothing that a client could run after a cut.

use crate::failure::Failure;
use crate::step::{Step, Usage};
use event::Event;

/// Takes the upstream's name of the model, the number of a choice, and its next step.
pub(crate) type TakeStep<'t> = dyn FnMut(&str, u32, &Step<'_>) + 't;

/// The events of one stream on their way to steps.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The upstream's name of the model; empty before `stream_start`.
    pub model: String,
    /// The tokens so far.
    pub usage: Usage,
    /// Why the answer failed, if it did.
    pub failure: Option<Failure>,
    /// Whether a step was emitted after `Begin`.
    pub has_content: bool,
    /// Whether the last step was emitted.
    pub is_done: bool,
}

impl Turn {
    /// Takes the next event.
    pub fn push(&mut self, _event: &Event<'_>, _take: &mut TakeStep<'_>) {}

    /// Takes the end of the events. Without a `stream_end` before it the answer was cut.
    pub fn finish(&mut self, _take: &mut TakeStep<'_>) {}
}
