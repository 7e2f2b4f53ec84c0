//! Tracks the output items of a Responses stream, and finds the item that an event belongs to.

use crate::failure::StreamFailure;
use crate::members::minified;
use crate::template::DeltaKind;
use crate::turn::EventWriter;
use event::payload::{RetractReason, ToolCallDelta};
use event::{Json, Raw, Surrogates, Text, quoted};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::{Index, IndexMut};

/// The members of a call that are parsed.
const CALL: [&str; 8] = [
    "type",
    "id",
    "call_id",
    "name",
    "namespace",
    "arguments",
    "input",
    "status",
];

/// All items of a stream, in the order in which they appeared.
#[derive(Debug, Default)]
pub(crate) struct OutputItems {
    list: Vec<OutputItem>,
    by_id: HashMap<String, usize>,
    by_output: HashMap<i64, usize>,
    by_call: HashMap<String, usize>,
    /// The calls before this index were finished at the end of a response.
    finished: usize,
    /// The possibly open items of each kind. A finished item is removed when it is next
    /// encountered.
    open: HashMap<ItemKind, Vec<usize>>,
    /// The length of the text of each kind that arrived in pieces with neither an id nor an index
    /// of their item, in UTF-16 units, so that half a surrogate pair counts as one.
    loose: HashMap<ItemKind, usize>,
    /// Calls whose pieces had neither an id nor an index, and whose items have not arrived.
    loose_calls: HashMap<ItemKind, VecDeque<usize>>,
    /// The names of the request's custom tools, if the response repeats them.
    custom: Option<HashSet<String>>,
    /// The number of call labels used so far. Labels are needed because `output_index` may be
    /// missing, and restarts with a second response.
    labels: i64,
    /// The size of the ids and of the items' initial arguments, in bytes.
    names: usize,
}

impl Index<usize> for OutputItems {
    type Output = OutputItem;

    fn index(&self, at: usize) -> &OutputItem {
        &self.list[at]
    }
}

impl IndexMut<usize> for OutputItems {
    fn index_mut(&mut self, at: usize) -> &mut OutputItem {
        &mut self.list[at]
    }
}

impl OutputItems {
    /// Returns the size of the list of items and their ids, in bytes. It never shrinks. Each item
    /// counts the data of its call itself.
    pub(crate) fn kept(&self) -> usize {
        self.list.len() * size_of::<OutputItem>() + self.names
    }

    /// Handles the start or an update of a response. A new response in the same stream counts its
    /// items from 0 again.
    pub(crate) fn begin(&mut self, is_new: bool, tools: Option<Raw<'_>>) {
        if is_new {
            self.by_output.clear();
        }
        if let Some(tools) = tools {
            let custom = tools
                .items()
                .filter(|t| t.get_str("type").is_some_and(|t| t == "custom"));
            self.custom = Some(
                custom
                    .filter_map(|t| Some(t.get_str("name")?.into_owned()))
                    .collect(),
            );
        }
    }

    /// Returns the item that an event belongs to: by its id, otherwise by its index, otherwise the
    /// latest open item of this kind, otherwise a new item. The id is tried first because some
    /// servers omit the index. The index is tried second because some servers change the id.
    pub(crate) fn locate(&mut self, event: Raw<'_>, kind: ItemKind) -> usize {
        let output = event.get("output_index").and_then(Raw::i64);
        let id = event.get_str("item_id").filter(|id| !id.is_empty());
        if let Some(at) = id
            .as_deref()
            .and_then(|id| self.by_id.get(id))
            .or_else(|| self.by_output.get(&output?))
        {
            return *at;
        }
        if id.is_none() && output.is_none() {
            let open = self.open.entry(kind).or_default();
            while open.pop_if(|at| self.list[*at].done).is_some() {}
            if let Some(at) = open.last() {
                return *at;
            }
        }
        let at = self.insert(kind, id.as_deref(), output);
        if kind.is_call() && self.list[at].is_loose {
            self.loose_calls.entry(kind).or_default().push_back(at);
        }
        at
    }

    fn insert(&mut self, kind: ItemKind, id: Option<&str>, output: Option<i64>) -> usize {
        let at = self.list.len();
        self.list.push(OutputItem::new(kind, self.labels));
        self.labels += i64::from(self.list[at].is_call());
        self.open.entry(kind).or_default().push(at);
        self.bind(at, id, output);
        if id.is_none_or(str::is_empty) && output.is_none() {
            self.list[at].is_loose = true;
        }
        at
    }

    /// Records a piece of text or refusal of the item at `at`.
    pub(crate) fn hear(&mut self, at: usize, piece: Raw<'_>) {
        if self.list[at].is_loose {
            *self.loose.entry(self.list[at].kind).or_default() += units(piece);
        }
    }

    /// Whether the text of a complete item already arrived in pieces that cannot be matched to it.
    /// The pieces of several items are treated as one text.
    fn was_heard(&mut self, kind: ItemKind, item: Raw<'_>) -> bool {
        let Some(left) = self.loose.get_mut(&kind).filter(|left| **left > 0) else {
            return false;
        };
        *left = left.saturating_sub(texts(item).map(units).sum());
        true
    }

    fn bind(&mut self, at: usize, id: Option<&str>, output: Option<i64>) {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            if self.list[at].id.is_empty() {
                id.clone_into(&mut self.list[at].id);
            }
            if self.by_id.insert(id.to_owned(), at).is_none() {
                self.names += size_of::<(String, usize)>() + 2 * id.len();
            }
        }
        if let Some(output) = output {
            self.by_output.insert(output, at);
        }
    }

    pub(crate) fn added(&mut self, event: Raw<'_>, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        let kind = self.kind(item);
        let output = event.get("output_index").and_then(Raw::i64);
        let id = item.get_str("id");
        // Its deltas may have arrived first.
        let known = id
            .as_deref()
            .and_then(|id| self.by_id.get(id))
            .copied()
            .filter(|at| self.list[*at].kind == kind);
        let at = known.unwrap_or_else(|| self.insert(kind, id.as_deref(), output));
        self.bind(at, id.as_deref(), output);
        if self.list[at].is_call() && kind != ItemKind::Own {
            self.identify(at, item, turn);
            self.list[at].start = item
                .get(kind.member())
                .map(argument_text)
                .unwrap_or_default();
            self.names += self.list[at].start.len();
        }
    }

    /// Returns the kind of an item. A custom call whose name is not among the request's tools is a
    /// call of the provider's own tools.
    pub(crate) fn kind(&self, item: Raw<'_>) -> ItemKind {
        match item.get_str("type").as_deref() {
            Some("message") => ItemKind::Message,
            Some("reasoning") => ItemKind::Reasoning,
            Some("function_call") => ItemKind::Function,
            Some("custom_tool_call") => {
                let name = item.get_str("name").unwrap_or_default();
                let ours = match &self.custom {
                    Some(names) => names.contains(name.as_ref()),
                    None => !item
                        .get_str("call_id")
                        .is_some_and(|id| id.starts_with("xs_call")),
                };
                if ours {
                    ItemKind::Custom
                } else {
                    ItemKind::Server
                }
            }
            Some(name) if own_call(name).is_some() && !is_hosted(item) => ItemKind::Own,
            _ => ItemKind::Server,
        }
    }

    /// Processes a complete item, at its own end or in the list at the end of the response. Content
    /// that was already written is not written again.
    pub(crate) fn item(&mut self, output: Option<i64>, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        let kind = self.kind(item);
        let id = item.get_str("id");
        let call_id = item.get_str("call_id").filter(|_| kind.is_call());
        let same = |at: &usize| self.list[*at].kind == kind;
        let known = id
            .as_deref()
            .and_then(|id| self.by_id.get(id).copied())
            .filter(same)
            .or_else(|| {
                output
                    .and_then(|o| self.by_output.get(&o).copied())
                    .filter(same)
            })
            .or_else(|| {
                let call_id = call_id.as_deref()?;
                self.by_call.get(call_id).copied()
            })
            .or_else(|| self.loose_calls.get_mut(&kind)?.pop_front());
        let at = known.unwrap_or_else(|| {
            let at = self.insert(kind, id.as_deref(), output);
            if !kind.is_call() && self.was_heard(kind, item) {
                self.list[at].heard(item);
            }
            at
        });
        self.bind(at, id.as_deref(), output);
        if kind == ItemKind::Own {
            // An item that was just added may lack its arguments, so it is only used once it is
            // done.
            return self.list[at].own(item, turn);
        }
        if kind.is_call() {
            if !self.list[at].done {
                turn.details(0, "call", item, &CALL);
            }
            self.identify(at, item, turn);
            if item.get_str("status").is_none_or(|s| s != "incomplete") {
                self.finish_call(at, item.get(kind.member()), turn);
            } else {
                self.list[at].catch_up(item.get(kind.member()), turn);
            }
            return;
        }
        if std::mem::replace(&mut self.list[at].done, true) {
            return;
        }
        match kind {
            ItemKind::Message => self.list[at].said(item, turn),
            ItemKind::Reasoning => self.list[at].thought(item, turn),
            _ => {
                turn.server_item(0, &item.get_str("type").unwrap_or_default(), item);
                turn.goes_back(0, "server_item", item.text());
            }
        }
    }

    /// Writes the id and name of the call in `item`.
    fn identify(&mut self, at: usize, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        let call = &mut self.list[at];
        call.identify(item.get_str("call_id"), item.get("name"), turn);
        if !call.call_id.is_empty() {
            self.by_call.entry(call.call_id.clone()).or_insert(at);
        }
    }

    pub(crate) fn finish_call(
        &mut self,
        at: usize,
        all: Option<Raw<'_>>,
        turn: &mut EventWriter<'_>,
    ) {
        if self.list[at].is_call() {
            self.list[at].finish(all, turn);
        }
    }

    /// Handles the end of a call's arguments, which the item repeats. If neither the id nor the
    /// name of the call is known, it waits for the item, because content after a call's end belongs
    /// to another call.
    pub(crate) fn end_arguments(
        &mut self,
        at: usize,
        all: Option<Raw<'_>>,
        turn: &mut EventWriter<'_>,
    ) {
        if self.list[at].is_unknown() {
            self.list[at].wait(all, turn);
        } else {
            self.finish_call(at, all, turn);
        }
    }

    /// Finishes the calls of a response that ended. A call with only a start is not treated as a
    /// call without arguments, because even that would have an end event, which must have been
    /// lost.
    pub(crate) fn finish_calls(&mut self, turn: &mut EventWriter<'_>) {
        for at in std::mem::replace(&mut self.finished, self.list.len())..self.list.len() {
            if self.list[at].has_only_begun() {
                let name = &self.list[at].name;
                let message = format!(
                    "the response ended without the end of the call of \"{name}\", so its arguments are lost"
                );
                turn.error(&StreamFailure::new("call_lost", message, true));
                continue;
            }
            self.finish_call(at, None, turn);
        }
    }

    /// Writes the content that waits for an end that will not arrive.
    pub(crate) fn release(&mut self, turn: &mut EventWriter<'_>) {
        self.list.iter_mut().for_each(|item| item.release(turn));
    }
}

/// Returns the length of a piece of text, in UTF-16 units.
fn units(piece: Raw<'_>) -> usize {
    piece.str().map_or(0, |text| text.encode_utf16().count())
}

/// Returns the texts and refusals of an item.
fn texts(item: Raw<'_>) -> impl Iterator<Item = Raw<'_>> {
    let parts = ["summary", "content"]
        .into_iter()
        .filter_map(move |key| item.get(key))
        .flat_map(Raw::items);
    parts.filter_map(|part| part.get("refusal").or_else(|| part.get("text")))
}

/// Returns the tool name for a call of the API's own tools that the client runs: the item type
/// without `_call`. Sources: `response_input_item_param.py` in openai-python;
/// <https://platform.openai.com/docs/guides/tools-shell>,
/// <https://platform.openai.com/docs/guides/tools-apply-patch>. `local_shell_call` is excluded:
/// only one model, which OpenAI has replaced, writes it, and it stays an item of the provider.
pub(crate) fn own_call(kind: &str) -> Option<&str> {
    let name = kind.strip_suffix("_call")?;
    ["shell", "apply_patch", "computer"]
        .contains(&name)
        .then_some(name)
}

/// Whether a call of such a tool ran in a container of the provider.
fn is_hosted(item: Raw<'_>) -> bool {
    item.at(&["environment", "type"])
        .and_then(Raw::str)
        .is_some_and(|kind| kind.starts_with("container"))
}

/// The members of such an item that are not part of the call's arguments.
pub(crate) const OWN_CALL: [&str; 5] = ["type", "id", "call_id", "status", "created_by"];

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ItemKind {
    Message,
    Reasoning,
    Function,
    /// A call whose input is text instead of JSON.
    Custom,
    /// A call of one of the API's own tools that the client runs. Its item has a type of its own.
    Own,
    /// A call that the provider ran itself.
    Server,
}

impl ItemKind {
    pub(crate) fn is_call(self) -> bool {
        matches!(self, ItemKind::Function | ItemKind::Custom | ItemKind::Own)
    }

    /// Returns the member of a call's item that contains its arguments.
    pub(crate) fn member(self) -> &'static str {
        if self == ItemKind::Custom {
            "input"
        } else {
            "arguments"
        }
    }
}

/// One item.
#[derive(Debug)]
pub(crate) struct OutputItem {
    pub(crate) kind: ItemKind,
    /// The index used in its deltas.
    label: i64,
    pub(crate) call_id: String,
    /// The provider's id of the item, or "" if it has none.
    pub(crate) id: String,
    /// Whether the id was written.
    is_announced: bool,
    name: String,
    /// The call's arguments when its item was added. They are only used if no other event has them.
    pub(crate) start: String,
    /// The part of an open call that was written so far.
    sent: String,
    /// The pieces from the one that balances the arguments on, or all pieces of a call without an
    /// id and a name. They are held back until the end of the call, which may have other
    /// arguments, because a consumer that starts a call once its arguments are balanced must not
    /// start the wrong call.
    held: String,
    scanner: json::JsonScanner,
    half: Surrogates,
    /// Whether a piece of its text arrived.
    pub(crate) spoken: bool,
    /// Whether log probabilities of its text arrived.
    pub(crate) has_logprobs: bool,
    /// Whether annotations of its text arrived.
    pub(crate) has_annotations: bool,
    /// Whether neither its id nor its index is known.
    pub(crate) is_loose: bool,
    /// The indexes of the message parts whose refusal was written.
    refused: BTreeSet<i64>,
    pub(crate) done: bool,
}

/// Precedes the text of a custom tool's input, so that the arguments are an object.
const OPEN: &str = "{\"input\":\"";

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
            scanner: json::JsonScanner::default(),
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

    /// Writes the id of a message or of reasoning before its first piece, if ids were requested.
    pub(crate) fn announce(&mut self, turn: &mut EventWriter<'_>) {
        let kind = match self.kind {
            ItemKind::Message => "message",
            ItemKind::Reasoning => "reasoning",
            _ => return,
        };
        if self.id.is_empty()
            || !turn.options.item_ids
            || std::mem::replace(&mut self.is_announced, true)
        {
            return;
        }
        let id = quoted(&self.id);
        turn.goes_back(0, "begins", &format!(r#"{{"type":"{kind}","id":{id}}}"#));
    }

    /// Writes a call's id and name, each once.
    pub(crate) fn identify(
        &mut self,
        call_id: Option<Cow<'_, str>>,
        name: Option<Raw<'_>>,
        turn: &mut EventWriter<'_>,
    ) {
        let call_id = call_id.filter(|id| self.call_id.is_empty() && !id.is_empty());
        let name = name
            .and_then(Raw::str)
            .filter(|n| self.name.is_empty() && !n.is_empty());
        if !self.is_call() || (call_id.is_none() && name.is_none()) {
            return;
        }
        self.introduce(call_id.as_deref(), name.as_deref(), turn);
        if let Some(id) = call_id {
            self.call_id = id.into_owned();
        }
        if let Some(name) = name {
            self.name = name.into_owned();
        }
    }

    fn introduce(&self, id: Option<&str>, name: Option<&str>, turn: &mut EventWriter<'_>) {
        let custom = name.is_some() && self.kind == ItemKind::Custom;
        let provider = event::object(|o| {
            o.object(turn.api, |own| {
                if custom {
                    own.bool("custom", true);
                }
                if turn.options.item_ids {
                    own.maybe_str("id", Some(self.id.as_str()).filter(|id| !id.is_empty()));
                }
            });
        });
        let delta = ToolCallDelta {
            index: Some(self.label),
            tool_id: id.map(Into::into),
            tool_name: name.map(Into::into),
            provider: (custom || turn.options.item_ids).then(|| Json::of(&provider)),
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None);
    }

    /// Writes a call of one of the API's own tools, with all members of its item as arguments. Its
    /// kind must be sent back with it.
    fn own(&mut self, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        if self.done || item.get_str("status").is_some_and(|s| s == "incomplete") {
            return;
        }
        self.done = true;
        let kind = item.get_str("type").unwrap_or_default();
        let provider = event::object(|o| {
            o.object(turn.api, |own| {
                own.str("kind", &kind);
                if turn.options.item_ids {
                    own.maybe_str("id", Some(self.id.as_str()).filter(|id| !id.is_empty()));
                }
            });
        });
        let arguments = event::object(|o| {
            for (name, value) in item.entries() {
                if !OWN_CALL.contains(&&*name) && !value.is_null() {
                    o.minified(&name, value.text());
                }
            }
        });
        let delta = ToolCallDelta {
            index: Some(self.label),
            tool_id: item.get("call_id").or(item.get("id")).and_then(Text::of),
            tool_name: own_call(&kind).map(Into::into),
            provider: Some(Json::of(&provider)),
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None);
        turn.end_call(0, Some(self.label), &arguments);
    }

    /// Whether this is a call whose id and name are both unknown.
    fn is_unknown(&self) -> bool {
        self.is_call() && self.call_id.is_empty() && self.name.is_empty()
    }

    /// Whether this is a call that started but has neither arguments nor an end.
    fn has_only_begun(&self) -> bool {
        let is_text = matches!(self.kind, ItemKind::Function | ItemKind::Custom);
        let is_empty = self.start.is_empty() && self.sent.is_empty() && self.held.is_empty();
        is_text && !self.done && is_empty
    }

    /// Holds back the complete text of a call of which nothing was written.
    fn wait(&mut self, all: Option<Raw<'_>>, turn: &mut EventWriter<'_>) {
        let all = all.map(argument_text).unwrap_or_default();
        if !all.is_empty() && !self.done {
            turn.free(self.held.len());
            turn.keep(all.len());
            self.held = all;
        }
    }

    /// Processes a piece of a call's text.
    pub(crate) fn piece(&mut self, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        if self.done {
            return;
        }
        let mut text = String::new();
        self.half.push(piece, &mut text);
        if self.kind == ItemKind::Function {
            self.scanner.push(&text);
        }
        // An id that arrives after the first piece would start another call.
        if self.is_unknown() || !self.held.is_empty() || self.scanner.is_balanced() {
            turn.keep(text.len());
            self.held.push_str(&text);
            return;
        }
        self.write(&text, turn);
        let kind = DeltaKind::Arguments(Some(self.label));
        turn.effect.piece(0, kind, piece, &text);
    }

    /// Writes the held back pieces of a call whose end will not arrive.
    pub(crate) fn release(&mut self, turn: &mut EventWriter<'_>) {
        let held = std::mem::take(&mut self.held);
        turn.free(held.len());
        self.write(&held, turn);
    }

    /// Writes the part of `all` after the text already written, if the two agree.
    pub(crate) fn catch_up(&mut self, all: Option<Raw<'_>>, turn: &mut EventWriter<'_>) {
        self.release(turn);
        let all = all.map(argument_text).unwrap_or_default();
        if let (false, Some(rest)) = (self.done, all.strip_prefix(self.sent.as_str())) {
            let rest = rest.to_owned();
            self.write(&rest, turn);
        }
    }

    /// Closes the call. `all` is its complete text, which overrides the pieces: if they differ, the
    /// call is retracted and restarted. It keeps its label, so that the indexes stay dense.
    pub(crate) fn finish(&mut self, all: Option<Raw<'_>>, turn: &mut EventWriter<'_>) {
        if self.done || self.kind == ItemKind::Own {
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
            turn.warning(0, "arguments_replaced", message, Some(&self.sent));
            turn.retract(0, self.label, RetractReason::ArgumentsReplaced);
            turn.free(self.sent.len());
            self.sent.clear();
            self.introduce(Some(&self.call_id), Some(&self.name), turn);
        }
        if let Some(rest) = all.strip_prefix(self.sent.as_str()) {
            let rest = rest.to_owned();
            self.write(&rest, turn);
        }
        let closing = match (self.kind, self.sent.is_empty()) {
            (ItemKind::Custom, true) => "{\"input\":\"\"}",
            (ItemKind::Custom, false) => "\"}",
            _ => "",
        };
        turn.end_call(0, Some(self.label), closing);
        self.done = true;
        turn.free(self.sent.len());
        self.sent = String::new();
    }

    /// Whether the pieces and the final arguments are equal except for white space.
    fn same(&self, said: &str, all: &str) -> bool {
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        self.kind == ItemKind::Function && value(said).is_some_and(|v| value(all) == Some(v))
    }

    /// Marks all content of `item` as written, because its pieces were attributed to another item.
    pub(crate) fn heard(&mut self, item: Raw<'_>) {
        self.spoken = true;
        self.refused = (0..)
            .zip(item.list("content"))
            .map(|(place, _)| place)
            .collect();
    }

    /// Writes a message's text and refusal if no pieces of them arrived.
    pub(crate) fn said(&mut self, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        for (place, part) in (0..).zip(item.list("content")) {
            if let Some(refusal) = part.get("refusal") {
                self.refusal(place, Some(refusal), turn);
            } else if let (false, Some(text)) = (self.spoken, part.get("text")) {
                self.announce(turn);
                turn.text(0, text);
            }
            let members = [
                ("annotations", self.has_annotations),
                ("logprobs", self.has_logprobs),
            ];
            for (name, _) in members.into_iter().filter(|(_, has_come)| !has_come) {
                if let Some(list) = part.get(name) {
                    turn.member(0, "text", name, list.text());
                }
            }
        }
        turn.details(
            0,
            "message",
            item,
            &["type", "id", "status", "role", "content"],
        );
        if let Some(phase) = item.get("phase").filter(|phase| phase.is_str()) {
            let texts = item
                .list("content")
                .filter_map(|part| part.get("text")?.str());
            let length = texts.map(|text| text.chars().count()).sum::<usize>();
            let phase = phase.text();
            turn.goes_back(
                0,
                "message",
                &format!(r#"{{"phase":{phase},"length":{length}}}"#),
            );
        }
    }

    /// Writes an item's reasoning if no pieces of it arrived, and the item itself if it can be sent
    /// back.
    pub(crate) fn thought(&mut self, item: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.announce(turn);
        let parts = |key| item.list(key).filter_map(|p| p.get("text"));
        if !self.spoken {
            let mut texts = parts("summary").chain(parts("content"));
            if let Some(first) = texts.next() {
                turn.thinking(0, first);
            }
            for text in texts {
                turn.thinking_plain(0, "\n\n", None);
                turn.thinking(0, text);
            }
        }
        // An item without either can only be looked up by its id, and our requests have
        // `"store":false`.
        if self.is_announced
            || item
                .get_str("encrypted_content")
                .is_some_and(|c| !c.is_empty())
            || parts("content").next().is_some()
        {
            turn.goes_back(0, "item", item.text());
        }
    }

    /// Writes a piece of a refusal, which is one part of a message.
    pub(crate) fn refusal_piece(&mut self, part: i64, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.refused.insert(part);
        self.announce(turn);
        turn.refusal(0, piece);
    }

    /// Writes a complete refusal if no pieces of it arrived.
    pub(crate) fn refusal(&mut self, part: i64, text: Option<Raw<'_>>, turn: &mut EventWriter<'_>) {
        if let Some(text) = text.filter(|_| !self.refused.contains(&part)) {
            self.refusal_piece(part, text, turn);
        }
    }

    fn write(&mut self, text: &str, turn: &mut EventWriter<'_>) {
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
        turn.keep_piece(text.len());
        self.sent.push_str(text);
        let delta = ToolCallDelta {
            index: Some(self.label),
            arguments: Some((&arguments).into()),
            ..ToolCallDelta::default()
        };
        turn.call(0, &delta, None);
    }
}

/// Returns arguments as text: a string's content, or an object's JSON.
pub(crate) fn argument_text(value: Raw<'_>) -> String {
    match value.str() {
        Some(text) => text.into_owned(),
        None => minified(value),
    }
}
