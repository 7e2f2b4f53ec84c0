//! One call while it grows: its name, and its arguments in fragments of every kind that providers send.

use crate::payload::CallError;
use event::payload::Commit;
use event::{Surrogates, Text};
use json::{Repair, Scanner};

/// No provider takes a tool's name this long. Only shorter ones are joined or given to further calls, so that what is written
/// stays linear in what was read.
pub(crate) const LONGEST_NAME: usize = 1024;

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// It belongs to this call.
    Taken,
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
    /// Text that is not the beginning of an object, such as `}` or an end token: nothing behind it is looked at.
    Dropped,
}

/// What text behind the end of the arguments is.
#[derive(Clone, Copy, Debug)]
enum Behind {
    /// White space, copies, or text of a tail that is dropped already.
    Nothing,
    /// The first text of a tail that is dropped.
    Noise,
    /// From the byte `at` on it belongs to another call, which begins with the first `copied` bytes of this call's value.
    Another { copied: usize, at: usize },
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
    /// Its place among the calls that were begun and hold.
    pub index: usize,
    pub id: String,
    /// Its id was made here, so the provider never used it.
    pub id_made: bool,
    pub name: String,
    pub provider: Option<String>,
    /// The provider closed the call's block.
    pub done: bool,
    /// A later call has begun.
    pub followed: bool,
    /// It was taken back, so its id and its index are free.
    pub forgotten: bool,
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
    tail: Tail,
    /// The call that the text behind the end of this one began.
    pub next: Option<u32>,
    /// The last call that [`Call::next`] is known to lead to.
    pub newest: Option<u32>,
}

impl Call {
    pub fn new(index: usize, id: String, id_made: bool) -> Self {
        Call {
            index,
            id,
            id_made,
            name: String::new(),
            provider: None,
            done: false,
            followed: false,
            forgotten: false,
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
            tail: Tail::Blank,
            next: None,
            newest: None,
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
        if self.is_blank() && self.name.len() + name.len() <= LONGEST_NAME {
            let joined = format!("{}{name}", self.name);
            if known(&joined) && !known(name) {
                self.name = joined;
                return Named::Taken;
            }
        }
        Named::Other
    }

    /// Takes the next fragment of the arguments.
    pub fn take(&mut self, fragment: Text<'_>) -> Fed {
        let start = self.text.len();
        self.half.push_text(fragment, &mut self.text);
        if self.text.len() == start {
            return Fed::Taken;
        }
        let end = if self.is_balanced() { start } else { self.grown(start) };
        if end == self.text.len() {
            return Fed::Taken;
        }
        let behind = self.text.split_off(end);
        match self.behind(&behind, 0) {
            Behind::Nothing => Fed::Taken,
            Behind::Noise => Fed::Dropped,
            Behind::Another { copied, at } => Fed::Extra(format!("{}{}", &self.value()[..copied], &behind[at..])),
        }
    }

    /// Takes the text that another call handed over, which is all that this call has so far. Gives where in it yet another call
    /// begins, and whether what is left of it is dropped.
    pub fn begin_with(&mut self, text: &str) -> (Option<usize>, bool) {
        let end = self.replace("", text);
        match self.behind(text, end) {
            Behind::Nothing => (None, false),
            Behind::Noise => (None, true),
            Behind::Another { at, .. } => (Some(at), false),
        }
    }

    /// Half of a surrogate pair that the last fragment ended with: it belongs to the call that gets the next fragment.
    pub fn half(&mut self) -> &mut Surrogates {
        &mut self.half
    }

    /// The text has grown from `start`: is that the next fragment, or the text so far once more? Gives where the value ends.
    fn grown(&mut self, start: usize) -> usize {
        self.fragments += 1;
        // Cheap: for ordinary fragments the first byte differs.
        self.cumulative =
            self.cumulative && (self.fragments == 1 || self.text[start..].starts_with(&self.text[self.last..start]));
        let may_repeat = self.scanner.is_valid() && self.cumulative && self.fragments > 1;
        let used = self.scanner.push(&self.text[start..]);
        if !self.scanner.is_valid() && may_repeat {
            // Appending breaks the grammar, and each fragment so far repeats the one before: it is the text so far.
            let mut other = Scanner::default();
            let used = other.push(&self.text[start..]);
            if other.is_valid() {
                self.text.drain(..start);
                self.scanner = other;
                self.last = 0;
                return used;
            }
        }
        self.last = start;
        start + used
    }

    /// The value without the white space around it.
    fn value(&self) -> &str {
        self.text.trim_ascii()
    }

    /// Reads `text` from `from` on, which follows the end of the value.
    fn behind(&mut self, text: &str, from: usize) -> Behind {
        let mut from = from;
        loop {
            match self.tail_of(text, from) {
                // The `{}` so far was a placeholder.
                Behind::Another { copied, at } if self.scanner.is_empty_object() => {
                    let copied = self.value()[..copied].to_owned();
                    from = at + self.replace(&copied, &text[at..]);
                }
                other => return other,
            }
        }
    }

    /// The same, with `{}` as a value like any other.
    fn tail_of(&mut self, text: &str, from: usize) -> Behind {
        let b = text.as_bytes();
        let mut at = from;
        while at < b.len() {
            match self.tail {
                Tail::Dropped => break,
                Tail::Blank => match b[at] {
                    b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                    b'{' => self.tail = Tail::Copy(0),
                    _ => {
                        self.tail = Tail::Dropped;
                        return Behind::Noise;
                    }
                },
                Tail::Copy(copied) => {
                    let rest = &self.value().as_bytes()[copied..];
                    let same = rest.iter().zip(&b[at..]).take_while(|(x, y)| x == y).count();
                    if same == rest.len() {
                        self.tail = Tail::Blank;
                        at += same;
                    } else if at + same == b.len() {
                        self.tail = Tail::Copy(copied + same);
                        at += same;
                    } else {
                        self.tail = Tail::Blank;
                        return Behind::Another { copied, at };
                    }
                }
            }
        }
        Behind::Nothing
    }

    /// Begins again with `copied` and the beginning of `text`. Gives how much of `text` belongs to the value.
    fn replace(&mut self, copied: &str, text: &str) -> usize {
        self.scanner = Scanner::default();
        self.scanner.push(copied);
        let used = self.scanner.push(text);
        self.text.replace_range(.., copied);
        self.text.push_str(&text[..used]);
        (self.last, self.fragments, self.cumulative, self.tail) = (0, 1, true, Tail::Blank);
        used
    }

    /// The stream has ended whole: where appending left the text open, but each fragment was the text so far, the last one is it.
    pub fn settle(&mut self) {
        if !self.is_balanced() {
            self.half.finish(&mut self.text);
        }
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
        let mut call = Call::new(0, "a".into(), false);
        let mut extra = Vec::new();
        for f in fragments {
            match call.take((*f).into()) {
                Fed::Taken => {}
                Fed::Dropped => extra.push("dropped".to_owned()),
                Fed::Extra(text) => extra.push(text),
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
            (&["{\"a\": 1}", "{\"a\":", " ", "1}", "\n"], "{\"a\": 1}", &[]),
            (&["{\"a\":1}}"], "{\"a\":1}", &["dropped"]), // what begins no object, and all that follows it
            (&["{\"a\":1}", "\n```", "{\"a\":2}"], "{\"a\":1}", &["dropped"]),
            (&["{\"a\":1} {\"a\":1},{\"a\":2}"], "{\"a\":1}", &["dropped"]),
            (&["{}", "}", "{\"a\":1}"], "{}", &["dropped"]),
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
        let mut call = Call::new(0, "a".into(), false);
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
