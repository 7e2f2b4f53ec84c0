//! One call while it grows: its name, and its arguments in fragments of every kind that providers send.

use crate::payload::{CallError, Commit};
use event::{Raw, Surrogates};
use json::{Repair, Scanner};

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// It belongs to this call.
    Taken,
    /// The arguments had ended; this text begins another call.
    Extra(String),
}

/// What became of a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Taken, or nothing new.
    Taken,
    /// Another name than the one this call has; it was not taken.
    Other,
}

/// Whether and how a call left this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    No,
    /// Emitted, at this level, and may run.
    Emitted,
    /// Emitted with an error.
    Refused,
    /// Taken back.
    Retracted,
    /// It was in the input as a `tool_call` already.
    Passed,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: String,
    /// Its id was made here, so the provider never used it.
    pub id_made: bool,
    pub name: String,
    pub provider: Option<String>,
    /// The provider closed the call's block.
    pub done: bool,
    /// A later call has begun.
    pub followed: bool,
    pub told: Told,
    /// The arguments as an object on one line, once they were judged good.
    pub object: Option<String>,
    pub repairs: Vec<Repair>,
    pub error: Option<CallError>,
    /// How long the text was when a `--partial` reading was last written.
    pub partial: usize,
    text: String,
    scanner: Scanner,
    half: Surrogates,
    /// Where the last fragment begins in `text`.
    last: usize,
    fragments: u32,
    /// Every fragment so far began with the one before it: perhaps each is the text so far.
    cumulative: bool,
    /// The text is balanced, and what came after repeats it up to here.
    echo: usize,
}

impl Call {
    pub fn new(id: String, id_made: bool) -> Self {
        Call {
            id,
            id_made,
            name: String::new(),
            provider: None,
            done: false,
            followed: false,
            told: Told::No,
            object: None,
            repairs: Vec::new(),
            error: None,
            partial: 0,
            text: String::new(),
            scanner: Scanner::default(),
            half: Surrogates::default(),
            last: 0,
            fragments: 0,
            cumulative: true,
            echo: 0,
        }
    }

    /// The arguments as they came, in the reading that was chosen.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The top-level object has closed.
    pub fn is_balanced(&self) -> bool {
        self.scanner.is_balanced()
    }

    /// Balanced, or closed by its brackets though the grammar was broken: a name that comes now is another call's.
    pub fn is_over(&self) -> bool {
        self.scanner.is_balanced() || (!self.is_blank() && !self.scanner.is_valid() && self.scanner.is_closed())
    }

    /// No arguments yet.
    pub fn is_blank(&self) -> bool {
        self.scanner.is_blank()
    }

    /// Nothing was left open: the text may be judged (and repaired) once the call is sealed or final.
    pub fn is_closed(&self) -> bool {
        self.scanner.is_closed()
    }

    /// The level that this call has reached while its stream goes on. Nothing, `{}` and `null` may still be replaced by what
    /// follows, and a block that was closed may still turn out to have been cut, so those wait for what comes next.
    pub fn level(&self) -> Option<Commit> {
        if self.is_balanced() && !self.scanner.is_empty_object() {
            return Some(if self.done || self.followed { Commit::Sealed } else { Commit::Balanced });
        }
        let sealed = (self.done && self.followed) || (self.is_balanced() && (self.done || self.followed));
        (sealed && (self.is_closed() || self.is_blank())).then_some(Commit::Sealed)
    }

    /// Takes a name, by the routing rule's words: equal is nothing new; one that starts with the present one replaces it;
    /// else it is joined only while there are no arguments, and only into a known tool's name when it is none itself.
    pub fn take_name(&mut self, name: &str, known: impl Fn(&str) -> bool) -> Named {
        if name.is_empty() || name == self.name {
            return Named::Taken;
        }
        if name.starts_with(&self.name) {
            self.name.replace_range(.., name);
            return Named::Taken;
        }
        let joined = format!("{}{name}", self.name);
        if self.is_blank() && known(&joined) && !known(name) {
            self.name = joined;
            return Named::Taken;
        }
        Named::Other
    }

    /// Takes the next fragment of the arguments: a string, or an object in place of its text.
    pub fn take(&mut self, fragment: Raw<'_>) -> Fed {
        if self.is_balanced() {
            let mut text = String::new();
            if !fragment.append_str(&mut text) && fragment.is_object() {
                text.push_str(fragment.text());
            }
            return self.take_after_end(&text);
        }
        let start = self.text.len();
        if fragment.is_str() {
            self.half.push(fragment, &mut self.text);
        } else if fragment.is_object() {
            self.text.push_str(fragment.text());
        }
        if self.text.len() == start { Fed::Taken } else { self.grown(start) }
    }

    /// The same for plain text.
    pub fn take_text(&mut self, text: &str) -> Fed {
        if self.is_balanced() {
            return self.take_after_end(text);
        }
        let start = self.text.len();
        self.text.push_str(text);
        if text.is_empty() { Fed::Taken } else { self.grown(start) }
    }

    /// The text has grown from `start`: is that the next fragment, or the text so far once more?
    fn grown(&mut self, start: usize) -> Fed {
        self.fragments += 1;
        // Cheap: for ordinary fragments the first byte differs.
        self.cumulative =
            self.cumulative && (self.fragments == 1 || self.text[start..].starts_with(&self.text[self.last..start]));
        let before = (self.scanner.is_valid() && self.cumulative && self.fragments > 1).then(|| self.scanner.clone());
        let used = self.scanner.push(&self.text[start..]);
        if !self.scanner.is_valid() && before.is_some() {
            // Appending breaks the grammar, and each fragment so far repeats the one before: it is the text so far.
            let mut other = Scanner::default();
            other.push(&self.text[start..]);
            if other.is_valid() {
                self.text.drain(..start);
                self.scanner = Scanner::default();
                self.last = 0;
                let used = self.scanner.push(&self.text);
                return self.cut_extra(used);
            }
        }
        self.last = start;
        self.cut_extra(start + used)
    }

    /// What follows the end of the value goes elsewhere.
    fn cut_extra(&mut self, end: usize) -> Fed {
        if end >= self.text.len() || !self.is_balanced() {
            return Fed::Taken;
        }
        let extra = self.text.split_off(end);
        self.take_after_end(&extra)
    }

    /// The value had ended: a copy of it is dropped, `{}` was a placeholder, white space is nothing, the rest is another call.
    fn take_after_end(&mut self, text: &str) -> Fed {
        let value = self.text.trim();
        let known = &value[..self.echo];
        if text.trim_ascii().is_empty() {
            return Fed::Taken;
        }
        let text = if self.echo == 0 { text.trim_start() } else { text };
        let rest = &value[self.echo..];
        if rest.starts_with(text.trim_end()) || text.starts_with(rest) {
            let taken = rest.len().min(text.len());
            let after = text[taken..].to_owned();
            self.echo = if rest.len() <= text.len() { 0 } else { self.echo + text.len() };
            if after.trim_ascii().is_empty() {
                return Fed::Taken;
            }
            if self.scanner.is_empty_object() {
                return self.restart(&after);
            }
            return self.take_after_end(&after);
        }
        let whole = format!("{known}{text}");
        self.echo = 0;
        if self.scanner.is_empty_object() && whole.starts_with('{') {
            return self.restart(&whole);
        }
        Fed::Extra(whole)
    }

    /// The `{}` so far was a placeholder.
    fn restart(&mut self, text: &str) -> Fed {
        self.text.clear();
        self.scanner = Scanner::default();
        (self.last, self.fragments, self.cumulative, self.echo) = (0, 0, true, 0);
        self.take_text(text)
    }

    /// The stream has ended whole: where appending left the text open, but each fragment was the text so far, the last one is it.
    pub fn settle(&mut self) {
        self.half.finish(&mut self.text);
        if self.is_balanced() || !self.cumulative || self.fragments < 2 {
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

    fn feed(fragments: &[&str]) -> (Call, Vec<String>) {
        let mut call = Call::new("a".into(), false);
        let mut extra = Vec::new();
        for f in fragments {
            if let Fed::Extra(text) = call.take_text(f) {
                extra.push(text);
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
            (&["{\"a\":", "{\"a\":1}"], "{\"a\":1}", &[]),                 // appending would leave it open
            (&["{\"a\":", "{\"a\":1}", "}"], "{\"a\":{\"a\":1}}", &[]),    // appending wins a tie
            (&["{}", "{\"a\":1}"], "{\"a\":1}", &[]),                      // a placeholder
            (&["{}", "{", "\"a\":1}"], "{\"a\":1}", &[]),
            (&["{}", "{}"], "{}", &[]),
            (&["{}{\"a\":1}"], "{\"a\":1}", &[]),
            (&["{\"a\":1}", "{\"a\":1}"], "{\"a\":1}", &[]), // sent again at the end
            (&["{\"a\":1}", "{\"a\"", ":1}", " "], "{\"a\":1}", &[]),
            (&["{\"a\":1}", "\n{\"a\":", "2}"], "{\"a\":1}", &["{\"a\":2}"]), // another call
            (&["{\"a\":1}{\"b\":2}"], "{\"a\":1}", &["{\"b\":2}"]),
            (&["{\"a\":1}", "{\"a\":1}{\"b\":2}"], "{\"a\":1}", &["{\"b\":2}"]),
        ] {
            let (call, got) = feed(fragments);
            assert_eq!(
                (call.text().trim(), got.iter().map(String::as_str).collect::<Vec<_>>()),
                (text, extra.to_vec()),
                "{fragments:?}"
            );
        }
    }

    #[test]
    fn names_by_the_rule() {
        let known = |n: &str| n == "read_file";
        let mut call = Call::new("a".into(), false);
        for (name, result, now) in [
            ("read_", Named::Taken, "read_"),
            ("file", Named::Taken, "read_file"),
            ("read_file", Named::Taken, "read_file"),
            ("write", Named::Other, "read_file"),
            ("read_file2", Named::Taken, "read_file2"),
        ] {
            assert_eq!((call.take_name(name, known), call.name.as_str()), (result, now));
        }
    }
}
