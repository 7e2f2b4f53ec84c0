//! The output items of a Responses stream: which one an event is about.

use crate::openai_responses::item::{ItemKind, OutputItem, argument_text};
use crate::turn::Turn;
use event::{Raw, Sink};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::{Index, IndexMut};

/// The members of a call that are read.
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
    /// The calls before this place were finished by the end of a response.
    finished: usize,
    /// The items of each kind that may be open; one that is done is taken out when it is met.
    open: HashMap<ItemKind, Vec<usize>>,
    /// How much text of each kind came in pieces of which neither an id nor a place shows the item,
    /// in UTF-16 units: half a surrogate pair is one.
    loose: HashMap<ItemKind, usize>,
    /// The calls whose pieces came so, and whose items did not come.
    loose_calls: HashMap<ItemKind, VecDeque<usize>>,
    /// The custom tools of the request, where the response repeats them.
    custom: Option<HashSet<String>>,
    /// Labels given to calls so far: `output_index` may be missing, and begins again with a second
    /// response.
    labels: i64,
    /// The bytes of the ids, and of the arguments that items began with.
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
    /// The bytes of the places of the items and their ids. They only grow; what an item keeps of
    /// its call is counted by the item.
    pub(crate) fn kept(&self) -> usize {
        self.list.len() * size_of::<OutputItem>() + self.names
    }

    /// A response begins, or goes on. A new one of the same stream counts its items from 0 again.
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

    /// The item that an event is about: by its id, else by its place, else the latest of this kind
    /// that is open, else a new one. The id goes first because some leave out the place; the place
    /// goes second because some change the id.
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

    /// Notes a piece of text, or of a refusal, of the item at `at`.
    pub(crate) fn hear(&mut self, at: usize, piece: Raw<'_>) {
        if self.list[at].is_loose {
            *self.loose.entry(self.list[at].kind).or_default() += units(piece);
        }
    }

    /// Whether the text of a whole item came already, in pieces that nothing connects with it. The
    /// pieces of several items are one text.
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

    pub(crate) fn added(
        &mut self,
        event: Raw<'_>,
        item: Raw<'_>,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        let kind = self.kind(item);
        let output = event.get("output_index").and_then(Raw::i64);
        let id = item.get_str("id");
        // Its deltas may have come first.
        let known = id
            .as_deref()
            .and_then(|id| self.by_id.get(id))
            .copied()
            .filter(|at| self.list[*at].kind == kind);
        let at = known.unwrap_or_else(|| self.insert(kind, id.as_deref(), output));
        self.bind(at, id.as_deref(), output);
        if self.list[at].is_call() {
            self.identify(at, item, turn, out);
            self.list[at].start = item
                .get(kind.member())
                .map(argument_text)
                .unwrap_or_default();
            self.names += self.list[at].start.len();
        }
    }

    /// The kind of an item. A custom call whose name is not among the request's tools is the
    /// provider's own.
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
            _ => ItemKind::Server,
        }
    }

    /// A whole item, at its end or in the list at the end of the response. What was written already
    /// is not written again.
    pub(crate) fn item(
        &mut self,
        output: Option<i64>,
        item: Raw<'_>,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
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
        if kind.is_call() {
            if !self.list[at].done {
                turn.details(0, "call", item, &CALL, out);
            }
            self.identify(at, item, turn, out);
            if item.get_str("status").is_none_or(|s| s != "incomplete") {
                self.finish_call(at, item.get(kind.member()), turn, out);
            } else {
                self.list[at].catch_up(item.get(kind.member()), turn, out);
            }
            return;
        }
        if std::mem::replace(&mut self.list[at].done, true) {
            return;
        }
        match kind {
            ItemKind::Message => self.list[at].said(item, turn, out),
            ItemKind::Reasoning => self.list[at].thought(item, turn, out),
            _ => turn.server_item(0, &item.get_str("type").unwrap_or_default(), item, out),
        }
    }

    /// Writes the id and the name of the call that `item` is.
    fn identify(&mut self, at: usize, item: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        let call = &mut self.list[at];
        call.identify(item.get_str("call_id"), item.get("name"), turn, out);
        if !call.call_id.is_empty() {
            self.by_call.entry(call.call_id.clone()).or_insert(at);
        }
    }

    pub(crate) fn finish_call(
        &mut self,
        at: usize,
        all: Option<Raw<'_>>,
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        if self.list[at].is_call() {
            self.list[at].finish(all, turn, out);
        }
    }

    /// Finishes the calls of the response that ended.
    pub(crate) fn finish_calls(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        for at in std::mem::replace(&mut self.finished, self.list.len())..self.list.len() {
            self.finish_call(at, None, turn, out);
        }
    }

    /// Writes what waits for an end that will not come.
    pub(crate) fn release(&mut self, turn: &mut Turn, out: &mut dyn Sink) {
        self.list
            .iter_mut()
            .for_each(|item| item.release(turn, out));
    }
}

/// The length of a piece of text.
fn units(piece: Raw<'_>) -> usize {
    piece.str().map_or(0, |text| text.encode_utf16().count())
}

/// The texts and refusals of an item.
fn texts(item: Raw<'_>) -> impl Iterator<Item = Raw<'_>> {
    let parts = ["summary", "content"]
        .into_iter()
        .filter_map(move |key| item.get(key))
        .flat_map(Raw::items);
    parts.filter_map(|part| part.get("refusal").or_else(|| part.get("text")))
}
