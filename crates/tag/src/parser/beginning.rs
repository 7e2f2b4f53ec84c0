//! The beginning of a message, held back until it is clear whether it is reasoning or the answer.

use super::prose::Prose;
use crate::outlet::{CallPiece, Outlet};

/// An outlet that keeps what it takes.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// In the order of the text.
    items: Vec<HeldItem>,
    /// How much text the items are, in bytes.
    size: usize,
    /// The bytes of all items.
    kept: usize,
    has_calls: bool,
}

#[derive(Debug)]
enum HeldItem {
    Text(String),
    Reasoning(String),
    /// The text of calls and markers.
    LeftOut(String),
    Call {
        index: i64,
        id: Option<String>,
        name: Option<String>,
        arguments: Option<String>,
        done: bool,
    },
    Retract(i64, &'static str),
    Warning(&'static str, String, String),
}

impl Beginning {
    /// Whether nothing came so far.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How much text is held back, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many bytes are kept: the text, calls and warnings.
    pub fn kept(&self) -> usize {
        self.kept
    }

    fn push(&mut self, item: HeldItem, text: usize) {
        self.kept += size_of::<HeldItem>() + text;
        self.items.push(item);
    }

    /// Whether a call came, even one that was retracted.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Whether all that came is reasoning and markers.
    pub fn is_reasoning(&self) -> bool {
        self.items
            .iter()
            .all(|item| matches!(item, HeldItem::Reasoning(_) | HeldItem::LeftOut(_)))
    }

    /// Emits everything as it came.
    pub fn replay(self, out: &mut dyn Outlet) {
        self.release(Prose::Answer, out);
    }

    /// Emits everything: as it came, or all text as reasoning, in which calls do not count.
    pub(super) fn release(self, prose: Prose, out: &mut dyn Outlet) {
        let is_reasoning = prose == Prose::Reasoning;
        for item in self.items {
            match item {
                HeldItem::Text(text) | HeldItem::Reasoning(text) | HeldItem::LeftOut(text)
                    if is_reasoning =>
                {
                    out.reasoning(&text)
                }
                _ if is_reasoning => {}
                HeldItem::Text(text) => out.content(&text),
                HeldItem::Reasoning(text) => out.reasoning(&text),
                HeldItem::LeftOut(text) => out.left_out(&text),
                HeldItem::Retract(index, reason) => out.retract(index, reason),
                HeldItem::Warning(code, message, raw) => out.warning(code, &message, &raw),
                HeldItem::Call {
                    index,
                    id,
                    name,
                    arguments,
                    done,
                } => {
                    let [id, name, arguments] = [&id, &name, &arguments].map(Option::as_deref);
                    out.call(CallPiece {
                        index,
                        id,
                        name,
                        arguments,
                        done,
                    });
                }
            }
        }
    }
}

impl Outlet for Beginning {
    fn content(&mut self, text: &str) {
        self.size += text.len();
        match self.items.last_mut() {
            Some(HeldItem::Text(last)) => {
                last.push_str(text);
                self.kept += text.len();
            }
            _ => self.push(HeldItem::Text(text.to_owned()), text.len()),
        }
    }

    fn reasoning(&mut self, text: &str) {
        self.size += text.len();
        match self.items.last_mut() {
            Some(HeldItem::Reasoning(last)) => {
                last.push_str(text);
                self.kept += text.len();
            }
            _ => self.push(HeldItem::Reasoning(text.to_owned()), text.len()),
        }
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        let CallPiece {
            index,
            id,
            name,
            arguments,
            done,
        } = piece;
        let text = [id, name, arguments]
            .iter()
            .flatten()
            .map(|text| text.len())
            .sum();
        let [id, name, arguments] = [id, name, arguments].map(|text| text.map(str::to_owned));
        self.has_calls = true;
        self.push(
            HeldItem::Call {
                index,
                id,
                name,
                arguments,
                done,
            },
            text,
        );
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.push(HeldItem::Retract(index, reason), 0);
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        self.push(
            HeldItem::Warning(code, message.to_owned(), raw.to_owned()),
            message.len() + raw.len(),
        );
    }

    fn left_out(&mut self, text: &str) {
        self.size += text.len();
        self.push(HeldItem::LeftOut(text.to_owned()), text.len());
    }
}
