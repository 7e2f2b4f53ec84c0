//! The stream and the whole answer of `/v1/chat/completions`.

use crate::draft::Draft;
use crate::options::AnswerOptions;
use crate::step::Step;
use crate::writer::{FrontRow, StreamWriter};

/// The row of this API.
pub(crate) const ROW: FrontRow = FrontRow {
    name: "openai-chat",
    path: "/v1/chat/completions",
    stream: |_| Box::new(Writer),
    whole: |_, _, _, _| Vec::new(),
    failure: |_| Vec::new(),
};

struct Writer;

impl StreamWriter for Writer {
    fn step(&mut self, _choice: u32, _step: &Step<'_>, _draft: &Draft, _model: &str, _out: &mut Vec<u8>) {}
}

#[expect(dead_code, reason = "the options are used once the writer is here")]
fn options(_: &AnswerOptions) {}
