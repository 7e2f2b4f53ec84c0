//! Scans a text for signs of a call, one character at a time, without lookback.

use super::limits::AutoLimits;
use super::words::{self, Sign};

/// Number of characters that must follow a colon before a no is possible: models end with a colon
/// before a call.
const AFTER_COLON: u64 = 16;

/// Minimum length in bytes of a tool name that counts as a sign in the text.
const SHORTEST_NAME: usize = 4;

/// The scan of a text so far.
///
/// Characters are counted from the first one that is not white space; white space counts once more
/// text follows it.
#[derive(Debug)]
pub(crate) struct Signs {
    chars: u64,
    /// White space characters that do not count yet.
    white: u64,
    word: SignWord,
    previous: SignWord,
    starts_sentence: bool,
    is_first: bool,
    tag: TagPart,
    /// The number of open elements that hold reasoning or a call.
    open: u32,
    sign: Sign,
    /// The number of characters up to the last sign of that strength.
    zero: u64,
    /// The sign before "let me", which is restored if "know" follows: "let me know" announces
    /// nothing.
    before: Option<(Sign, u64)>,
    colon: Option<u64>,
    /// The last three characters, for languages without spaces.
    last: [char; 3],
    shape: TextShape,
    /// The number of characters at which the text started, or restarted after an item that the
    /// provider ran.
    base: u64,
    /// The longest run of characters after each sign before the same or a stronger sign.
    runs: [Option<u64>; 4],
}

/// The parsing state of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagPart {
    Outside,
    Opens,
    Closes,
}

/// What kind of text this is, judged by its first characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextShape {
    Empty,
    /// Starts with `[`, which opens a JSON list or a note.
    Bracket,
    /// JSON or a code block, whose words have no meaning as signs.
    Data,
    Prose,
}

impl Default for Signs {
    fn default() -> Self {
        Signs {
            chars: 0,
            white: 0,
            word: SignWord::default(),
            previous: SignWord::default(),
            starts_sentence: true,
            is_first: true,
            tag: TagPart::Outside,
            open: 0,
            sign: Sign::Plain,
            zero: 0,
            before: None,
            colon: None,
            last: ['\0'; 3],
            shape: TextShape::Empty,
            base: 0,
            runs: [None; 4],
        }
    }
}

impl Signs {
    /// Reads the next text. Returns whether the risk fell below the limits at any of its
    /// characters; the rest is then skipped. Without limits all of the text is read. `tools` are
    /// the names of the known tools in lower case, sorted.
    pub(crate) fn push(
        &mut self,
        text: &str,
        tools: &[Box<str>],
        limits: Option<&AutoLimits>,
    ) -> bool {
        for c in text.chars() {
            if c.is_whitespace() && self.shape == TextShape::Empty {
                continue;
            }
            if self.character(c, tools) && limits.is_some_and(|limits| self.is_settled(limits)) {
                return true;
            }
        }
        false
    }

    /// Handles an item that the provider ran itself: the action that the text announced has
    /// happened.
    pub(crate) fn item(&mut self) {
        if self.sign > Sign::Plain {
            self.mark_run();
            let left = if self.sign >= Sign::Tool {
                Sign::Tool
            } else {
                Sign::Plain
            };
            (self.sign, self.zero, self.base) = (left, self.chars, self.chars);
        }
    }

    /// Returns the number of characters so far.
    pub(crate) fn chars(&self) -> u64 {
        self.chars
    }

    /// Returns the sign that counts now, and the number of characters since it.
    pub(crate) fn sign(&self) -> (Sign, u64) {
        (self.sign, self.chars - self.zero)
    }

    /// Returns the longest run of each sign, indexed like [`Sign::ALL`]; `None` for a sign that
    /// never counted.
    pub(crate) fn runs(&mut self, tools: &[Box<str>]) -> [Option<u64>; 4] {
        self.end_word(tools);
        if self.chars > 0 {
            self.mark_run();
        }
        self.runs
    }

    /// Reads one character. Returns whether a no is possible here. It is possible only at the start
    /// of a word, so that no word is split and a sentence counts as ended only once another starts.
    fn character(&mut self, c: char, tools: &[Box<str>]) -> bool {
        if !c.is_whitespace() {
            self.chars += std::mem::take(&mut self.white) + 1;
            self.shape(c);
        }
        let has_no_spaces = c >= '\u{2e80}' && c.is_alphabetic();
        let is_inside = !self.word.is_empty() && (c.is_numeric() || matches!(c, '_' | '\'' | '’'));
        if (c.is_alphabetic() && !has_no_spaces) || is_inside {
            let begins = self.word.is_empty();
            self.word.push(if c == '’' { '\'' } else { c });
            return begins;
        }
        self.end_word(tools);
        if has_no_spaces {
            self.last = [self.last[1], self.last[2], c];
            if self.shape != TextShape::Data && words::announces(self.last) {
                self.take(Sign::Intent);
            }
            (self.is_first, self.starts_sentence) = (false, false);
            return true;
        }
        self.between(c);
        false
    }

    /// Handles a character between words.
    fn between(&mut self, c: char) {
        match c {
            '.' | '!' | '?' | '\n' | '。' | '！' | '？' | ':' | '：' | ';' | '—' => {
                self.starts_sentence = true;
                self.previous.clear();
                if matches!(c, ':' | '：') && self.shape != TextShape::Data {
                    self.colon = Some(self.chars);
                }
            }
            '*' | '#' | '-' | '>' | ' ' | '\t' | '"' | '(' | '0'..='9' => {}
            _ => {
                self.previous.clear();
                self.is_first = false;
            }
        }
        self.tag = match (c, self.tag) {
            ('<', _) => TagPart::Opens,
            ('/', TagPart::Opens) => TagPart::Closes,
            _ => TagPart::Outside,
        };
        if c.is_whitespace() {
            self.white += 1;
        }
    }

    /// Sets the shape from the first characters.
    fn shape(&mut self, c: char) {
        self.shape = match (self.shape, c) {
            (TextShape::Empty, '{' | '`') => TextShape::Data,
            (TextShape::Empty, '[') => TextShape::Bracket,
            (TextShape::Bracket, c) if !c.is_alphabetic() => TextShape::Data,
            (TextShape::Empty | TextShape::Bracket, _) => TextShape::Prose,
            (shape, _) => shape,
        };
    }

    /// Ends the current word, and evaluates it.
    fn end_word(&mut self, tools: &[Box<str>]) {
        if self.word.is_empty() {
            return;
        }
        let mut word = std::mem::take(&mut self.word);
        word.trim_apostrophe();
        let tag = std::mem::replace(&mut self.tag, TagPart::Outside);
        if tag != TagPart::Outside && words::is_preamble(word.as_str()) {
            self.open = match tag {
                TagPart::Opens => self.open.saturating_add(1),
                _ => self.open.saturating_sub(1),
            };
            self.take(Sign::Intent);
        } else if self.shape != TextShape::Data {
            self.word_in_prose(&word, tools);
        }
        (self.previous, self.starts_sentence, self.is_first) = (word, false, false);
    }

    fn word_in_prose(&mut self, word: &SignWord, tools: &[Box<str>]) {
        let previous = self.previous.as_str();
        let text = word.as_str();
        if (previous, text) == ("me", "know") {
            if let Some((sign, zero)) = self.before.take() {
                (self.sign, self.zero) = (sign, zero);
            }
            return;
        }
        let is_let_me = (previous, text) == ("let", "me");
        let state = (self.sign, self.zero);
        if let Some(sign) = words::sign(previous, text, self.starts_sentence, self.is_first) {
            self.take(sign);
        } else if word.is_identifier() || is_tool(text, tools) {
            self.take(Sign::Tool);
        }
        self.before = is_let_me.then_some(state);
    }

    /// Records a sign, unless a stronger one is active.
    fn take(&mut self, sign: Sign) {
        if sign >= self.sign {
            self.mark_run();
            (self.sign, self.zero) = (sign, self.chars);
        }
    }

    fn mark_run(&mut self) {
        let run = &mut self.runs[self.sign as usize];
        *run = Some(run.unwrap_or_default().max(self.chars - self.zero));
    }

    fn is_settled(&self, limits: &AutoLimits) -> bool {
        let floor = if self.shape == TextShape::Data {
            limits.data_floor
        } else {
            limits.floor
        };
        self.open == 0
            && self.chars - self.base >= floor
            && limits.runs[self.sign as usize]
                .is_some_and(|limit| self.chars - self.zero >= limit.chars)
            && self
                .colon
                .is_none_or(|colon| self.chars - colon >= AFTER_COLON)
    }
}

/// Whether a word is the name of one of the tools, which are sorted. Short names are excluded,
/// because they are also ordinary words, such as "a".
fn is_tool(word: &str, tools: &[Box<str>]) -> bool {
    word.len() >= SHORTEST_NAME && tools.binary_search_by(|tool| (**tool).cmp(word)).is_ok()
}

/// A word in lower case.
#[derive(Debug)]
struct SignWord {
    bytes: [u8; SignWord::MAX],
    len: usize,
    has_underscore: bool,
}

impl Default for SignWord {
    fn default() -> Self {
        SignWord {
            bytes: [0; SignWord::MAX],
            len: 0,
            has_underscore: false,
        }
    }
}

impl SignWord {
    /// OpenAI's limit for tool names is 64 characters.
    const MAX: usize = 64;

    fn push(&mut self, c: char) {
        self.has_underscore |= c == '_';
        let c = c.to_lowercase().next().unwrap_or(c);
        if self.len + c.len_utf8() <= SignWord::MAX {
            self.len += c.encode_utf8(&mut self.bytes[self.len..]).len();
        }
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn clear(&mut self) {
        self.len = 0;
        self.has_underscore = false;
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Removes the apostrophe of a closing quotation mark.
    fn trim_apostrophe(&mut self) {
        self.len = self.as_str().trim_end_matches('\'').len();
    }

    /// Whether the word looks like a function name: it has an underscore inside.
    fn is_identifier(&self) -> bool {
        self.has_underscore && self.len > 4 && self.as_str().trim_matches('_').contains('_')
    }
}
