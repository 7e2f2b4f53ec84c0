//! The shape of the deltas of calls, as the provider sent them.

use super::table::{
    ARGUMENTS_AGAIN, BRACES_FIRST, CUMULATIVE_ARGUMENTS, DOUBLE_ENCODED, Deviation,
    EMPTY_ARGUMENTS, EMPTY_DELTA, ID_CHANGED, ID_MISSING, ID_REPEATED, INDEX_MISSING, INDEX_ODD,
    INDEX_REUSED, NAME_IN_PIECES, NAME_LATE, NAME_MISSING, NAME_REPEATED, WHOLE_CALL_IN_ONE_CHUNK,
};
use event::Text;
use event::payload::ToolCallDelta;
use json::JsonScanner;

/// One call of a choice while its deltas come.
#[derive(Debug, Default)]
struct DeltaCall {
    index: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    /// The arguments so far, by the reading in which fragments append or replace.
    text: String,
    scanner: JsonScanner,
    /// Deltas that had a name or arguments.
    deltas: u64,
}

/// Of more calls than this the rest is not looked at: each delta is compared with all of them.
const CALLS: usize = 4096;

/// The calls of one choice.
#[derive(Debug, Default)]
pub(super) struct DeltaCalls {
    calls: Vec<DeltaCall>,
}

impl DeltaCalls {
    /// Takes the next delta. `has_indexes` tells whether the API has an index in each delta; each
    /// deviation goes to `found`.
    pub(super) fn push(
        &mut self,
        delta: &ToolCallDelta<'_>,
        has_indexes: bool,
        found: &mut dyn FnMut(&'static Deviation),
    ) {
        let text =
            |text: Option<Text<'_>>| text.map(|t| t.str().into_owned()).filter(|t| !t.is_empty());
        let id = text(delta.tool_id);
        let name = text(delta.tool_name);
        let arguments = text(delta.arguments);
        if id.as_deref() == Some("null") {
            found(ID_CHANGED);
        }
        let id = id.filter(|id| id != "null");
        if id.is_none()
            && name.is_none()
            && arguments.is_none()
            && !delta.done
            && delta.provider.is_none()
        {
            // An index alone, or nothing.
            found(EMPTY_DELTA);
            return;
        }
        if has_indexes && delta.index.is_none() {
            found(INDEX_MISSING);
        }
        if self.calls.len() >= CALLS {
            return;
        }
        let at = self.route(delta, id.as_deref(), name.as_deref(), has_indexes, found);
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        call.take(id, name, arguments, found);
    }

    /// The call that the delta belongs to, by the rule of docs/protocol.md; a new one is added.
    fn route(
        &mut self,
        delta: &ToolCallDelta<'_>,
        id: Option<&str>,
        name: Option<&str>,
        has_indexes: bool,
        found: &mut dyn FnMut(&'static Deviation),
    ) -> usize {
        let index = delta.index;
        let known = id.and_then(|id| self.calls.iter().position(|c| c.id.as_deref() == Some(id)));
        if let Some(at) = known {
            let call = self.calls.get_mut(at);
            // A new label of a known call, which later deltas without an id may name.
            if let Some(call) = call.filter(|call| index.is_some() && call.index != index) {
                call.index = index;
                if has_indexes {
                    found(INDEX_ODD);
                }
            }
            return at;
        }
        let at_index =
            index.and_then(|index| self.calls.iter().rposition(|c| c.index == Some(index)));
        if let Some((at, call)) = at_index.and_then(|at| Some((at, self.calls.get(at)?))) {
            let is_over = call.scanner.is_balanced();
            let is_copy = delta
                .arguments
                .is_some_and(|arguments| *arguments.str() == *call.text);
            // A call whose name has not come yet may get it now.
            let begins = call.name.is_some()
                && !is_copy
                && match id {
                    Some(_) => {
                        call.id.is_some()
                            && (is_over || name.is_some_and(|name| !call.is_named(name)))
                    }
                    None => name.is_some() && is_over,
                };
            if !begins {
                return at;
            }
            found(INDEX_REUSED);
        } else if index.is_none() && id.is_none() && name.is_none() && !self.calls.is_empty() {
            return self.calls.len() - 1;
        } else if has_indexes
            && index.is_some_and(|index| Some(index) != i64::try_from(self.calls.len()).ok())
        {
            found(INDEX_ODD);
        }
        self.calls.push(DeltaCall {
            index,
            ..DeltaCall::default()
        });
        self.calls.len() - 1
    }

    /// Drops a call that was taken back.
    pub(super) fn retract(&mut self, index: Option<i64>, id: Option<&str>) {
        self.calls.retain(|call| match id {
            Some(id) => call.id.as_deref() != Some(id),
            None => call.index != index,
        });
    }

    /// Handles the end of the stream. `was_cut`: not by the choice of the provider.
    pub(super) fn finish(&self, was_cut: bool, found: &mut dyn FnMut(&'static Deviation)) {
        for call in &self.calls {
            if call.id.is_none() {
                found(ID_MISSING);
            }
            if call.name.is_none() && !was_cut {
                found(NAME_MISSING);
            }
            if call.text.trim().is_empty() && !was_cut {
                found(EMPTY_ARGUMENTS);
            }
            if call.deltas == 1 && call.name.is_some() && call.scanner.is_balanced() {
                found(WHOLE_CALL_IN_ONE_CHUNK);
            }
        }
    }
}

impl DeltaCall {
    fn is_named(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    fn take(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        arguments: Option<String>,
        found: &mut dyn FnMut(&'static Deviation),
    ) {
        if name.is_some() || arguments.is_some() {
            self.deltas += 1;
        }
        match (&self.id, &id) {
            (None, Some(_)) => self.id = id,
            (Some(known), Some(id)) if known == id => found(ID_REPEATED),
            (Some(_), Some(_)) => found(ID_CHANGED),
            (_, None) => {}
        }
        match (&self.name, &name) {
            (None, Some(_)) => {
                if !self.text.is_empty() {
                    found(NAME_LATE);
                }
                self.name = name;
            }
            (Some(known), Some(name)) if known == name => found(NAME_REPEATED),
            (Some(_), Some(_)) => {
                found(NAME_IN_PIECES);
                self.name = name;
            }
            (_, None) => {}
        }
        let Some(fragment) = arguments else { return };
        let is_longer = fragment.len() > self.text.len();
        if self.text == "{}" && fragment.starts_with('{') {
            found(BRACES_FIRST);
            self.replace();
        } else if self.scanner.is_balanced() && fragment == self.text {
            found(ARGUMENTS_AGAIN);
            return;
        } else if self.text.len() > 1 && is_longer && fragment.starts_with(&self.text) {
            found(CUMULATIVE_ARGUMENTS);
            self.replace();
        } else if self.text.is_empty() && fragment.trim_start().starts_with('"') {
            found(DOUBLE_ENCODED);
        }
        self.scanner.push(&fragment);
        self.text.push_str(&fragment);
    }

    fn replace(&mut self) {
        self.text.clear();
        self.scanner = JsonScanner::default();
    }
}
