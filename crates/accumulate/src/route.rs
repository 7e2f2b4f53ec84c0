//! Which call does a delta belong to? The routing rule of the protocol, in its order.
//!
//! An index is a label and not a position; an id may come once, always, late, or anew with every chunk. What is kept for a
//! choice: its calls by id, the call last bound to each index, and the latest call.

use crate::call::{Call, Fed, LONGEST_NAME, Named};
use crate::id::{self, Seed};
use event::Text;
use event::payload::ToolCallDelta;
use json::ToolList;
use std::collections::{BinaryHeap, HashMap};

/// Something odd about a delta; the machine makes a `warning` of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Odd {
    pub code: &'static str,
    pub message: String,
}

/// What routing knows of the stream besides its deltas.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin<'a> {
    /// What the ids of calls that come without one are made of.
    pub seed: Seed,
    pub choice: u32,
    /// The tools that a name may be one of, where they are known.
    pub tools: Option<&'a ToolList>,
}

impl Origin<'_> {
    fn knows(self, name: &str) -> bool {
        self.tools.is_some_and(|tools| tools.knows(name))
    }
}

/// Labels are kept in a plain table as long as they lie about as close as the calls do.
const NEAR: usize = 64;
const FREE: u32 = u32::MAX;

/// The calls of one choice.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub list: Vec<Call>,
    by_id: HashMap<Box<str>, u32>,
    by_index: Vec<u32>,
    by_far_index: HashMap<i64, u32>,
    latest: Option<usize>,
    /// The index of the next call.
    index: usize,
    /// Every call that may be open; one that is not is taken out when it is met.
    open: BinaryHeap<u32>,
    inferred: bool,
}

impl Calls {
    /// Takes a delta. Gives the position of the call it went to, unless it has nothing in it.
    pub fn take(&mut self, delta: &ToolCallDelta<'_>, origin: Origin<'_>, odd: &mut Vec<Odd>) -> Option<usize> {
        // Rule 3 for a delta that names nothing, as nearly all do.
        let known =
            if delta.tool_id.is_none() && delta.tool_name.is_none() { self.bound_now(delta.index) } else { None };
        let at = match known {
            Some(at) => at,
            None => self.place(delta, origin, odd)?,
        };
        let mut at = at;
        if let Some(arguments) = delta.arguments.filter(|a| !a.is_empty()) {
            let was_over = self.list[at].is_over();
            match self.list[at].take(arguments) {
                Fed::Taken => {}
                Fed::Dropped => odd.push(dropped(&self.list[at])),
                Fed::Extra(text) if self.list[at].name.len() <= LONGEST_NAME => at = self.extra(at, &text, origin, odd),
                Fed::Extra(_) => odd.push(dropped(&self.list[at])),
            }
            if was_over && !self.list[at].is_over() {
                self.open.push(at as u32); // `{}` was a placeholder
            }
        }
        let call = &mut self.list[at];
        call.done |= delta.done;
        if let Some(p) = delta.provider {
            call.provider = Some(p.text().into_owned());
        }
        Some(at)
    }

    /// The call that a delta belongs to, with the name that the delta has.
    fn place(&mut self, delta: &ToolCallDelta<'_>, origin: Origin<'_>, odd: &mut Vec<Odd>) -> Option<usize> {
        let name = delta.tool_name.map(Text::str);
        let at = self.route(delta, name.as_deref(), origin, odd)?;
        if let Some(name) = &name
            && self.list[at].take_name(name, |n| origin.knows(n)) == Named::Other
        {
            let call = &self.list[at];
            let message = format!("call {} is {}, the name {} is ignored", call.index, short(&call.name), short(name));
            odd.push(Odd { code: "name_changed", message });
        }
        Some(at)
    }

    /// The call that an index is bound to now.
    #[inline]
    fn bound_now(&mut self, index: Option<i64>) -> Option<usize> {
        let at = self.labelled(index?)?;
        self.newest(at)
    }

    /// The arguments of call `at` had ended, and `text` begins another call, or several. Gives the last.
    #[cold]
    fn extra(&mut self, at: usize, text: &str, origin: Origin<'_>, odd: &mut Vec<Odd>) -> usize {
        odd.push(Odd {
            code: "extra_arguments",
            message: format!(
                "call {} had ended when more arguments came: they begin another call",
                self.list[at].index
            ),
        });
        let half = std::mem::take(self.list[at].half());
        let (mut at, mut from) = (at, 0);
        loop {
            let name = self.list[at].name.clone();
            let next = self.begin(None, origin);
            self.list[at].next = Some(next as u32);
            at = next;
            self.list[at].name = name;
            let (another, noise) = self.list[at].begin_with(&text[from..]);
            if noise {
                odd.push(dropped(&self.list[at]));
            }
            match another {
                Some(n) => from += n,
                None => break,
            }
        }
        *self.list[at].half() = half;
        at
    }

    fn route(
        &mut self,
        delta: &ToolCallDelta<'_>,
        name: Option<&str>,
        origin: Origin<'_>,
        odd: &mut Vec<Odd>,
    ) -> Option<usize> {
        let name = name.filter(|n| !n.is_empty());
        let id = delta.tool_id.map(Text::str);
        let has_arguments = delta.arguments.is_some_and(|a| !a.is_empty());
        let bound = self.bound_now(delta.index);
        if let Some(id) = id.as_deref().filter(|id| !id::is_none(id)) {
            if let Some(at) = self.by_id.get(id).copied().and_then(|at| self.newest(at)) {
                // 1. A known id. Another name after the call's end is a second call under the same id: it must never run
                // under the first one's name, so it gets an id of its own, and what follows under this id is its.
                let call = &self.list[at];
                if name.is_some_and(|n| call.is_over() && !call.name.is_empty() && n != call.name) {
                    odd.push(Odd {
                        code: "id_twice",
                        message: format!(
                            "call {} had ended when its id {} came with another name",
                            call.index,
                            short(id)
                        ),
                    });
                    let second = self.begin_bound(delta.index, None, origin);
                    self.by_id.insert(id.into(), second as u32);
                    return Some(second);
                }
                self.bind(delta.index, at);
                self.latest = Some(at);
                return Some(at);
            }
            // 2. A new id. Without an index, a nameless delta while the latest call is open is that call's: an id that
            // changes with every chunk must not cut it to pieces.
            let holder = match delta.index {
                Some(_) => bound,
                None => self.latest.filter(|&at| name.is_none() && !self.list[at].is_over() && !self.list[at].done),
            };
            return Some(match holder {
                Some(at) if name.is_none() && !self.list[at].is_over() => {
                    let call = &mut self.list[at];
                    if call.id_made {
                        (call.id, call.id_made) = (id.to_owned(), false);
                        self.by_id.insert(id.into(), at as u32);
                    } else {
                        odd.push(Odd {
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
                _ => self.begin_bound(delta.index, Some(id), origin),
            });
        }
        if let Some(at) = bound {
            // 3. No id, a known index: that call, unless a name comes when it is over. Where the tools are known, a name
            // that is another tool's begins a call too, as long as the one at hand has no arguments. A name that comes
            // after the arguments is that of the call that has none yet.
            let call = &self.list[at];
            let other = name.is_some_and(|n| {
                !call.name.is_empty()
                    && (call.is_over() || (call.is_blank() && !n.starts_with(&call.name) && origin.knows(n)))
            });
            return Some(if other { self.begin_bound(delta.index, None, origin) } else { at });
        }
        match name {
            // 4. No id, an unknown index, no name: the latest open call, or else the latest (which has ended).
            None if !has_arguments && delta.index.is_none() && !delta.done && delta.provider.is_none() => None, // 6.
            None => match self.latest_open().or(self.latest) {
                Some(at) => {
                    self.infer(delta, odd);
                    self.bind(delta.index, at);
                    Some(at)
                }
                None if !has_arguments => None,
                None => Some(self.begin_bound(delta.index, None, origin)),
            },
            // 5. No id, a name: a new call, unless the latest one is open, has no arguments and has the same name, or has
            // arguments and waits for its name.
            Some(name) => {
                let same = self.latest.filter(|&at| {
                    let call = &self.list[at];
                    (call.is_blank() && !call.done && call.name == name) || (!call.is_blank() && call.name.is_empty())
                });
                if let Some(at) = same {
                    self.bind(delta.index, at);
                    return Some(at);
                }
                self.infer(delta, odd);
                Some(self.begin_bound(delta.index, None, origin))
            }
        }
    }

    /// Says once for a stream that a delta without an index was placed by rule.
    fn infer(&mut self, delta: &ToolCallDelta<'_>, odd: &mut Vec<Odd>) {
        if delta.index.is_none() && !std::mem::replace(&mut self.inferred, true) {
            odd.push(Odd {
                code: "index_inferred",
                message: "a call came without an index and without an id".to_owned(),
            });
        }
    }

    fn begin_bound(&mut self, index: Option<i64>, id: Option<&str>, origin: Origin<'_>) -> usize {
        let at = self.begin(id, origin);
        self.bind(index, at);
        at
    }

    fn begin(&mut self, id: Option<&str>, origin: Origin<'_>) -> usize {
        let at = self.list.len();
        if let Some(before) = self.latest {
            self.list[before].followed = true;
        }
        let call = match id {
            Some(id) => Call::new(self.index, id.to_owned(), false),
            None => Call::new(self.index, origin.seed.of_choice(origin.choice).id(self.index), true),
        };
        self.by_id.insert(call.id.as_str().into(), at as u32);
        self.list.push(call);
        self.open.push(at as u32);
        self.latest = Some(at);
        self.index += 1;
        at
    }

    /// The call last bound to an index, which may be forgotten or have gone on in another one.
    fn labelled(&self, index: i64) -> Option<u32> {
        let near = usize::try_from(index).ok().and_then(|i| self.by_index.get(i)).copied();
        near.filter(|at| *at != FREE).or_else(|| self.by_far_index.get(&index).copied())
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

    /// What a label of call `at` stands for: that call, or the last one that the text behind its end began.
    fn newest(&mut self, at: u32) -> Option<usize> {
        let call = &self.list[at as usize];
        if call.next.is_none() {
            return Some(at as usize).filter(|_| !call.forgotten);
        }
        let mut newest = call.newest.unwrap_or(at);
        while let Some(next) = self.list[newest as usize].next {
            newest = next;
        }
        self.list[at as usize].newest = Some(newest);
        Some(newest as usize).filter(|at| !self.list[*at].forgotten)
    }

    /// The latest call that is open.
    fn latest_open(&mut self) -> Option<usize> {
        while let Some(at) = self.open.peek().map(|at| *at as usize) {
            let call = &self.list[at];
            if !call.is_over() && !call.done {
                return Some(at);
            }
            self.open.pop();
        }
        None
    }

    /// The call that began last, or was last named by its id.
    pub fn latest(&self) -> Option<usize> {
        self.latest
    }

    /// Frees the id and the index of a call that was taken back, so that it can begin again under the same id. A call that nobody
    /// has seen leaves its output index too, if no other call has begun since: the indexes stay dense.
    pub fn forget(&mut self, at: usize, was_seen: bool) {
        let call = &mut self.list[at];
        call.forgotten = true;
        if !was_seen && call.index + 1 == self.index {
            self.index -= 1;
            self.latest = at.checked_sub(1);
        }
    }

    /// The call of an id.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).map(|at| *at as usize).filter(|at| !self.list[*at].forgotten)
    }

    /// The call of an index, the first one where the text behind its end began others.
    pub fn bound(&self, index: i64) -> Option<usize> {
        self.labelled(index).map(|at| at as usize).filter(|at| !self.list[*at].forgotten)
    }
}

fn dropped(call: &Call) -> Odd {
    Odd {
        code: "extra_text",
        message: format!("call {} had ended when other text came: it is dropped, with all that follows it", call.index),
    }
}

/// A name or an id as a message quotes it.
fn short(text: &str) -> &str {
    event::cut(text, 100)
}
