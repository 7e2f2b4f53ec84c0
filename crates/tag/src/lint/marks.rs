//! Collects the markers to search for from the table of dialects.

use crate::calls::is_name_char;
use crate::dialect::{CallPart, Dialect, Form, Prompt, is_fence};
use crate::look::{Look, MarkerMeaning};
use event::cut;
use std::cmp::Reverse;

/// Tags that models of any dialect put around reasoning.
const THOUGHTS: [&str; 4] = ["<thought>", "</thought>", "<reasoning>", "</reasoning>"];
/// Elements in the results of some dialects that also occur in ordinary documents.
const PLAIN: [&str; 4] = ["result", "results", "name", "output"];
/// The maximum length of a control token, in bytes without its first two characters.
const TOKEN: usize = 48;
/// How far the attribute that names the tool may be from the beginning of its tag, in bytes.
const ATTRIBUTE: usize = 120;

/// A marker.
#[derive(Debug)]
pub(super) struct LintMark {
    pub text: &'static str,
    after: After,
}

/// The text that must follow a marker whose own text also occurs in prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Anything,
    /// The rest of a tag: white space, or the end of the tag.
    Tag,
    /// White space and this attribute.
    Attribute(&'static str),
    /// An optional number and a colon; the marker must begin a line.
    Colon,
    /// A JSON array of objects.
    Array,
}

impl LintMark {
    /// Whether `rest` begins with this marker.
    pub(super) fn begins(&self, rest: &str, line_start: bool) -> bool {
        let Some(after) = rest.strip_prefix(self.text) else {
            return false;
        };
        match self.after {
            After::Anything => true,
            After::Tag => after.starts_with(|c: char| c.is_whitespace() || c == '>'),
            After::Attribute(name) => {
                let tag = cut(after, ATTRIBUTE);
                let tag = &tag[..tag.find('>').unwrap_or(tag.len())];
                tag.starts_with(char::is_whitespace)
                    && tag
                        .match_indices(name)
                        .any(|(at, _)| is_attribute(tag, at, name))
            }
            After::Colon => {
                let number = |c: char| c.is_ascii_digit() || c == ' ';
                line_start && after.trim_start_matches(number).starts_with(':')
            }
            After::Array => {
                let inside = after.trim_start().strip_prefix('[');
                inside.is_some_and(|inside| inside.trim_start().starts_with('{'))
            }
        }
    }
}

/// Whether the attribute `name` occurs in `tag` at `at`.
fn is_attribute(tag: &str, at: usize, name: &str) -> bool {
    tag[..at].ends_with(char::is_whitespace) && tag[at + name.len()..].trim_start().starts_with('=')
}

/// Returns every marker that is searched for by its text, sorted by first byte and then longest
/// first.
pub(super) fn all(look: &Look) -> Vec<LintMark> {
    let mut marks = LintMarks::default();
    for marker in look.markers() {
        for meaning in &marker.meanings {
            let is_markup = match meaning {
                MarkerMeaning::Reasoning | MarkerMeaning::Answer | MarkerMeaning::Message => true,
                MarkerMeaning::Dropped | MarkerMeaning::DroppedFirst => {
                    marker.text.contains(['|', '｜'])
                }
                // All other meanings are added with their dialects below.
                _ => false,
            };
            if is_markup {
                marks.add([&marker.text], After::Anything);
            }
        }
    }
    // A model may continue with turns and results that it expects, in the frame of any dialect that
    // it was trained on.
    for dialect in Dialect::all().iter().chain(look.dialects.iter().copied()) {
        marks.add(dialect.framing.tokens, After::Anything);
        marks.results(dialect.prompt);
    }
    marks.add(&THOUGHTS, After::Anything);
    for dialect in &look.dialects {
        let framing = dialect.framing;
        let dropped = framing.dropped.iter().chain(framing.dropped_first);
        marks.add(dropped, After::Anything);
        for form in dialect.forms {
            marks.form(form);
        }
    }
    marks.sorted()
}

#[derive(Default)]
struct LintMarks {
    list: Vec<LintMark>,
}

impl LintMarks {
    fn add<'m>(&mut self, texts: impl IntoIterator<Item = &'m &'static str>, after: After) {
        for text in texts {
            let letters = text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            // A marker that consists only of letters is a word, and a marker of a few bytes occurs
            // in any text.
            if text.contains('`') || (after == After::Anything && (letters || text.len() < 4)) {
                continue;
            }
            let is_known = |known: &LintMark| known.text == *text && known.after == after;
            if !self.list.iter().any(is_known) {
                self.list.push(LintMark { text, after });
            }
        }
    }

    /// Adds the markers of tool results, as the dialect shows them to the model.
    fn results(&mut self, prompt: &'static Prompt) {
        let pieces = [prompt.result, prompt.results.0, prompt.results.1];
        for piece in pieces.into_iter().flat_map(|text| text.split(['{', '}'])) {
            let mut rest = piece;
            while let Some(at) = rest.find(['<', '[', '✿']) {
                rest = &rest[at..];
                let first = rest.chars().next().map_or(1, char::len_utf8);
                let end =
                    rest[first..].find(|c: char| c.is_whitespace() || matches!(c, '>' | ']' | '✿'));
                let Some(end) = end.map(|n| first + n) else {
                    break;
                };
                let closed = rest[end..]
                    .chars()
                    .next()
                    .filter(|c| !c.is_whitespace())
                    .map_or(0, char::len_utf8);
                let mark = &rest[..end + closed];
                let name = rest[first..end].trim_start_matches('/');
                match (closed, PLAIN.contains(&name)) {
                    (0, true) => self.add([&mark], After::Attribute("name")),
                    (0, false) => self.add([&mark], After::Tag),
                    (_, false) => self.add([&mark], After::Anything),
                    (_, true) => {}
                }
                rest = &rest[end..];
            }
        }
    }

    /// Adds the markers around a form's calls, and those between the parts of a call.
    fn form(&mut self, form: &'static Form) {
        // Text in a code fence is quoted.
        if is_fence(form) {
            return;
        }
        if let Some(section) = &form.section {
            let frame = section.open.iter().chain(section.close);
            self.add(frame, After::Anything);
        }
        for (n, part) in form.call.iter().enumerate() {
            match part {
                CallPart::Mark(texts) => {
                    let next = form.call[n + 1..]
                        .iter()
                        .find(|part| !matches!(part, CallPart::Space(_)));
                    let word = texts[0].starts_with(char::is_alphabetic);
                    let after = match next {
                        Some(CallPart::Calls(_)) if n == 0 && word => After::Array,
                        _ if word && texts[0].contains(' ') => After::Colon,
                        _ => After::Anything,
                    };
                    self.add(*texts, after);
                }
                CallPart::Maybe { marks, .. } => self.add(*marks, After::Anything),
                CallPart::Tag(tag) => self.add(tag.open, After::Attribute(tag.name)),
                _ => {}
            }
        }
    }

    fn sorted(mut self) -> Vec<LintMark> {
        let key = |mark: &LintMark| (mark.text.bytes().next(), Reverse(mark.text.len()));
        self.list.sort_by_key(key);
        self.list
    }
}

/// Returns a token such as `<|im_end|>` or `<｜end▁of▁sentence｜>` at the beginning of `rest`,
/// whatever the token's name is.
pub(super) fn control_token(rest: &str) -> Option<&str> {
    let (bar, inside) = match rest.strip_prefix("<|") {
        Some(inside) => ("|>", inside),
        None => ("｜>", rest.strip_prefix("<｜")?),
    };
    let inside = cut(inside, TOKEN);
    let end = inside.find(bar)?;
    let name = &inside[..end];
    let fits = |c| is_name_char(c) || c == '\u{2581}';
    (!name.is_empty() && name.chars().all(fits)).then(|| &rest[..bar.len() + end + bar.len()])
}
