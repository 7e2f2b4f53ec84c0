//! .

use crate::decoder::Decoder;
use crate::turn::Turn;
use event::{Raw, Sink};

/// The rules of this API's stream.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {}

impl Decoder for Anthropic {
    fn frame(&mut self, _name: Option<&str>, _data: Raw<'_>, _turn: &mut Turn, _out: &mut dyn Sink) {}
}
