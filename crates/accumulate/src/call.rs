//! One call while it grows: its name, and its arguments in fragments of every kind that providers
//! send.

use crate::provider::ProviderData;
use event::payload::Commit;
use event::{Surrogates, Text};
use json::{JsonScanner, LiveArguments};
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
#[derive(Debug, Default)]
pub(crate) enum Emission {
    /// It was not emitted yet.
    #[default]
    Waiting,
    /// It was emitted with these arguments, an object on one line, and may run.
    Emitted(String),
    /// It was emitted with an error.
    Refused,
    /// It was retracted, so its id and its index are free.
    Retracted,
    /// It was in the input as a `tool_call` already, with these arguments.
    Passed(Option<String>),
}

impl Emission {
    /// Whether the call may run.
    pub(crate) fn holds(&self) -> bool {
        matches!(self, Emission::Emitted(_) | Emission::Passed(_))
    }

    /// The arguments of a call that may run.
    pub(crate) fn object(&self) -> Option<&str> {
        match self {
            Emission::Emitted(object) | Emission::Passed(Some(object)) => Some(object),
            _ => None,
        }
    }
}

/// One call while its deltas come.
#[derive(Debug, Default)]
pub(crate) struct OpenCall {
    /// Its place among the calls of its choice that hold.
    pub index: usize,
    pub id: String,
    /// Its id was made here, so the provider never used it.
    pub has_made_id: bool,
    /// Its name as it came, by which deltas find it.
    pub name: String,
    /// The tool that the name means, where that is not the name itself.
    pub tool: Option<String>,
    pub provider: ProviderData,
    /// The provider closed the call's block.
    pub is_closed_by_provider: bool,
    /// A later call has begun.
    pub is_followed: bool,
    /// It was written as text, so that it may be taken back until its stream ends.
    pub is_from_text: bool,
    pub emission: Emission,
    arguments: Fragments,
    /// The length of the text when a partial reading was last emitted.
    pub partial: usize,
    /// What was emitted of it while it grew.
    pub live: LiveArguments,
    /// The call that came under this one's id before and keeps it.
    pub shares_id_of: Option<u32>,
    /// The call that began in the text behind the end of this one.
    pub next: Option<u32>,
    /// The last call that was found along [`OpenCall::next`], so that the chain is not walked
    /// again.
    pub newest: Option<u32>,
}

/// The arguments of a call, in fragments of every kind.
#[derive(Debug)]
struct Fragments {
    text: String,
    scanner: JsonScanner,
    half: Surrogates,
    /// Where the last fragment begins in `text`.
    last: usize,
    count: u32,
    /// Every fragment so far began with the one before it: perhaps each is the text so far.
    are_cumulative: bool,
    tail: Tail,
    /// Up to here the text is the same in every reading of the fragments: appended, or each the
    /// text so far.
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

    /// The name of its tool: a known one, where its name means one.
    pub(crate) fn tool_name(&self) -> &str {
        self.tool.as_deref().unwrap_or(&self.name)
    }

    /// Forgets the arguments, of which too much has come. The call is one that was cut.
    pub(crate) fn empty(&mut self) {
        self.arguments = Fragments::default();
        self.provider = ProviderData::default();
        if self.emission.holds() {
            self.emission = Emission::Passed(None);
        }
        self.live.restart();
    }

    /// Whether it was retracted, so that its id and its index are free.
    pub(crate) fn is_forgotten(&self) -> bool {
        matches!(self.emission, Emission::Retracted)
    }

    /// Whether it was not emitted yet.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.emission, Emission::Waiting)
    }

    /// The arguments as they came: appended, or the last text so far.
    pub(crate) fn text(&self) -> &str {
        &self.arguments.text
    }

    /// The next bytes of the arguments that no later fragment and no repair changes, if there are
    /// any; see [`LiveArguments::read`]. `None` once the text is not valid JSON.
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

    /// Whether the arguments have ended: balanced, with all brackets closed though they are not
    /// valid JSON, or sealed. A name that comes now is another call's.
    pub(crate) fn is_over(&self) -> bool {
        self.arguments.scanner.is_balanced()
            || (!self.is_blank()
                && !self.arguments.scanner.is_valid()
                && self.arguments.scanner.is_closed())
            || self.is_sealed()
    }

    /// Whether the call may have been emitted without an object: its arguments change no more,
    /// whenever calls are emitted.
    fn is_sealed(&self) -> bool {
        self.is_closed_by_provider && !self.name.is_empty() && self.level() == Some(Commit::Sealed)
    }

    /// Whether an event with the call's id was emitted.
    pub(crate) fn has_shown_id(&self) -> bool {
        !self.is_waiting() || self.live.has_begun() || self.partial > 0
    }

    /// Whether no arguments have come.
    pub(crate) fn is_blank(&self) -> bool {
        self.arguments.scanner.is_blank()
    }

    /// Whether every bracket and quote is closed: the text may be judged, and repaired, once the
    /// call is sealed or final.
    pub(crate) fn is_closed(&self) -> bool {
        self.arguments.scanner.is_closed()
    }

    /// The level that this call has reached while its stream goes on. No arguments, `{}` and `null`
    /// may still be replaced by later fragments, also behind the beginning of the next call, so
    /// these wait until the provider closes the call's block, or for the end. A block that closed
    /// without an object may have been cut, so it waits for the next call, too.
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

    /// The level that it has reached when its stream ends: nothing replaces `{}` any more.
    pub(crate) fn level_at_end(&self) -> Option<Commit> {
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

    /// Takes the next fragment of the arguments.
    pub(crate) fn take(&mut self, fragment: Text<'_>) -> FragmentUse {
        let Fragments { text, half, .. } = &mut self.arguments;
        let start = text.len();
        if start == 0 {
            // Most arguments fit, so that the text is seldom moved as it grows.
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

    /// Begins the arguments with text behind the end of another call. Returns where in it yet
    /// another call begins, and whether the rest of it is dropped.
    pub(crate) fn begin_with(&mut self, text: &str) -> (Option<usize>, bool) {
        let end = self.replace("", text);
        match self.behind(text, end) {
            Surplus::Nothing => (None, false),
            Surplus::Noise => (None, true),
            Surplus::Another { at, .. } => (Some(at), false),
        }
    }

    /// Half of a surrogate pair at the end of the last fragment; the call that gets the next
    /// fragment needs it.
    pub(crate) fn half(&mut self) -> &mut Surrogates {
        &mut self.arguments.half
    }

    /// Reads `text` from `from` on, behind the end of the value.
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

    /// Begins the arguments again with `copied` and the beginning of `text`. Returns how much of
    /// `text` belongs to the value.
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
    /// Decides whether the text from `start` on is the next fragment or the text so far once more.
    /// Returns where the value ends.
    fn grown(&mut self, start: usize, is_from_text: bool) -> usize {
        self.count += 1;
        // Fragments of a call that was written as text come from one text, which no model writes
        // again and again; where it was split must not show. In ordinary fragments the first byte
        // differs already.
        self.are_cumulative = self.are_cumulative
            && !is_from_text
            && (self.count == 1 || self.text[start..].starts_with(&self.text[self.last..start]));
        let may_repeat = self.scanner.is_valid() && self.are_cumulative && self.count > 1;
        let used = self.scanner.push(&self.text[start..]);
        if !self.scanner.is_valid() && may_repeat {
            // Appended it is not valid JSON, and each fragment so far repeats the one before: it is
            // the text so far.
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

    /// The value without the white space around it.
    fn value(&self) -> &str {
        self.text.trim_ascii()
    }

    /// Reads `text` from `from` on, behind the end of the value.
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

    /// Begins again with `copied` and the beginning of `text`. Returns how much of `text` belongs
    /// to the value.
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

    /// Takes the end. Where the appended fragments leave the text open, but each was the text so
    /// far, the last fragment is the text.
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
