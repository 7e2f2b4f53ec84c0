//! Finds the call that a delta belongs to, by the routing rule of `docs/protocol.md`. The numbers
//! in the comments are the numbers of that rule.
//!
//! An index is a label, not a position; an id may arrive once, always, late, or changed in every
//! chunk. For each choice this module keeps the calls by id, the call last bound to each index, and
//! the latest call.

use crate::call::{Emission, FragmentUse, LONGEST_NAME, NameUse, OpenCall};
use crate::id::{self, Seed};
use event::Text;
use event::payload::ToolCallDelta;
use json::ToolList;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// An irregularity of a delta, which is reported in a `warning`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Oddity {
    pub code: &'static str,
    pub message: String,
}

/// What routing needs to know about the stream besides its deltas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteContext<'a> {
    /// The seed for the ids generated for calls without an id.
    pub seed: Seed,
    pub choice: u32,
    /// Ids that no call may have.
    pub taken: &'a HashSet<String>,
    /// The tools that calls may name; `None` if they are unknown.
    pub tools: Option<&'a ToolList>,
}

impl<'a> RouteContext<'a> {
    /// Whether a name means a known tool.
    fn knows(self, name: &str) -> bool {
        self.meant(name).is_some()
    }

    fn meant(self, name: &str) -> Option<&'a str> {
        self.tools.and_then(|tools| tools.meant(name))
    }
}

/// The labels by which a delta names its call.
#[derive(Clone, Copy)]
struct Labels<'d> {
    index: Option<i64>,
    id: Option<&'d str>,
    name: Option<&'d str>,
}

/// An index below the number of calls plus `NEAR` is stored in a table. Larger ones are stored in a
/// map, so that a huge index does not allocate a huge table.
const NEAR: usize = 64;
const FREE: u32 = u32::MAX;

/// The calls of one choice.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    pub list: Vec<OpenCall>,
    by_id: HashMap<Box<str>, u32>,
    by_index: Vec<u32>,
    by_far_index: HashMap<i64, u32>,
    latest: Option<usize>,
    /// The output index of the next call.
    index: usize,
    /// A heap of every call that may be open, with the latest on top. A call that has ended is
    /// removed when it reaches the top.
    open: BinaryHeap<u32>,
    inferred: bool,
    /// The irregularities of deltas that were not reported yet.
    pub oddities: Vec<Oddity>,
}

impl OpenCalls {
    /// Applies a delta that has only an index and a fragment, and that leaves its call as open as it
    /// was, so that nothing is due after it. Returns `false`, and changes nothing, if the delta
    /// needs [`OpenCalls::take`].
    #[inline(always)]
    pub(crate) fn continues(&mut self, delta: &ToolCallDelta<'_>) -> bool {
        let ToolCallDelta {
            index,
            tool_id: None,
            tool_name: None,
            arguments: Some(arguments),
            done: false,
            from_text: false,
            provider: None,
        } = *delta
        else {
            return false;
        };
        let at = self.bound_now(index);
        at.is_some_and(|at| self.list[at].continues(arguments))
    }

    /// Applies a delta. Returns the position of its call; `None` if the delta is empty (rule 6), or
    /// if it has no id, name or arguments and no call has started.
    pub(crate) fn take(
        &mut self,
        delta: &ToolCallDelta<'_>,
        origin: RouteContext<'_>,
    ) -> Option<usize> {
        // Rule 3 comes first, because nearly all deltas have neither an id nor a name.
        let known = if delta.tool_id.is_none() && delta.tool_name.is_none() {
            self.bound_now(delta.index)
        } else {
            None
        };
        let mut at = match known {
            Some(at) => at,
            None => self.place(delta, origin)?,
        };
        self.list[at].is_from_text |= delta.from_text;
        if let Some(arguments) = delta.arguments.filter(|a| !a.is_empty()) {
            let was_over = self.list[at].is_over();
            match self.list[at].take(arguments) {
                FragmentUse::Kept => {}
                FragmentUse::Dropped => self.oddities.push(dropped(&self.list[at])),
                FragmentUse::Extra(text) if self.list[at].name.len() <= LONGEST_NAME => {
                    at = self.extra(at, &text, origin)
                }
                FragmentUse::Extra(_) => self.oddities.push(dropped(&self.list[at])),
            }
            if was_over && !self.list[at].is_over() {
                self.open.push(at as u32); // `{}` was a placeholder
            }
        }
        let call = &mut self.list[at];
        call.is_closed_by_provider |= delta.done;
        if let Some(p) = delta.provider {
            call.provider.take(&p.text());
        }
        Some(at)
    }

    /// Returns the call that a delta belongs to, after giving it the delta's name.
    fn place(&mut self, delta: &ToolCallDelta<'_>, origin: RouteContext<'_>) -> Option<usize> {
        let name = delta.tool_name.map(Text::str);
        let at = self.route(delta, name.as_deref(), origin)?;
        let Some(name) = &name else { return Some(at) };
        let call = &mut self.list[at];
        let before = call.name.len();
        if call.take_name(name, |n| origin.knows(n)) == NameUse::Ignored {
            let message = format!(
                "call {} is {}, the name {} is ignored",
                call.index,
                short(&call.name),
                short(name)
            );
            self.oddities.push(Oddity {
                code: "name_changed",
                message,
            });
        }
        if call.name.len() != before {
            let meant = origin.meant(&call.name).filter(|tool| *tool != call.name);
            call.tool = meant.map(str::to_owned);
        }
        Some(at)
    }

    /// Returns the call that an index is bound to now.
    #[inline]
    fn bound_now(&mut self, index: Option<i64>) -> Option<usize> {
        let at = self.labelled(index?)?;
        self.newest(at)
    }

    /// Starts one or more calls with the text that follows the end of call `at`. Returns the last
    /// of these calls.
    #[cold]
    fn extra(&mut self, at: usize, text: &str, origin: RouteContext<'_>) -> usize {
        self.oddities.push(Oddity {
            code: "extra_arguments",
            message: format!(
                "call {} had ended when more arguments came: they begin another call",
                self.list[at].index
            ),
        });
        let half = std::mem::take(self.list[at].half());
        let mut at = at;
        let mut from = 0;
        loop {
            let name = self.list[at].name.clone();
            let tool = self.list[at].tool.clone();
            let is_from_text = self.list[at].is_from_text;
            let next = self.begin(None, origin);
            (self.list[at].next, self.list[at].newest) = (Some(next as u32), None);
            at = next;
            (self.list[at].name, self.list[at].tool) = (name, tool);
            self.list[at].is_from_text = is_from_text;
            let (another, noise) = self.list[at].begin_with(&text[from..]);
            if noise {
                self.oddities.push(dropped(&self.list[at]));
            }
            match another {
                Some(n) => from += n,
                None => break,
            }
        }
        *self.list[at].half() = half;
        at
    }

    /// Returns the call that a delta belongs to by its id, otherwise by its index, otherwise by its
    /// name.
    fn route(
        &mut self,
        delta: &ToolCallDelta<'_>,
        name: Option<&str>,
        origin: RouteContext<'_>,
    ) -> Option<usize> {
        let name = name.filter(|n| !n.is_empty());
        let id = delta.tool_id.map(Text::str);
        let labels = Labels {
            index: delta.index,
            id: id.as_deref().filter(|id| !id::is_blank(id)),
            name,
        };
        if let Some(id) = labels.id {
            return Some(match self.known(id) {
                Some(known) => self.by_known_id(known, id, labels, origin),
                None => self.by_new_id(id, labels, origin),
            });
        }
        if let Some(at) = self.bound_now(labels.index) {
            return Some(self.by_index(at, labels, origin));
        }
        match name {
            Some(name) => Some(self.by_name(name, labels, origin)),
            None => self.without_labels(delta, origin),
        }
    }

    /// Returns the first call with an id, and the call that receives deltas with that id.
    fn known(&mut self, id: &str) -> Option<(usize, usize)> {
        let first = self.of_id(id)?;
        let at = self.newest(first as u32).or_else(|| self.find(id))?;
        Some((first, at))
    }

    /// 1. A known id. If the call has ended and the delta has a different name, the delta starts a
    ///    second call under the same id. That call must never run under the first call's name, so
    ///    it gets a generated id, and later deltas with the shared id belong to it.
    fn by_known_id(
        &mut self,
        (first, at): (usize, usize),
        id: &str,
        labels: Labels<'_>,
        origin: RouteContext<'_>,
    ) -> usize {
        let call = &self.list[at];
        let is_other = |name| call.is_over() && !call.name.is_empty() && name != call.name;
        if !labels.name.is_some_and(is_other) {
            self.bind(labels.index, at);
            self.latest = Some(at);
            return at;
        }
        self.oddities.push(Oddity {
            code: "id_twice",
            message: format!(
                "call {} had ended when its id {} came with another name",
                call.index,
                short(id)
            ),
        });
        let second = self.begin_bound(labels.index, None, origin);
        self.by_id.insert(id.into(), second as u32);
        self.list[second].shares_id_of = Some(first as u32);
        second
    }

    /// 2. A new id. Without a name, the delta belongs to the call bound to its index if that call
    ///    has not ended; without an index either, it belongs to the latest call while that is open,
    ///    because some servers send a new id with every chunk. Any other new id starts a call.
    fn by_new_id(&mut self, id: &str, labels: Labels<'_>, origin: RouteContext<'_>) -> usize {
        let holder = match labels {
            Labels { name: Some(_), .. } => None,
            Labels { index: Some(_), .. } => self.bound_now(labels.index),
            _ => self
                .latest_kept()
                .filter(|&at| !self.list[at].is_closed_by_provider),
        };
        let Some(at) = holder.filter(|&at| !self.list[at].is_over()) else {
            return self.begin_bound(labels.index, Some(id), origin);
        };
        let call = &mut self.list[at];
        if call.has_made_id {
            self.by_id.insert(id.into(), at as u32);
        }
        // An emitted id never changes: a client that has received it could not find the call again.
        if call.has_made_id && !call.has_shown_id() && !origin.taken.contains(id) {
            (call.id, call.has_made_id) = (id.to_owned(), false);
        } else {
            self.oddities.push(Oddity {
                code: "id_changed",
                message: format!(
                    "call {at} keeps its id {}, the id {} is ignored",
                    short(&call.id),
                    short(id)
                ),
            });
        }
        at
    }

    /// 3. No id, a known index. The delta belongs to the call of that index, unless the call has a
    ///    name and the delta's name starts another call. Any name does so once the call has ended.
    ///    While the call has no arguments, the name of a known tool does so if it does not start
    ///    with the call's name. A call without a name takes the delta's name, even after its
    ///    arguments.
    fn by_index(&mut self, at: usize, labels: Labels<'_>, origin: RouteContext<'_>) -> usize {
        let call = &self.list[at];
        let begins_another = labels.name.is_some_and(|n| {
            !call.name.is_empty()
                && (call.is_over()
                    || (call.is_blank() && !n.starts_with(&call.name) && origin.knows(n)))
        });
        if begins_another {
            self.begin_bound(labels.index, None, origin)
        } else {
            at
        }
    }

    /// 4. No id, no name, and no index or an unknown one. The delta belongs to the latest open
    ///    call, otherwise to the latest call; if there are no calls, it starts one if it has
    ///    arguments.
    fn without_labels(
        &mut self,
        delta: &ToolCallDelta<'_>,
        origin: RouteContext<'_>,
    ) -> Option<usize> {
        let has_arguments = delta.arguments.is_some_and(|a| !a.is_empty());
        let has_index = delta.index.is_some();
        if !has_arguments && !has_index && !delta.done && delta.provider.is_none() {
            return None; // 6.
        }
        let Some(at) = self.latest_open().or(self.latest) else {
            return has_arguments.then(|| self.begin_bound(delta.index, None, origin));
        };
        self.infer(delta.index);
        self.bind(delta.index, at);
        Some(at)
    }

    /// 5. No id, a name, and no index or an unknown one. The delta starts a call, with two
    ///    exceptions: it belongs to the latest call if that call has no arguments, has the same
    ///    name and is not closed, or if it has arguments but no name.
    fn by_name(&mut self, name: &str, labels: Labels<'_>, origin: RouteContext<'_>) -> usize {
        let same = self.latest_kept().filter(|&at| {
            let call = &self.list[at];
            (call.is_blank() && !call.is_closed_by_provider && call.name == name)
                || (!call.is_blank() && call.name.is_empty())
        });
        if let Some(at) = same {
            self.bind(labels.index, at);
            return at;
        }
        self.infer(labels.index);
        self.begin_bound(labels.index, None, origin)
    }

    /// Reports, once per choice, that a delta had neither an index nor an id.
    fn infer(&mut self, index: Option<i64>) {
        if index.is_none() && !std::mem::replace(&mut self.inferred, true) {
            self.oddities.push(Oddity {
                code: "index_inferred",
                message: "a call came without an index and without an id".to_owned(),
            });
        }
    }

    fn begin_bound(
        &mut self,
        index: Option<i64>,
        id: Option<&str>,
        origin: RouteContext<'_>,
    ) -> usize {
        let at = self.begin(id, origin);
        self.bind(index, at);
        at
    }

    fn begin(&mut self, id: Option<&str>, origin: RouteContext<'_>) -> usize {
        let at = self.list.len();
        if let Some(before) = self.latest {
            self.list[before].is_followed = true;
        }
        let call = match id {
            Some(id) if !origin.taken.contains(id) => {
                OpenCall::new(self.index, id.to_owned(), false)
            }
            _ => {
                let made = origin
                    .seed
                    .of_choice(origin.choice)
                    .free_id(self.index, origin.taken);
                // Later deltas or a `retract` may use the id with which the call arrived.
                id.map(|id| self.by_id.insert(id.into(), at as u32));
                OpenCall::new(self.index, made, true)
            }
        };
        self.by_id.insert(call.id.as_str().into(), at as u32);
        self.list.push(call);
        self.open.push(at as u32);
        self.latest = Some(at);
        self.index += 1;
        at
    }

    /// Returns the call that was last bound to an index. That call may be retracted, or other calls
    /// may have started after its end.
    #[inline]
    fn labelled(&self, index: i64) -> Option<u32> {
        match usize::try_from(index)
            .ok()
            .and_then(|i| self.by_index.get(i))
        {
            Some(&at) if at != FREE => Some(at),
            _ => self.labelled_far(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn labelled_far(&self, index: i64) -> Option<u32> {
        self.by_far_index.get(&index).copied()
    }

    fn bind(&mut self, index: Option<i64>, at: usize) {
        let Some(index) = index else { return };
        match usize::try_from(index) {
            Ok(i) if i < self.by_index.len() || i < self.list.len() + NEAR => {
                if self.by_index.len() <= i {
                    self.by_index.resize(i + 1, FREE);
                }
                self.by_index[i] = at as u32;
            }
            _ => {
                self.by_far_index.insert(index, at as u32);
            }
        }
    }

    /// Returns the call that receives the deltas with an index or id of call `at`: that call, or
    /// the last one that started after its end. Returns `None` if that last one was retracted.
    #[inline]
    fn newest(&mut self, at: u32) -> Option<usize> {
        let call = &self.list[at as usize];
        if call.next.is_none() {
            return Some(at as usize).filter(|_| !call.is_forgotten());
        }
        self.newest_of_chain(at)
    }

    #[cold]
    #[inline(never)]
    fn newest_of_chain(&mut self, at: u32) -> Option<usize> {
        let call = &self.list[at as usize];
        let mut newest = call.newest.unwrap_or(at);
        while let Some(next) = self.list[newest as usize].next {
            newest = next;
        }
        self.list[at as usize].newest = Some(newest);
        Some(newest as usize).filter(|at| !self.list[*at].is_forgotten())
    }

    /// Returns the latest open call.
    fn latest_open(&mut self) -> Option<usize> {
        while let Some(at) = self.open.peek().map(|at| *at as usize) {
            let call = &self.list[at];
            if !call.is_over() && !call.is_closed_by_provider {
                return Some(at);
            }
            self.open.pop();
        }
        None
    }

    /// Returns the call that started last, or whose id arrived last.
    pub(crate) fn latest(&self) -> Option<usize> {
        self.latest
    }

    /// Returns the latest call, unless it was retracted: a retracted call must not receive the
    /// deltas of another call.
    fn latest_kept(&self) -> Option<usize> {
        self.latest.filter(|at| !self.list[*at].is_forgotten())
    }

    /// Frees the id and the index of a retracted call, so that a new call can use them. If the call
    /// was never emitted and no other call has started since, its output index is also freed, so
    /// that the numbering has no gap.
    pub(crate) fn forget(&mut self, at: usize, was_seen: bool) {
        let call = &mut self.list[at];
        call.emission = Emission::Retracted;
        if !was_seen && call.index + 1 == self.index {
            self.index -= 1;
            self.latest = at.checked_sub(1);
        }
    }

    /// Returns the last call that arrived with an id and was not retracted.
    pub(crate) fn of_id(&mut self, id: &str) -> Option<usize> {
        let first = *self.by_id.get(id)?;
        let mut at = first;
        while self.list[at as usize].is_forgotten()
            && let Some(before) = self.list[at as usize].shares_id_of
        {
            at = before;
        }
        if at != first {
            self.by_id.insert(id.into(), at); // so that no chain is walked twice
        }
        Some(at as usize)
    }

    /// Returns the call that a `retract` with this id names.
    pub(crate) fn find(&mut self, id: &str) -> Option<usize> {
        self.of_id(id).filter(|at| !self.list[*at].is_forgotten())
    }

    /// Returns the call bound to an index; if others started after its end, the first of them.
    pub(crate) fn bound(&self, index: i64) -> Option<usize> {
        self.labelled(index)
            .map(|at| at as usize)
            .filter(|at| !self.list[*at].is_forgotten())
    }
}

fn dropped(call: &OpenCall) -> Oddity {
    Oddity {
        code: "extra_text",
        message: format!(
            "call {} had ended when other text came: it is dropped, with all that follows it",
            call.index
        ),
    }
}

/// Truncates a name or an id to a length that fits into a message.
fn short(text: &str) -> &str {
    event::cut(text, 100)
}
