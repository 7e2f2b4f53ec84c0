//! .

use crate::decoder::Decoder;
use crate::turn::Turn;
use event::{Raw, Sink};

/// The rules of this API's stream.
#[derive(Debug, Default)]
pub(crate) struct OpenaiChat {}

impl Decoder for OpenaiChat {
    fn frame(&mut self, _name: Option<&str>, _data: Raw<'_>, _turn: &mut Turn, _out: &mut dyn Sink) {}
}

impl OpenaiChat {
    /// Mistral's stream, which is this one with content in parts.
    pub(crate) fn mistral() -> Self {
        OpenaiChat {}
    }
}
