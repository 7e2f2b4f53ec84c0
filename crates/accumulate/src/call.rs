//! A single call while its deltas arrive: its name, and its arguments from every kind of fragments
//! that providers send.

use crate::provider::ProviderData;
use event::payload::Commit;
use event::{Surrogates, Text};
use json::{JsonScanner, LiveArguments};
use std::collections::HashSet;

/// Longest tool name in bytes that is joined or copied to further calls, so that the output stays
/// linear in the input. No provider accepts a name this long.
pub(crate) const LONGEST_NAME: usize = 1024;

/// How a call handled a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FragmentUse {
    /// The fragment belongs to this call.
    Kept,
    /// The arguments had ended; this text starts another call.
    Extra(String),
    /// The arguments had ended; the call's text is dropped from here on.
    Dropped,
}

/// The text read so far after the end of the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tail {
    /// Only white space and complete copies of the value.
    #[default]
    Blank,
    /// A copy of the first bytes of the value, this many.
    Copy(usize),
    /// Text that does not start an object, such as `}` or an end token. The text after it is
    /// ignored.
    Dropped,
}

/// Text after the end of the arguments.
#[derive(Clone, Copy, Debug)]
enum Surplus {
    /// White space, copies, or text of a tail that is already being dropped.
    Nothing,
    /// The first text of a dropped tail.
    Noise,
    /// The text from byte `at` belongs to another call, whose arguments start with the first
    /// `copied` bytes of this call's value.
    Another { copied: usize, at: usize },
}

/// How a call handled a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NameUse {
    /// The name equals the call's name or extends it.
    Kept,
    /// The name differs from the call's name and is ignored.
    Ignored,
}

/// Whether and how a call was emitted.
#[derive(Debug, Default)]
pub(crate) enum Emission {
    /// Not emitted yet.
    #[default]
    Waiting,
    /// Emitted with these arguments, an object on one line; the call may run.
    Emitted(String),
    /// Emitted with an error.
    Refused,
    /// Retracted, so its id and its index are free.
    Retracted,
    /// The input already had it as a `tool_call`, with these arguments; `None` if they are not an
    /// object.
    Passed(Option<String>),
}

impl Emission {
    /// Whether the call may run.
    pub(crate) fn holds(&self) -> bool {
        matches!(self, Emission::Emitted(_) | Emission::Passed(_))
    }

    /// Returns the arguments of a call that may run.
    pub(crate) fn object(&self) -> Option<&str> {
        match self {
            Emission::Emitted(object) | Emission::Passed(Some(object)) => Some(object),
            _ => None,
        }
    }
}

/// A call while its deltas arrive.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    /// Position among the calls of its choice that were not retracted.
    pub index: usize,
    pub id: String,
    /// Whether the id was generated here, so the provider never used it.
    pub has_made_id: bool,
    /// The name as received, by which deltas find the call.
    pub name: String,
    /// The tool that the name means, if its name differs.
    pub tool: Option<String>,
    pub provider: ProviderData,
    /// Whether the provider closed the call's block.
    pub is_closed_by_provider: bool,
    /// Whether a later call has started.
    pub is_followed: bool,
    /// Whether the model wrote the call as text, so that it may be retracted until its stream ends.
    pub is_from_text: bool,
    pub emission: Emission,
    arguments: Fragments,
    /// Length of the text in bytes when a partial reading was last emitted.
    pub partial: usize,
    /// The argument bytes emitted so far in `--live` mode.
    pub live: LiveArguments,
    /// The earlier call that has the id under which this call arrived, and keeps it.
    pub shares_id_of: Option<u32>,
    /// The call that started in the text after the end of this call.
    pub next: Option<u32>,
    /// The last call found along [`OpenCall::next`], so that the chain is not followed twice.
    pub newest: Option<u32>,
}

/// The arguments of a call, from every kind of fragments.
#[derive(Debug)]
struct Fragments {
    text: String,
    scanner: JsonScanner,
    half: Surrogates,
    /// Offset in `text` at which the last fragment starts.
    last: usize,
    count: u32,
    /// Whether every fragment so far started with the fragment before it, so that each may repeat
    /// the whole text so far.
    are_cumulative: bool,
    tail: Tail,
    /// Length of the prefix of the text that is the same whether fragments are appended or each
    /// repeats the text so far.
    certain: usize,
}

impl Default for Fragments {
    fn default() -> Self {
        Fragments {
            text: String::new(),
            scanner: JsonScanner::default(),
            half: Surrogates::default(),
            last: 0,
            count: 0,
            are_cumulative: true,
            tail: Tail::Blank,
            certain: 0,
        }
    }
}

impl OpenCall {
    pub(crate) fn new(index: usize, id: String, has_made_id: bool) -> Self {
        OpenCall {
            index,
            id,
            has_made_id,
            ..OpenCall::default()
        }
    }

    /// Returns the name of the call's tool: the known tool that the name means, otherwise the name.
    pub(crate) fn tool_name(&self) -> &str {
        self.tool.as_deref().unwrap_or(&self.name)
    }

    /// Discards the arguments because they exceed the limit. The call then counts as truncated.
    pub(crate) fn empty(&mut self) {
        self.arguments = Fragments::default();
        self.provider = ProviderData::default();
        if self.emission.holds() {
            self.emission = Emission::Passed(None);
        }
        self.live.restart();
    }

    /// Whether the call was retracted, so that its id and its index are free.
    pub(crate) fn is_forgotten(&self) -> bool {
        matches!(self.emission, Emission::Retracted)
    }

    /// Whether the call was not emitted yet.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.emission, Emission::Waiting)
    }

    /// Returns the arguments as received: the fragments appended, or the last one if each repeats
    /// the text so far.
    pub(crate) fn text(&self) -> &str {
        &self.arguments.text
    }

    /// Returns the next bytes of the arguments that no later fragment and no repair can change; see
    /// [`LiveArguments::read`]. Returns `None` if there are no new ones, or if the text is not
    /// valid JSON.
    pub(crate) fn grow(&mut self, unpacked: &HashSet<String>) -> Option<String> {
        let Fragments {
            text,
            certain,
            scanner,
            ..
        } = &self.arguments;
        let certain = text.get(..*certain).filter(|_| scanner.is_valid())?;
        Some(self.live.read(certain, unpacked)).filter(|more| !more.is_empty())
    }

    /// Whether the top-level object has closed.
    pub(crate) fn is_balanced(&self) -> bool {
        self.arguments.scanner.is_balanced()
    }

    /// Whether the arguments have ended: they are balanced, they are invalid JSON with all brackets
    /// closed, or the call is sealed. A name that arrives now belongs to another call.
    pub(crate) fn is_over(&self) -> bool {
        self.arguments.scanner.is_balanced()
            || (!self.is_blank()
                && !self.arguments.scanner.is_valid()
                && self.arguments.scanner.is_closed())
            || self.is_sealed()
    }

    /// Whether the call may have been emitted without an object. If so, its arguments no longer
    /// change, whatever `--emit-on` says.
    fn is_sealed(&self) -> bool {
        self.is_closed_by_provider && !self.name.is_empty() && self.level() == Some(Commit::Sealed)
    }

    /// Whether an event with the call's id was emitted.
    pub(crate) fn has_shown_id(&self) -> bool {
        !self.is_waiting() || self.live.has_begun() || self.partial > 0
    }

    /// Whether no arguments have arrived.
    pub(crate) fn is_blank(&self) -> bool {
        self.arguments.scanner.is_blank()
    }

    /// Whether every bracket and quote is closed, so that the text may be checked and repaired once
    /// the call is sealed or final.
    pub(crate) fn is_closed(&self) -> bool {
        self.arguments.scanner.is_closed()
    }

    /// Returns the level that this call has reached while its stream continues. Later fragments can
    /// still replace empty arguments, `{}` and `null`, even after the next call has started, so
    /// such a call waits until the provider closes its block, or until the stream ends. A block
    /// that closed without an object may have been cut, so its call also waits for the next call.
    pub(crate) fn level(&self) -> Option<Commit> {
        if self.is_balanced() && !self.arguments.scanner.is_empty_object() {
            return Some(if self.is_closed_by_provider || self.is_followed {
                Commit::Sealed
            } else {
                Commit::Balanced
            });
        }
        let sealed = self.is_closed_by_provider && (self.is_followed || self.is_balanced());
        (sealed && (self.is_closed() || self.is_blank())).then_some(Commit::Sealed)
    }

    /// Returns the level that this call has reached when its stream ends: no later fragment can
    /// replace `{}`.
    pub(crate) fn level_at_end(&self) -> Option<Commit> {
        let level = if self.is_followed {
            Commit::Sealed
        } else {
            Commit::Balanced
        };
        self.level().or(self.is_balanced().then_some(level))
    }

    /// Applies a name by the routing rule. A name that starts with the present name replaces it.
    /// Another name is appended only before any arguments, and only if the joined name is a known
    /// tool and the new piece is not.
    pub(crate) fn take_name(&mut self, name: &str, known: impl Fn(&str) -> bool) -> NameUse {
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

    /// Adds a fragment that only continues the arguments, as nearly all do: the arguments are not
    /// closed before it and after it. Returns `false`, and changes nothing, if the fragment needs
    /// [`OpenCall::take`].
    #[inline(always)]
    pub(crate) fn continues(&mut self, fragment: Text<'_>) -> bool {
        self.arguments.continues(fragment)
    }

    /// Adds the next fragment of the arguments.
    pub(crate) fn take(&mut self, fragment: Text<'_>) -> FragmentUse {
        let Fragments { text, half, .. } = &mut self.arguments;
        let start = text.len();
        if start == 0 {
            // Most arguments fit into this capacity, so the text is seldom reallocated.
            text.reserve(256);
        }
        half.push_text(fragment, text);
        if self.arguments.text.len() == start {
            return FragmentUse::Kept;
        }
        let end = if self.is_balanced() || self.is_sealed() {
            start
        } else {
            self.arguments.grown(start, self.is_from_text)
        };
        if end == self.arguments.text.len() {
            return FragmentUse::Kept;
        }
        let behind = self.arguments.text.split_off(end);
        match self.behind(&behind, 0) {
            Surplus::Nothing => FragmentUse::Kept,
            Surplus::Noise => FragmentUse::Dropped,
            Surplus::Another { copied, at } => FragmentUse::Extra(format!(
                "{}{}",
                &self.arguments.value()[..copied],
                &behind[at..]
            )),
        }
    }

    /// Starts the arguments with text from after the end of another call. Returns the offset in
    /// `text` at which a further call starts, if one does, and whether the rest is dropped.
    pub(crate) fn begin_with(&mut self, text: &str) -> (Option<usize>, bool) {
        let end = self.replace("", text);
        match self.behind(text, end) {
            Surplus::Nothing => (None, false),
            Surplus::Noise => (None, true),
            Surplus::Another { at, .. } => (Some(at), false),
        }
    }

    /// Returns the half of a surrogate pair that ended the last fragment; the call that gets the
    /// next fragment needs this half.
    pub(crate) fn half(&mut self) -> &mut Surrogates {
        &mut self.arguments.half
    }

    /// Classifies `text` from byte `from` on, which follows the end of the value.
    fn behind(&mut self, text: &str, from: usize) -> Surplus {
        let mut from = from;
        loop {
            match self.arguments.tail_of(text, from) {
                // The `{}` so far was a placeholder.
                Surplus::Another { copied, at }
                    if self.arguments.scanner.is_empty_object() && !self.is_sealed() =>
                {
                    let copied = self.arguments.value()[..copied].to_owned();
                    from = at + self.replace(&copied, &text[at..]);
                }
                other => return other,
            }
        }
    }

    /// Restarts the arguments with `copied` and the start of `text`. Returns how many bytes of
    /// `text` belong to the value.
    fn replace(&mut self, copied: &str, text: &str) -> usize {
        self.live.restart();
        self.arguments.replace(copied, text)
    }

    /// Handles the end of a stream that was not cut.
    pub(crate) fn settle(&mut self) {
        if !self.is_sealed() {
            self.arguments.settle();
        }
    }
}

impl Fragments {
    /// See [`OpenCall::continues`].
    #[inline(always)]
    fn continues(&mut self, fragment: Text<'_>) -> bool {
        if self.are_cumulative || !self.scanner.is_inside() {
            return false;
        }
        let start = self.text.len();
        let (half, scanner) = (self.half.clone(), self.scanner.clone());
        self.half.push_text(fragment, &mut self.text);
        if self.text.len() == start {
            return true;
        }
        self.scanner.push(&self.text[start..]);
        if !self.scanner.is_inside() {
            self.text.truncate(start);
            (self.half, self.scanner) = (half, scanner);
            return false;
        }
        (self.last, self.certain) = (start, self.text.len());
        self.count += 1;
        true
    }

    /// Decides whether the text from `start` on is the next fragment or repeats the text so far.
    /// Returns the offset at which the value ends.
    fn grown(&mut self, start: usize, is_from_text: bool) -> usize {
        self.count += 1;
        // The fragments of a call that the model wrote as text split one text, which never repeats
        // itself; the result must not depend on where it was split. With ordinary fragments the
        // first byte already differs.
        self.are_cumulative = self.are_cumulative
            && !is_from_text
            && (self.count == 1 || self.text[start..].starts_with(&self.text[self.last..start]));
        let may_repeat = self.scanner.is_valid() && self.are_cumulative && self.count > 1;
        let used = self.scanner.push(&self.text[start..]);
        if !self.scanner.is_valid() && may_repeat {
            // Appending this fragment makes the JSON invalid, and each fragment so far repeats the
            // one before: the fragment is the whole text so far.
            let mut other = JsonScanner::default();
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
        if self.count == 1 || !self.are_cumulative {
            self.certain = start + used;
        }
        start + used
    }

    /// Returns the value without the surrounding white space.
    fn value(&self) -> &str {
        self.text.trim_ascii()
    }

    /// Classifies `text` from byte `from` on, which follows the end of the value.
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

    /// Restarts with `copied` and the start of `text`. Returns how many bytes of `text` belong to
    /// the value.
    fn replace(&mut self, copied: &str, text: &str) -> usize {
        *self = Fragments {
            text: copied.to_owned(),
            half: std::mem::take(&mut self.half),
            count: 1,
            ..Fragments::default()
        };
        self.scanner.push(copied);
        let used = self.scanner.push(text);
        self.text.push_str(&text[..used]);
        self.certain = self.text.len();
        used
    }

    /// Handles the end of the stream. If the appended fragments are not balanced, but each fragment
    /// repeated the text so far, the last fragment becomes the text.
    fn settle(&mut self) {
        if self.scanner.is_balanced() {
            return;
        }
        self.half.finish(&mut self.text);
        if !self.are_cumulative || self.count < 2 {
            return;
        }
        let mut other = JsonScanner::default();
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

    /// A call after these fragments, and what was not kept. `in_short` offers each fragment to
    /// [`OpenCall::continues`] first.
    fn feed(fragments: &[&str], in_short: bool) -> (OpenCall, Vec<String>) {
        let mut call = OpenCall::new(0, "a".into(), false);
        let mut extra = Vec::new();
        for f in fragments {
            if in_short && call.continues((*f).into()) {
                continue;
            }
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
            // Fragments inside strings, escapes, numbers and words, and broken ones.
            (
                &[
                    "{\"a",
                    "\":\"\\",
                    "\"}\",",
                    "\"b\":-1",
                    "2.",
                    "5e",
                    "1,\"c\":tr",
                    "ue",
                    "}",
                ],
                "{\"a\":\"\\\"}\",\"b\":-12.5e1,\"c\":true}",
                &[],
            ),
            (
                &["{\"a\":1", ",", "", "\"b\":[{", "}]}", "{\"c\":"],
                "{\"a\":1,\"b\":[{}]}",
                &["{\"c\":"],
            ),
            (
                &["{\"a\":", "tru,", "\"b\":", "{", "}}"],
                "{\"a\":tru,\"b\":{}}",
                &[],
            ),
            // Text that does not start an object is dropped, as is all the text after it.
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
            let (call, got) = feed(fragments, false);
            let in_short = feed(fragments, true);
            assert_eq!(
                format!("{:?}", (&call, &got)),
                format!("{in_short:?}"),
                "{fragments:?}"
            );
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
