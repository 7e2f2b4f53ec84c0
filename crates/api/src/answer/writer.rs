//! What a file of `front/` gives: the writer of a stream, and the row of its API.

use crate::answer::draft::Draft;
use crate::answer::failure::Failure;
use crate::answer::options::AnswerOptions;
use crate::answer::step::{Step, Usage};

/// Writes the stream of one API.
pub(crate) trait StreamWriter {
    /// How many bytes of the answer it keeps, since the stream repeats them later.
    fn kept(&self) -> usize {
        0
    }

    /// Appends the bytes that one step of the choice `choice` becomes. `model` is the upstream's
    /// name of the model, empty if the upstream has sent none yet.
    fn step(&mut self, choice: u32, step: &Step<'_>, model: &str, out: &mut Vec<u8>);

    /// Takes the id that the provider gave to the answer. What was written under another one stays.
    fn set_id(&mut self, id: &str);

    /// Appends what keeps the connection alive, between two steps after `Begin`: a comment, unless
    /// the API has an event for it. Some clients count only events as a sign of life.
    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b": keep-alive\n\n");
    }
}

/// The row of one API.
pub(crate) struct FrontRow {
    /// The name of the API, as `--api` has it.
    pub name: &'static str,
    /// The path of its requests.
    pub path: &'static str,
    /// The writer of its stream.
    pub stream: fn(&AnswerOptions) -> Box<dyn StreamWriter>,
    /// The whole answer at once: one JSON object.
    pub whole: fn(&AnswerOptions, &Draft, &Usage, &str) -> Vec<u8>,
    /// The body of an HTTP error.
    pub failure: fn(&Failure) -> Vec<u8>,
}
