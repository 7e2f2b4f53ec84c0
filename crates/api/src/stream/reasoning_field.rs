//! Which member of a message reasoning came in, so that it goes back in the same one.

use crate::turn::Turn;
use event::{Raw, Sink};

/// The member of the message that the open block of reasoning came in; empty while none is open.
#[derive(Debug, Default)]
pub(super) struct ReasoningField(&'static str);

impl ReasoningField {
    /// Writes a piece of reasoning that came in the member `name`. A block in another member is
    /// closed first.
    pub(super) fn piece(
        &mut self,
        name: &'static str,
        text: Raw<'_>,
        api: &str,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        if !text.is_str() || text.text() == "\"\"" {
            return;
        }
        if self.0 != name {
            self.close(api, turn, out);
            self.0 = name;
        }
        turn.thinking(0, text, out);
    }

    /// Something else begins, or the answer has ended: writes where the block must go back to.
    pub(super) fn close(&mut self, api: &str, turn: &mut Turn, out: &mut dyn Sink) {
        let name = std::mem::take(&mut self.0);
        if !name.is_empty() {
            turn.thinking_plain(
                0,
                "",
                Some(&format!("{{\"{api}\":{{\"field\":\"{name}\"}}}}")),
                out,
            );
        }
    }
}
