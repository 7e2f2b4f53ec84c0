//! One call while it grows: its name, and its arguments in fragments of every kind that providers
//! send.

use crate::live::LiveArguments;
use event::payload::Commit;
use event::{Array, Object, Surrogates, Text, WriteJson};
use json::{Repair, Scanner};
use std::collections::HashSet;

/// No provider accepts a tool's name of this length. Longer names are neither joined nor copied to
/// further calls, so that the output stays linear in the input.
pub(crate) const LONGEST_NAME: usize = 1024;

/// What a call does with a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FragmentUse {
    /// It belongs to this call.
    Kept,
    /// The arguments had ended; this text begins another call.
    Extra(String),
    /// The arguments had ended; from here on the call's text is dropped.
    Dropped,
}

/// What follows the end of the arguments, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tail {
    /// Nothing but white space and whole copies of the value.
    #[default]
    Blank,
    /// The first bytes of the value once more, this many.
    Copy(usize),
    /// Text that is not the beginning of an object, such as `}` or an end token. What follows it is
    /// not read.
    Dropped,
}

/// Text behind the end of the arguments.
#[derive(Clone, Copy, Debug)]
enum Surplus {
    /// White space, copies, or text of a tail that is dropped already.
    Nothing,
    /// The first text of a tail that is dropped.
    Noise,
    /// From the byte `at` on it belongs to another call, which begins with the first `copied` bytes
    /// of this call's value.
    Another { copied: usize, at: usize },
}

/// What a call does with a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NameUse {
    /// The name is the call's own, or a part of it.
    Kept,
    /// It is another name than the call has, and is ignored.
    Ignored,
}

/// Whether and how a call left this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emission {
    /// It was not emitted yet.
    Waiting,
    /// It was emitted, and may run.
    Emitted,
    /// It was emitted with an error.
    Refused,
    /// It was retracted.
    Retracted,
    /// It was in the input as a `tool_call` already.
    Passed,
}

/// One call while its deltas come.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// Its place among the calls of its choice that hold.
    pub index: usize,
    pub id: String,
    /// Its id was made here, so the provider never used it.
    pub has_made_id: bool,
    pub name: String,
    pub provider: Option<String>,
    /// The provider closed the call's block.
    pub is_closed_by_provider: bool,
    /// A later call has begun.
    pub is_followed: bool,
    /// It was retracted, so its id and its index are free.
    pub is_forgotten: bool,
    /// The call that came under this one's id before and keeps it.
    pub shares_id_of: Option<u32>,
    pub emission: Emission,
    /// The arguments as an object on one line, once they were found valid.
    pub object: Option<String>,
    pub repairs: Vec<Repair>,
    pub error: Option<CallError>,
    /// The length of the text when a partial reading was last emitted.
    pub partial: usize,
    text: String,
    scanner: Scanner,
    half: Surrogates,
    /// Where the last fragment begins in `text`.
    last: usize,
    fragments: u32,
    /// Every fragment so far began with the one before it: perhaps each is the text so far.
    is_cumulative: bool,
    tail: Tail,
    /// The call that began in the text behind the end of this one.
    pub next: Option<u32>,
    /// The last call that was found along [`OpenCall::next`], so that the chain is not walked
    /// again.
    pub newest: Option<u32>,
    /// It was written as text, so that it may be taken back until its stream ends.
    pub is_from_text: bool,
    /// Up to here the text is the same in every reading of the fragments: appended, or each the
    /// text so far.
    certain: usize,
    /// What was emitted of it while it grew.
    pub live: LiveArguments,
    /// What [`OpenCall::kept`] was when it was counted last.
    pub counted: usize,
}

impl OpenCall {
    pub fn new(index: usize, id: String, has_made_id: bool) -> Self {
        OpenCall {
            index,
            id,
            has_made_id,
            name: String::new(),
            provider: None,
            is_closed_by_provider: false,
            is_followed: false,
            is_forgotten: false,
            shares_id_of: None,
            emission: Emission::Waiting,
            object: None,
            repairs: Vec::new(),
            error: None,
            partial: 0,
            text: String::new(),
            scanner: Scanner::default(),
            half: Surrogates::default(),
            last: 0,
            fragments: 0,
            is_cumulative: true,
            tail: Tail::Blank,
            next: None,
            newest: None,
            is_from_text: false,
            certain: 0,
            live: LiveArguments::default(),
            counted: 0,
        }
    }

    /// The bytes that are kept of it.
    pub fn kept(&self) -> usize {
        let texts = [&self.id, &self.name, &self.text]
            .map(String::len)
            .iter()
            .sum::<usize>();
        let made = [&self.object, &self.provider]
            .map(|made| made.as_ref().map_or(0, String::len))
            .iter()
            .sum::<usize>();
        size_of::<OpenCall>()
            + texts
            + made
            + self.repairs.len() * size_of::<Repair>()
            + self.live.kept()
    }

    /// Adds what has changed of [`OpenCall::kept`] to `bytes`.
    pub fn count(&mut self, bytes: &mut usize) {
        let now = self.kept();
        *bytes = *bytes + now - std::mem::replace(&mut self.counted, now);
    }

    /// Forgets the arguments, of which too much has come. The call is one that was cut.
    pub fn empty(&mut self) {
        (self.text, self.object, self.provider) = (String::new(), None, None);
        self.live.restart();
        (self.scanner, self.certain, self.last, self.fragments) = (Scanner::default(), 0, 0, 0);
        (self.repairs, self.tail) = (Vec::new(), Tail::Blank);
    }

    /// The arguments as they came: appended, or the last text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The next bytes of the arguments that no later fragment and no repair changes, if there are
    /// any; see [`LiveArguments::read`]. `None` once the text is not valid JSON.
    pub fn grow(&mut self, unpacked: &HashSet<String>) -> Option<String> {
        let certain = self
            .text
            .get(..self.certain)
            .filter(|_| self.scanner.is_valid())?;
        Some(self.live.read(certain, unpacked)).filter(|more| !more.is_empty())
    }

    /// Whether the top-level object has closed.
    pub fn is_balanced(&self) -> bool {
        self.scanner.is_balanced()
    }

    /// Whether the arguments have ended: balanced, with all brackets closed though they are not
    /// valid JSON, or sealed. A name that comes now is another call's.
    pub fn is_over(&self) -> bool {
        self.scanner.is_balanced()
            || (!self.is_blank() && !self.scanner.is_valid() && self.scanner.is_closed())
            || self.is_sealed()
    }

    /// Whether the call may have been emitted without an object: its arguments change no more,
    /// whenever calls are emitted.
    fn is_sealed(&self) -> bool {
        self.is_closed_by_provider && !self.name.is_empty() && self.level() == Some(Commit::Sealed)
    }

    /// Whether an event with the call's id was emitted.
    pub fn has_shown_id(&self) -> bool {
        self.emission != Emission::Waiting || self.live.has_begun() || self.partial > 0
    }

    /// Whether no arguments have come.
    pub fn is_blank(&self) -> bool {
        self.scanner.is_blank()
    }

    /// Whether every bracket and quote is closed: the text may be judged, and repaired, once the
    /// call is sealed or final.
    pub fn is_closed(&self) -> bool {
        self.scanner.is_closed()
    }

    /// The level that this call has reached while its stream goes on. No arguments, `{}` and `null`
    /// may still be replaced by later fragments, also behind the beginning of the next call, so
    /// these wait until the provider closes the call's block, or for the end. A block that closed
    /// without an object may have been cut, so it waits for the next call, too.
    pub fn level(&self) -> Option<Commit> {
        if self.is_balanced() && !self.scanner.is_empty_object() {
            return Some(if self.is_closed_by_provider || self.is_followed {
                Commit::Sealed
            } else {
                Commit::Balanced
            });
        }
        let sealed = self.is_closed_by_provider && (self.is_followed || self.is_balanced());
        (sealed && (self.is_closed() || self.is_blank())).then_some(Commit::Sealed)
    }

    /// The level that it has reached when its stream ends: nothing replaces `{}` any more.
    pub fn level_at_end(&self) -> Option<Commit> {
        let level = if self.is_followed {
            Commit::Sealed
        } else {
            Commit::Balanced
        };
        self.level().or(self.is_balanced().then_some(level))
    }

    /// Takes a name by the routing rule: one that begins with the present name replaces it; another
    /// is appended only before there are arguments, and only if the joined name is a known tool and
    /// the new piece is not.
    pub fn take_name(&mut self, name: &str, known: impl Fn(&str) -> bool) -> NameUse {
        if name.is_empty() || name == self.name {
            return NameUse::Kept;
        }
        if name.starts_with(&self.name) {
            self.name.replace_range(.., name);
            return NameUse::Kept;
        }
        if self.is_blank() && self.name.len() + name.len() <= LONGEST_NAME {
            let joined = format!("{}{name}", self.name);
            if known(&joined) && !known(name) {
                self.name = joined;
                return NameUse::Kept;
            }
        }
        NameUse::Ignored
    }

    /// Takes the next fragment of the arguments.
    pub fn take(&mut self, fragment: Text<'_>) -> FragmentUse {
        let start = self.text.len();
        self.half.push_text(fragment, &mut self.text);
        if self.text.len() == start {
            return FragmentUse::Kept;
        }
        let end = if self.is_balanced() || self.is_sealed() {
            start
        } else {
            self.grown(start)
        };
        if end == self.text.len() {
            return FragmentUse::Kept;
        }
        let behind = self.text.split_off(end);
        match self.behind(&behind, 0) {
            Surplus::Nothing => FragmentUse::Kept,
            Surplus::Noise => FragmentUse::Dropped,
            Surplus::Another { copied, at } => {
                FragmentUse::Extra(format!("{}{}", &self.value()[..copied], &behind[at..]))
            }
        }
    }

    /// Begins the arguments with text behind the end of another call. Returns where in it yet
    /// another call begins, and whether the rest of it is dropped.
    pub fn begin_with(&mut self, text: &str) -> (Option<usize>, bool) {
        let end = self.replace("", text);
        match self.behind(text, end) {
            Surplus::Nothing => (None, false),
            Surplus::Noise => (None, true),
            Surplus::Another { at, .. } => (Some(at), false),
        }
    }

    /// Half of a surrogate pair at the end of the last fragment; the call that gets the next
    /// fragment needs it.
    pub fn half(&mut self) -> &mut Surrogates {
        &mut self.half
    }

    /// Decides whether the text from `start` on is the next fragment or the text so far once more.
    /// Returns where the value ends.
    fn grown(&mut self, start: usize) -> usize {
        self.fragments += 1;
        // Fragments of a call that was written as text come from one text, which no model writes
        // again and again; where it was split must not show. In ordinary fragments the first byte
        // differs already.
        self.is_cumulative = self.is_cumulative
            && !self.is_from_text
            && (self.fragments == 1
                || self.text[start..].starts_with(&self.text[self.last..start]));
        let may_repeat = self.scanner.is_valid() && self.is_cumulative && self.fragments > 1;
        let used = self.scanner.push(&self.text[start..]);
        if !self.scanner.is_valid() && may_repeat {
            // Appended it is not valid JSON, and each fragment so far repeats the one before: it is
            // the text so far.
            let mut other = Scanner::default();
            let used = other.push(&self.text[start..]);
            if other.is_valid() {
                self.text.drain(..start);
                self.scanner = other;
                self.last = 0;
                self.certain = used;
                return used;
            }
        }
        self.last = start;
        if self.fragments == 1 || !self.is_cumulative {
            self.certain = start + used;
        }
        start + used
    }

    /// The value without the white space around it.
    fn value(&self) -> &str {
        self.text.trim_ascii()
    }

    /// Reads `text` from `from` on, behind the end of the value.
    fn behind(&mut self, text: &str, from: usize) -> Surplus {
        let mut from = from;
        loop {
            match self.tail_of(text, from) {
                // The `{}` so far was a placeholder.
                Surplus::Another { copied, at }
                    if self.scanner.is_empty_object() && !self.is_sealed() =>
                {
                    let copied = self.value()[..copied].to_owned();
                    from = at + self.replace(&copied, &text[at..]);
                }
                other => return other,
            }
        }
    }

    /// The same, where `{}` is a value like any other.
    fn tail_of(&mut self, text: &str, from: usize) -> Surplus {
        let b = text.as_bytes();
        let mut at = from;
        while at < b.len() {
            match self.tail {
                Tail::Dropped => break,
                Tail::Blank => match b[at] {
                    b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                    b'{' if self.value().is_empty() => return Surplus::Another { copied: 0, at },
                    b'{' => self.tail = Tail::Copy(0),
                    _ => {
                        self.tail = Tail::Dropped;
                        return Surplus::Noise;
                    }
                },
                Tail::Copy(copied) => {
                    let rest = &self.value().as_bytes()[copied..];
                    let same = rest
                        .iter()
                        .zip(&b[at..])
                        .take_while(|(x, y)| x == y)
                        .count();
                    if same == rest.len() {
                        self.tail = Tail::Blank;
                        at += same;
                    } else if at + same == b.len() {
                        self.tail = Tail::Copy(copied + same);
                        at += same;
                    } else {
                        self.tail = Tail::Blank;
                        return Surplus::Another { copied, at };
                    }
                }
            }
        }
        Surplus::Nothing
    }

    /// Begins the arguments again with `copied` and the beginning of `text`. Returns how much of
    /// `text` belongs to the value.
    fn replace(&mut self, copied: &str, text: &str) -> usize {
        self.scanner = Scanner::default();
        self.scanner.push(copied);
        let used = self.scanner.push(text);
        self.text.replace_range(.., copied);
        self.text.push_str(&text[..used]);
        (self.last, self.fragments, self.is_cumulative, self.tail) = (0, 1, true, Tail::Blank);
        self.certain = self.text.len();
        self.live.restart();
        used
    }

    /// Takes the end of a stream that was not cut. Where the appended fragments leave the text
    /// open, but each was the text so far, the last fragment is the text.
    pub fn settle(&mut self) {
        if self.is_sealed() {
            return;
        }
        if !self.is_balanced() {
            self.half.finish(&mut self.text);
        }
        if self.is_balanced() || !self.is_cumulative || self.fragments < 2 {
            return;
        }
        let mut other = Scanner::default();
        other.push(&self.text[self.last..]);
        if other.is_balanced() {
            self.text.drain(..self.last);
            self.scanner = other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(fragments: &[&str]) -> (OpenCall, Vec<String>) {
        let mut call = OpenCall::new(0, "a".into(), false);
        let mut extra = Vec::new();
        for f in fragments {
            match call.take((*f).into()) {
                FragmentUse::Kept => {}
                FragmentUse::Dropped => extra.push("dropped".to_owned()),
                FragmentUse::Extra(text) => extra.push(text),
            }
        }
        call.settle();
        (call, extra)
    }

    #[test]
    fn fragments_of_every_kind() {
        for (fragments, text, extra) in [
            (&["{\"a\"", ":1}"][..], "{\"a\":1}", &[][..]),
            (&["{", "{\"a\"", "{\"a\":1", "{\"a\":1}"], "{\"a\":1}", &[]), // the text so far each time
            (&["{\"a\":", "{\"a\":1}"], "{\"a\":1}", &[]), // appending would leave it open
            (&["{\"a\":", "{\"a\":1}", "}"], "{\"a\":{\"a\":1}}", &[]), // appending wins a tie
            (&["{}", "{\"a\":1}"], "{\"a\":1}", &[]),      // a placeholder
            (&["{}", "{", "\"a\":1}"], "{\"a\":1}", &[]),
            (&["{}", "{}"], "{}", &[]),
            (&["{}{\"a\":1}"], "{\"a\":1}", &[]),
            (&["{\"a\":1}", "{\"a\":1}"], "{\"a\":1}", &[]), // sent again at the end
            (&["{\"a\":1}", "{\"a\"", ":1}", " "], "{\"a\":1}", &[]),
            (
                &["{\"a\":1}", "\n{\"a\":", "2}"],
                "{\"a\":1}",
                &["{\"a\":2}"],
            ), // another call
            (&["{\"a\":1}{\"b\":2}"], "{\"a\":1}", &["{\"b\":2}"]),
            (
                &["{\"a\":1}", "{\"a\":1}{\"b\":2}"],
                "{\"a\":1}",
                &["{\"b\":2}"],
            ),
            (
                &["{\"a\": 1}", "{\"a\":", " ", "1}", "\n"],
                "{\"a\": 1}",
                &[],
            ),
            // Text that does not begin an object, and all that follows it.
            (&["{\"a\":1}}"], "{\"a\":1}", &["dropped"]),
            (
                &["{\"a\":1}", "\n```", "{\"a\":2}"],
                "{\"a\":1}",
                &["dropped"],
            ),
            (
                &["{\"a\":1} {\"a\":1},{\"a\":2}"],
                "{\"a\":1}",
                &["dropped"],
            ),
            (&["{}", "}", "{\"a\":1}"], "{}", &["dropped"]),
        ] {
            let (call, got) = feed(fragments);
            assert_eq!(
                (
                    call.text().trim(),
                    got.iter().map(String::as_str).collect::<Vec<_>>()
                ),
                (text, extra.to_vec()),
                "{fragments:?}"
            );
        }
    }

    #[test]
    fn names_by_the_rule() {
        let known = |n: &str| n == "read_file";
        let mut call = OpenCall::new(0, "a".into(), false);
        for (name, result, now) in [
            ("read_", NameUse::Kept, "read_"),
            ("file", NameUse::Kept, "read_file"),
            ("read_file", NameUse::Kept, "read_file"),
            ("write", NameUse::Ignored, "read_file"),
            ("read_file2", NameUse::Kept, "read_file2"),
        ] {
            assert_eq!(
                (call.take_name(name, known), call.name.as_str()),
                (result, now)
            );
        }
    }
}

/// Why a call must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallError {
    /// `incomplete`, `invalid_json`, `schema` or `no_name`.
    pub code: &'static str,
    /// A sentence that a model or a person can act on.
    pub message: String,
}

/// The edits of a repair, as `repairs` lists them.
#[derive(Debug)]
pub(crate) struct Repairs<'a>(pub &'a [Repair]);

impl WriteJson for Repairs<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut list = Array::open(out);
        for repair in self.0 {
            list.object(|o: &mut Object<'_>| {
                o.int("offset", repair.offset as u64)
                    .str("kind", repair.kind);
                o.str("before", &repair.before).str("after", &repair.after);
            });
        }
        list.close();
    }
}
