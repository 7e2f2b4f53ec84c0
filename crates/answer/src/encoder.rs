//! One stream of events into the bytes of one answer.

use crate::draft::Draft;
use crate::failure::Failure;
use crate::front::Front;
use crate::options::AnswerOptions;
use crate::step::Step;
use crate::turn::Turn;
use crate::writer::StreamWriter;
use event::Event;

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Server-sent events, while the model writes.
    Stream,
    /// One JSON object at the end.
    Whole,
}

/// Writes the answer of one front. Feed it with [`Encoder::push`], then call [`Encoder::finish`] once.
pub struct Encoder {
    front: Front,
    options: AnswerOptions,
    turn: Turn,
    draft: Draft,
    writer: Option<Box<dyn StreamWriter>>,
}

impl Encoder {
    /// An answer that has not begun.
    pub fn new(front: Front, form: Form, options: AnswerOptions) -> Encoder {
        let writer = (form == Form::Stream).then(|| (front.row().stream)(&options));
        Encoder { front, options, turn: Turn::default(), draft: Draft::default(), writer }
    }

    /// Takes the next event of the stream, and appends what can be sent now.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Encoder { turn, draft, writer, .. } = self;
        turn.push(event, &mut |model, choice, step| write(writer, draft, model, choice, step, out));
    }

    /// Takes the end of the events, and appends the rest: all of it for a whole answer. A failed whole answer writes nothing, see
    /// [`Encoder::failure`].
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let Encoder { turn, draft, writer, .. } = self;
        turn.finish(&mut |model, choice, step| write(writer, draft, model, choice, step, out));
        if self.writer.is_none() && self.turn.failure.is_none() {
            out.extend((self.front.row().whole)(&self.options, &self.draft, &self.turn.usage, &self.turn.model));
        }
    }

    /// Whether something of the model's was written, so that a failure can only be reported inside the stream and no further attempt is
    /// allowed.
    pub fn has_content(&self) -> bool {
        self.turn.has_content
    }

    /// Whether the last byte was written; later events change nothing.
    pub fn is_done(&self) -> bool {
        self.turn.is_done
    }

    /// Why the answer failed, if it did. Before [`Encoder::has_content`] it is due as the response's status and body.
    pub fn failure(&self) -> Option<&Failure> {
        self.turn.failure.as_ref()
    }

    /// Appends what keeps the connection of a stream alive, in the form of its front; nothing for a whole answer. May be called between any two events once
    /// something was written.
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if let Some(writer) = &mut self.writer {
            writer.keep_alive(out);
        }
    }
}

/// Writes one step, and keeps it in the draft where the answer needs that.
fn write(
    writer: &mut Option<Box<dyn StreamWriter>>,
    draft: &mut Draft,
    model: &str,
    choice: u32,
    step: &Step<'_>,
    out: &mut Vec<u8>,
) {
    if writer.as_ref().is_none_or(|w| w.needs_draft()) {
        draft.push(choice, step);
    }
    if let Some(writer) = writer {
        writer.step(choice, step, draft, model, out);
    }
}
