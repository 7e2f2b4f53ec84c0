//! Converts the content of a string to the content of a JSON string.

use memchr::{memchr, memchr2};

/// How reading continues, with a byte offset in the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Advance {
    On(usize),
    /// The rest must be read again together with the following text.
    Hold(usize),
    End(usize),
}

/// The result of one step, or why the text breaks the notation.
pub(super) type StepOutcome = Result<Advance, &'static str>;

/// The notation of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringForm {
    /// A Python string that ends at one or three `quote`s. In a raw string a backslash has no
    /// special meaning.
    Python { quote: u8, triple: bool, raw: bool },
    /// A JSON string.
    Json,
    /// Raw text up to this delimiter. The delimiter's first byte occurs in it only once.
    Between(&'static str),
}

impl StringForm {
    /// Continues reading at `at`. `End` is the offset after the closing mark. Holds back only an
    /// incomplete mark or escape.
    pub(super) fn read(self, text: &str, at: usize, out: &mut String) -> Advance {
        let rest = &text.as_bytes()[at..];
        let (quote, found) = match self {
            StringForm::Between(mark) => (0, memchr(mark.as_bytes()[0], rest)),
            StringForm::Json => (b'"', memchr2(b'"', b'\\', rest)),
            StringForm::Python { quote, .. } => (quote, memchr2(quote, b'\\', rest)),
        };
        let end = found.map_or(text.len(), |n| at + n);
        escape(&text[at..end], out);
        let rest = &text[end..];
        if rest.is_empty() {
            return Advance::On(end);
        }
        match self {
            StringForm::Between(mark) => match MarkStart::with(rest, mark) {
                MarkStart::Yes => Advance::End(end + mark.len()),
                MarkStart::Perhaps => Advance::Hold(end),
                MarkStart::No => plain(rest, end, out),
            },
            _ if rest.as_bytes()[0] == quote => match self {
                StringForm::Python { triple: true, .. } => {
                    let marks = rest.bytes().take(3).take_while(|b| *b == quote).count();
                    match marks {
                        3 => Advance::End(end + 3),
                        n if n == rest.len() => Advance::Hold(end),
                        _ => plain(rest, end, out),
                    }
                }
                _ => Advance::End(end + 1),
            },
            StringForm::Python { raw: true, .. } => match rest.as_bytes().get(1) {
                None => Advance::Hold(end),
                // Keep both bytes: a quote after a backslash does not close the string, and the
                // second of two backslashes does not escape the quote after it.
                Some(b'\\' | b'"' | b'\'') => {
                    escape(&rest[..2], out);
                    Advance::On(end + 2)
                }
                Some(_) => plain(rest, end, out),
            },
            _ => match Escape::read(rest, self == StringForm::Json) {
                None => Advance::Hold(end),
                Some(Escape { width, meant }) => {
                    match meant {
                        EscapeMeaning::Char(c) => escape(c.encode_utf8(&mut [0; 4]), out),
                        EscapeMeaning::Half(unit) => out.push_str(&format!("\\u{unit:04x}")),
                        EscapeMeaning::Nothing => {}
                    }
                    Advance::On(end + width)
                }
            },
        }
    }
}

/// Whether a text begins with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkStart {
    Yes,
    /// The text is too short to decide.
    Perhaps,
    No,
}

impl MarkStart {
    pub(super) fn with(text: &str, mark: &str) -> MarkStart {
        if text.starts_with(mark) {
            MarkStart::Yes
        } else if mark.starts_with(text) {
            MarkStart::Perhaps
        } else {
            MarkStart::No
        }
    }
}

/// Appends `text` as content of a JSON string.
pub(super) fn escape(text: &str, out: &mut String) {
    if text
        .bytes()
        .all(|b| b >= 0x20 && !matches!(b, b'"' | b'\\' | 0x7f | 0xc2))
    {
        return out.push_str(text);
    }
    let quoted = event::quoted(text);
    out.push_str(&quoted[1..quoted.len() - 1]);
}

/// Returns whether a string with this prefix is raw, or `None` if Python has no such prefix. The
/// braces of an `f` string are treated as text.
pub(super) fn prefix(letters: &str) -> Option<bool> {
    let mut low = [0; 2];
    let low = low.get_mut(..letters.len())?;
    low.copy_from_slice(letters.as_bytes());
    low.make_ascii_lowercase();
    match &*low {
        b"" | b"u" | b"b" | b"f" => Some(false),
        b"r" | b"br" | b"rb" | b"fr" | b"rf" => Some(true),
        _ => None,
    }
}

/// Appends the first character of `rest` as text.
fn plain(rest: &str, at: usize, out: &mut String) -> Advance {
    escape(&rest[..1], out);
    Advance::On(at + 1)
}

/// An escape.
struct Escape {
    width: usize,
    meant: EscapeMeaning,
}

enum EscapeMeaning {
    Char(char),
    /// A lone surrogate, which JSON can escape too.
    Half(u32),
    /// An escaped line end, which joins two lines.
    Nothing,
}

impl Escape {
    /// Returns the escape at the beginning of `rest`, or `None` if the escape may continue after
    /// `rest`. A backslash that does not begin an escape stands for itself.
    fn read(rest: &str, json: bool) -> Option<Escape> {
        let b = rest.as_bytes();
        let one = |c: char| {
            Some(Escape {
                width: 2,
                meant: EscapeMeaning::Char(c),
            })
        };
        match *b.get(1)? {
            b'n' => one('\n'),
            b't' => one('\t'),
            b'r' => one('\r'),
            b'b' => one('\x08'),
            b'f' => one('\x0c'),
            b'a' if !json => one('\x07'),
            b'v' if !json => one('\x0b'),
            c @ (b'\\' | b'\'' | b'"') => one(char::from(c)),
            b'/' if json => one('/'),
            b'\n' if !json => Some(Escape {
                width: 2,
                meant: EscapeMeaning::Nothing,
            }),
            b'\r' if !json => {
                let width = if *b.get(2)? == b'\n' { 3 } else { 2 };
                Some(Escape {
                    width,
                    meant: EscapeMeaning::Nothing,
                })
            }
            b'0'..=b'7' if !json => {
                let digits = b[1..]
                    .iter()
                    .take(3)
                    .take_while(|c| matches!(c, b'0'..=b'7'))
                    .count();
                if digits < 3 && b.len() == 1 + digits {
                    return None;
                }
                Some(Escape::code(&rest[1..1 + digits], 8, 1 + digits))
            }
            b'x' if !json => Escape::hex(rest, 2),
            b'u' => Escape::hex(rest, 4),
            b'U' if !json => Escape::hex(rest, 8),
            _ => Some(Escape::NONE),
        }
    }

    const NONE: Escape = Escape {
        width: 1,
        meant: EscapeMeaning::Char('\\'),
    };

    fn hex(rest: &str, want: usize) -> Option<Escape> {
        let digits = rest.as_bytes()[2..]
            .iter()
            .take(want)
            .take_while(|c| c.is_ascii_hexdigit())
            .count();
        match digits {
            n if n == want => Some(Escape::code(&rest[2..2 + n], 16, 2 + n)),
            n if n + 2 == rest.len() => None,
            _ => Some(Escape::NONE),
        }
    }

    fn code(digits: &str, radix: u32, width: usize) -> Escape {
        let Ok(code) = u32::from_str_radix(digits, radix) else {
            return Escape::NONE;
        };
        match char::from_u32(code) {
            Some(c) => Escape {
                width,
                meant: EscapeMeaning::Char(c),
            },
            None if code <= 0xffff => Escape {
                width,
                meant: EscapeMeaning::Half(code),
            },
            None => Escape::NONE,
        }
    }
}
