//! One output item of a Responses stream, and how a call's text is written once although the stream
//! repeats it up to four times.

use crate::turn::Turn;
use event::payload::ToolCallDelta;
use event::{Json, Object, Raw, Sink, Surrogates, quoted};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ItemKind {
    Message,
    Reasoning,
    Function,
    /// A call whose input is text, not JSON.
    Custom,
    /// Run by the provider.
    Server,
}

impl ItemKind {
    pub(crate) fn is_call(self) -> bool {
        matches!(self, ItemKind::Function | ItemKind::Custom)
    }

    /// The member of a call's item that holds what it is called with.
    pub(crate) fn member(self) -> &'static str {
        if self == ItemKind::Custom {
            "input"
        } else {
            "arguments"
        }
    }
}

/// One item, from its first event on.
#[derive(Debug)]
pub(crate) struct OutputItem {
    pub(crate) kind: ItemKind,
    /// The index that its deltas carry.
    label: i64,
    pub(crate) call_id: String,
    /// The provider's id of the item; "" if it has none.
    pub(crate) id: String,
    /// The id was written.
    is_announced: bool,
    name: String,
    /// The arguments of a call's item when it was added; they count if no other event has them.
    pub(crate) start: String,
    /// What was written so far of a call that is open.
    sent: String,
    /// The pieces from the one that closed the arguments on, or all of a call without an id and a
    /// name. They are held back until the end of the call, which may have other arguments: a
    /// consumer that starts a call once its arguments close must not start the wrong one.
    held: String,
    scanner: json::Scanner,
    half: Surrogates,
    /// A piece of its text came.
    pub(crate) spoken: bool,
    /// Log probabilities of its text came.
    pub(crate) has_logprobs: bool,
    /// Annotations of its text came.
    pub(crate) has_annotations: bool,
    /// Neither an id nor a place of it is known.
    pub(crate) is_loose: bool,
    /// The parts of a message whose refusal was written, by their place in its content.
    refused: BTreeSet<i64>,
    pub(crate) done: bool,
}

/// What goes before and after the text of a custom tool's input, so that its arguments are an
/// object.
const OPEN: &str = "{\"input\":\"";
const CLOSE: &str = "\"}";

impl OutputItem {
    pub(crate) fn new(kind: ItemKind, label: i64) -> OutputItem {
        OutputItem {
            kind,
            label,
            call_id: String::new(),
            id: String::new(),
            is_announced: false,
            name: String::new(),
            start: String::new(),
            sent: String::new(),
            held: String::new(),
            scanner: json::Scanner::default(),
            half: Surrogates::default(),
            spoken: false,
            has_logprobs: false,
            has_annotations: false,
            is_loose: false,
            refused: BTreeSet::new(),
            done: false,
        }
    }

    pub(crate) fn is_call(&self) -> bool {
        self.kind.is_call()
    }

    /// Writes the id of a message or of reasoning before its first piece, if ids are asked for.
    pub(crate) fn announce(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        let kind = match self.kind {
            ItemKind::Message => "message",
            ItemKind::Reasoning => "reasoning",
            _ => return,
        };
        if self.id.is_empty()
            || !turn.has_item_ids()
            || std::mem::replace(&mut self.is_announced, true)
        {
            return;
        }
        let id = quoted(&self.id);
        let provider =
            format!(r#"{{"openai-responses":{{"begins":{{"type":"{kind}","id":{id}}}}}}}"#);
        turn.thinking_plain(0, "", Some(&provider), out);
    }

    /// Writes a call's id and name, each once.
    pub(crate) fn identify(
        &mut self,
        call_id: Option<Cow<'_, str>>,
        name: Option<Raw<'_>>,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        let call_id = call_id.filter(|id| self.call_id.is_empty() && !id.is_empty());
        let name = name
            .and_then(Raw::str)
            .filter(|n| self.name.is_empty() && !n.is_empty());
        if !self.is_call() || (call_id.is_none() && name.is_none()) {
            return;
        }
        self.introduce(call_id.as_deref(), name.as_deref(), turn, out);
        if let Some(id) = call_id {
            self.call_id = id.into_owned();
        }
        if let Some(name) = name {
            self.name = name.into_owned();
        }
    }

    fn introduce(&self, id: Option<&str>, name: Option<&str>, turn: &mut Turn, out: &mut dyn Sink) {
        let custom = name.is_some() && self.kind == ItemKind::Custom;
        let mut provider = Vec::new();
        let mut own = Object::open(&mut provider);
        own.object("openai-responses", |own| {
            if custom {
                own.bool("custom", true);
            }
            if turn.has_item_ids() {
                own.maybe_str("id", Some(self.id.as_str()).filter(|id| !id.is_empty()));
            }
        });
        own.close();
        let provider = String::from_utf8_lossy(&provider);
        let delta = ToolCallDelta {
            index: Some(self.label),
            tool_id: id.map(Into::into),
            tool_name: name.map(Into::into),
            provider: (custom || turn.has_item_ids()).then(|| Json::of(&provider)),
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None, out);
    }

    /// The next piece of a call's text.
    pub(crate) fn piece(&mut self, piece: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        if self.done {
            return;
        }
        let mut text = String::new();
        self.half.push(piece, &mut text);
        if self.kind == ItemKind::Function {
            self.scanner.push(&text);
        }
        // An id that came behind the first piece would begin another call.
        let is_unknown = self.call_id.is_empty() && self.name.is_empty();
        if is_unknown || !self.held.is_empty() || self.scanner.is_balanced() {
            turn.keep(text.len());
            self.held.push_str(&text);
            return;
        }
        self.write(&text, turn, out);
    }

    /// Writes what is held back, if the call's end will not come.
    pub(crate) fn release(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        let held = std::mem::take(&mut self.held);
        turn.free(held.len());
        self.write(&held, turn, out);
    }

    /// Writes what `all` has beyond what was written, as far as the two agree.
    pub(crate) fn catch_up(&mut self, all: Option<Raw<'_>>, turn: &mut Turn, out: &mut dyn Sink) {
        self.release(turn, out);
        let all = all.map(argument_text).unwrap_or_default();
        if let (false, Some(rest)) = (self.done, all.strip_prefix(self.sent.as_str())) {
            let rest = rest.to_owned();
            self.write(&rest, turn, out);
        }
    }

    /// The call is closed, and `all` is its whole text, which counts whatever the pieces were. If
    /// they differ the call is retracted and begins again. It keeps its label, so that the indexes
    /// stay dense.
    pub(crate) fn finish(&mut self, all: Option<Raw<'_>>, turn: &mut Turn, out: &mut dyn Sink) {
        if self.done {
            return;
        }
        let said = format!("{}{}", self.sent, std::mem::take(&mut self.held));
        turn.free(said.len() - self.sent.len());
        let mut all = all.map(argument_text).unwrap_or_default();
        if all.is_empty() {
            all = if said.is_empty() {
                std::mem::take(&mut self.start)
            } else {
                said.clone()
            };
        }
        if !all.starts_with(&self.sent) && self.same(&said, &all) {
            all = said;
        }
        if !all.starts_with(&self.sent) {
            let message = "the pieces of a call are not what its end says: the end counts";
            turn.warning(0, "arguments_replaced", message, Some(&self.sent), out);
            turn.retract(0, Some(self.label), None, "arguments_replaced", out);
            turn.free(self.sent.len());
            self.sent.clear();
            self.introduce(Some(&self.call_id), Some(&self.name), turn, out);
        }
        if let Some(rest) = all.strip_prefix(self.sent.as_str()) {
            let rest = rest.to_owned();
            self.write(&rest, turn, out);
        }
        let closing = match (self.kind, self.sent.is_empty()) {
            (ItemKind::Custom, true) => Some(Cow::Owned(format!("{OPEN}{CLOSE}"))),
            (ItemKind::Custom, false) => Some(Cow::Borrowed(CLOSE)),
            _ => None,
        };
        let arguments = closing.as_ref().map(Into::into);
        let delta = ToolCallDelta {
            index: Some(self.label),
            arguments,
            done: true,
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None, out);
        self.done = true;
        turn.free(self.sent.len());
        self.sent = String::new();
    }

    /// Whether the pieces and the end are the same arguments, perhaps with other white space.
    fn same(&self, said: &str, all: &str) -> bool {
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        self.kind == ItemKind::Function && value(said).is_some_and(|v| value(all) == Some(v))
    }

    /// All of `item` came in pieces that were taken for those of another item.
    pub(crate) fn heard(&mut self, item: Raw<'_>) {
        self.spoken = true;
        self.refused = (0..)
            .zip(item.get("content").into_iter().flat_map(Raw::items))
            .map(|(place, _)| place)
            .collect();
    }

    /// The text of a message, if no piece of it came, and its refusal.
    pub(crate) fn said(&mut self, item: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        for (place, part) in (0..).zip(item.get("content").into_iter().flat_map(Raw::items)) {
            if let Some(refusal) = part.get("refusal") {
                self.refusal(place, Some(refusal), turn, out);
            } else if let (false, Some(text)) = (self.spoken, part.get("text")) {
                self.announce(turn, out);
                turn.text(0, text, out);
            }
            let members = [
                ("annotations", self.has_annotations),
                ("logprobs", self.has_logprobs),
            ];
            for (name, _) in members.into_iter().filter(|(_, has_come)| !has_come) {
                if let Some(list) = part.get(name) {
                    turn.member(0, "text", name, list.text(), out);
                }
            }
        }
        turn.details(
            0,
            "message",
            item,
            &["type", "id", "status", "role", "content"],
            out,
        );
    }

    /// The reasoning of an item, if no piece of it came, and the item itself, if it can go back.
    pub(crate) fn thought(&mut self, item: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        self.announce(turn, out);
        let parts = |key| {
            item.get(key)
                .into_iter()
                .flat_map(Raw::items)
                .filter_map(|p| p.get("text"))
        };
        if !self.spoken {
            let mut texts = parts("summary").chain(parts("content"));
            if let Some(first) = texts.next() {
                turn.thinking(0, first, out);
            }
            for text in texts {
                turn.thinking_plain(0, "\n\n", None, out);
                turn.thinking(0, text, out);
            }
        }
        // An item without either can only be looked up by its id, and requests of ours have
        // `"store":false`.
        if self.is_announced
            || item
                .get_str("encrypted_content")
                .is_some_and(|c| !c.is_empty())
            || parts("content").next().is_some()
        {
            let mut provider = br#"{"openai-responses":{"item":"#.to_vec();
            event::minify(&mut provider, item.text());
            provider.extend_from_slice(b"}}");
            turn.thinking_plain(0, "", Some(&String::from_utf8_lossy(&provider)), out);
        }
    }

    /// A piece of the refusal that is one part of a message.
    pub(crate) fn refusal_piece(
        &mut self,
        part: i64,
        piece: Raw<'_>,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        self.refused.insert(part);
        self.announce(turn, out);
        turn.refusal(0, piece, out);
    }

    /// The whole of it, which counts only where no piece came.
    pub(crate) fn refusal(
        &mut self,
        part: i64,
        text: Option<Raw<'_>>,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        if let Some(text) = text.filter(|_| !self.refused.contains(&part)) {
            self.refusal_piece(part, text, turn, out);
        }
    }

    fn write(&mut self, text: &str, turn: &mut Turn, out: &mut dyn Sink) {
        if text.is_empty() {
            return;
        }
        let arguments = if self.kind == ItemKind::Custom {
            let escaped = quoted(text);
            let escaped = &escaped[1..escaped.len() - 1];
            Cow::Owned(if self.sent.is_empty() {
                format!("{OPEN}{escaped}")
            } else {
                escaped.to_owned()
            })
        } else {
            Cow::Borrowed(text)
        };
        turn.keep(text.len());
        self.sent.push_str(text);
        let delta = ToolCallDelta {
            index: Some(self.label),
            arguments: Some((&arguments).into()),
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None, out);
    }
}

/// Arguments as text: a string's, or an object's own JSON.
pub(crate) fn argument_text(value: Raw<'_>) -> String {
    match value.str() {
        Some(text) => text.into_owned(),
        None => {
            let mut text = Vec::new();
            event::minify(&mut text, value.text());
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}
