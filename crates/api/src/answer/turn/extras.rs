//! What an answer holds besides what the model wrote: warnings, repairs, and what the provider ran
//! itself.

use event::payload::{ServerItem, ToolCall, Warning};
use event::{Event, Kind, Object};

/// The most of them that are kept, and the most bytes, so that a stream of warnings takes no memory
/// without end.
const MOST: usize = 256;
const MOST_BYTES: usize = 256 * 1024;

/// What was found so far: JSON objects.
#[derive(Debug, Default)]
pub(super) struct Extras {
    notes: Vec<String>,
    bytes: usize,
    left_out: u64,
}

impl Extras {
    /// Keeps what is worth a note.
    pub fn push(&mut self, event: &Event<'_>) {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        match event.kind() {
            Kind::Warning => {
                let warning = Warning::read(event);
                o.str("type", "warning")
                    .str("source", &warning.source.str())
                    .str("code", &warning.code.str());
                o.str("message", &warning.message.str());
            }
            Kind::ToolCall => {
                let call = ToolCall::read(event);
                let Some(repairs) = call.repairs else { return };
                o.str("type", "repairs")
                    .str("tool_id", &call.tool_id.str())
                    .minified("repairs", &repairs.text());
            }
            Kind::ServerItem => {
                let item = ServerItem::read(event);
                o.str("type", "server_item")
                    .str("kind", &item.kind.str())
                    .minified("data", &item.data.text());
            }
            _ => return,
        }
        o.close();
        if self.notes.len() >= MOST || self.bytes + out.len() > MOST_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += out.len();
        self.notes.push(String::from_utf8(out).unwrap_or_default());
    }

    /// All of it as one JSON object, if there is anything: `{"notes":[…]}`, with `left_out` where
    /// some were too many.
    pub fn json(self) -> Option<String> {
        if self.notes.is_empty() && self.left_out == 0 {
            return None;
        }
        let left_out = if self.left_out == 0 {
            String::new()
        } else {
            format!(",\"left_out\":{}", self.left_out)
        };
        Some(format!(
            "{{\"notes\":[{}]{left_out}}}",
            self.notes.join(",")
        ))
    }
}
