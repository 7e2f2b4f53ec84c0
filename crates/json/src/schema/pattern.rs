//! Patterns: the dialect of ECMA-262 that JSON Schema has
//! (<https://json-schema.org/draft/2020-12/json-schema-core#section-6.4>), as one of the crate
//! `regex`.

use super::size::MAX_PATTERN_SIZE;
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::OnceLock;

/// `\d`, `\w` and `\s` of ECMA-262 as the inside of a class; those of the crate `regex` have more
/// of Unicode (<https://tc39.es/ecma262/#sec-compiletocharset>).
const DIGITS: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str =
    r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// The weight of a pattern that is certain to stay below the limit of its compiled size.
const LIGHT: usize = 6_000;
/// The weight of a set of characters, beside its text: it may be compiled to many ranges of bytes.
const SET: usize = 16;

/// A pattern of a schema.
#[derive(Debug)]
pub(super) struct Pattern {
    translated: String,
    weight: usize,
    /// Compiled at the first text, since that takes longer than to read all the tools.
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Reads a pattern. Returns `None` if it is too large, or has a construct that is invalid, that
    /// the crate `regex` lacks (look-around, back-references), or that is rare: `\B`, `\u` of a
    /// surrogate.
    pub(super) fn new(pattern: &str) -> Option<Pattern> {
        let (translated, weight) = translate(pattern)?;
        let pattern = Pattern {
            translated,
            weight,
            regex: OnceLock::new(),
        };
        // The crate knows which properties of characters there are.
        let is_certain = weight <= LIGHT && !pattern.translated.contains(r"\p{");
        (is_certain || pattern.regex().is_some()).then_some(pattern)
    }

    fn regex(&self) -> Option<&Regex> {
        let compile = || {
            RegexBuilder::new(&self.translated)
                .size_limit(MAX_PATTERN_SIZE)
                .dfa_size_limit(MAX_PATTERN_SIZE)
                .build()
                .ok()
        };
        self.regex.get_or_init(compile).as_ref()
    }

    /// How many steps a match takes at most: the crate goes over the text once, with all parts of
    /// the pattern that may match.
    pub(super) fn steps(&self, text: &str) -> usize {
        text.len().saturating_mul(1 + self.weight / 32)
    }

    /// Whether the text matches somewhere. Returns `None` if the pattern cannot be compiled, which
    /// [`Pattern::new`] found out.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        Some(self.regex()?.is_match(text))
    }
}

/// The pattern in the dialect of the crate `regex`, with the same matches, and its weight: how many
/// characters and sets it has, with those that a count repeats.
fn translate(pattern: &str) -> Option<(String, usize)> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    // The weights of the open groups, after that of the whole.
    let mut open = vec![0_usize];
    while let Some(c) = rest.next() {
        let start = out.len();
        let atom = match c {
            '^' | '$' | '|' => {
                out.push(c);
                None
            }
            '(' => {
                open.push(0);
                out.push_str("(?:");
                if rest.next_if_eq(&'?').is_some() {
                    // What a group is called matters to references back alone, which are refused.
                    if rest.next_if_eq(&'<').is_some() {
                        rest.next_if(|c| c.is_alphabetic() || matches!(c, '_' | '$'))?;
                        while rest.next()? != '>' {}
                    } else {
                        rest.next_if_eq(&':')?;
                    }
                }
                None
            }
            ')' if open.len() > 1 => {
                out.push(c);
                open.pop()
            }
            '*' | '+' | '?' | '{' | '}' | ']' | ')' => return None,
            '.' => {
                out.push_str(r"[^\n\r\x{2028}\x{2029}]");
                Some(SET + 1)
            }
            '[' => {
                class(&mut rest, &mut out)?;
                Some(SET + out.len() - start)
            }
            '\\' if rest.next_if_eq(&'b').is_some() => {
                out.push_str(r"(?-u:\b)");
                None
            }
            '\\' => match escape(&mut rest)? {
                Escape::Char(c) => {
                    literal(c, &mut out);
                    Some(1)
                }
                Escape::Class(set, is_negated) => {
                    out.extend([if is_negated { "[^" } else { "[" }, &set, "]"]);
                    Some(SET + set.len())
                }
            },
            _ => {
                literal(c, &mut out);
                Some(1)
            }
        };
        // A quantifier follows an atom, and none follows another.
        let Some(weight) = atom else { continue };
        let times = quantifier(&mut rest, &mut out)?;
        let sum = open.last_mut()?;
        *sum = sum.saturating_add(weight.saturating_mul(times));
    }
    match open[..] {
        [weight] => Some((out, weight)),
        _ => None,
    }
}

/// Takes a quantifier, if there is one. Returns how often it repeats the pattern of its atom.
fn quantifier(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<usize> {
    let Some(c) = rest.next_if(|c| "*+?{".contains(*c)) else {
        return Some(1);
    };
    out.push(c);
    let mut times = 1;
    if c == '{' {
        let (least, mut end) = count(rest, out)?;
        times = least + 1;
        if end == ',' {
            out.push(',');
            if rest.next_if_eq(&'}').is_some() {
                end = '}';
            } else {
                (times, end) = count(rest, out)?;
            }
            if times < least {
                return None;
            }
        }
        if end != '}' {
            return None;
        }
        out.push('}');
    }
    out.extend(rest.next_if_eq(&'?'));
    Some(times)
}

/// The digits of a count, and the character after them.
fn count(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<(usize, char)> {
    let start = out.len();
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        out.push(digit);
    }
    let times: u32 = out[start..].parse().ok()?;
    Some((times as usize, rest.next()?))
}

enum Escape {
    Char(char),
    /// The inside of a class, and whether it is what does not match.
    Class(Cow<'static, str>, bool),
}

/// What follows a backslash.
fn escape(rest: &mut Peekable<Chars<'_>>) -> Option<Escape> {
    let c = rest.next()?;
    let mut hex = |digits: usize| {
        (0..digits)
            .try_fold(0, |code, _| Some(code * 16 + rest.next()?.to_digit(16)?))
            .and_then(char::from_u32)
            .map(Escape::Char)
    };
    Some(match c {
        'd' | 'D' => Escape::Class(DIGITS.into(), c == 'D'),
        'w' | 'W' => Escape::Class(WORD.into(), c == 'W'),
        's' | 'S' => Escape::Class(SPACE.into(), c == 'S'),
        'p' | 'P' => {
            rest.next_if_eq(&'{')?;
            let name: String = rest.by_ref().take_while(|c| *c != '}').collect();
            Escape::Class(format!(r"\p{{{name}}}").into(), c == 'P')
        }
        'c' => Escape::Char(char::from(
            u8::try_from(rest.next().filter(char::is_ascii_alphabetic)?).ok()? % 32,
        )),
        't' => Escape::Char('\t'),
        'n' => Escape::Char('\n'),
        'r' => Escape::Char('\r'),
        'f' => Escape::Char('\u{c}'),
        'v' => Escape::Char('\u{b}'),
        'x' => hex(2)?,
        'u' => hex(4)?,
        c if c.is_ascii_punctuation() => Escape::Char(c),
        _ => return None,
    })
}

/// The rest of a class, after `[`.
fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    out.extend(rest.next_if_eq(&'^'));
    // Both `[]` and `[^]` are valid in ECMA-262.
    if rest.peek() == Some(&']') {
        return None;
    }
    loop {
        let from = match rest.next()? {
            ']' => break,
            '\\' => match escape(rest)? {
                Escape::Char(c) => c,
                Escape::Class(set, is_negated) => {
                    out.extend([if is_negated { "[^" } else { "[" }, &set, "]"]);
                    // A set is not the start of a range.
                    if is_range(rest) {
                        return None;
                    }
                    continue;
                }
            },
            c => c,
        };
        literal(from, out);
        if is_range(rest) {
            rest.next();
            let to = match rest.next()? {
                '\\' => match escape(rest)? {
                    Escape::Char(c) => c,
                    Escape::Class(..) => return None,
                },
                c => c,
            };
            if from > to {
                return None;
            }
            out.push('-');
            literal(to, out);
        }
    }
    out.push(']');
    Some(())
}

/// Whether a hyphen follows that is not the last character of its class.
fn is_range(rest: &Peekable<Chars<'_>>) -> bool {
    let mut ahead = rest.clone();
    ahead.next() == Some('-') && ahead.next() != Some(']')
}

/// A character that stands for itself, in a class and outside.
fn literal(c: char, out: &mut String) {
    if c.is_ascii_alphanumeric() {
        out.push(c);
    } else {
        out.extend(["\\x{", &format!("{:x}", u32::from(c)), "}"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(pattern: &str, text: &str) -> Option<bool> {
        Pattern::new(pattern)?.is_match(text)
    }

    #[test]
    fn the_dialect_is_that_of_ecma_262() {
        for (pattern, yes, no) in [
            (r"^\d+$", "042", "٣"),
            (r"^\w+$", "a_Z9", "é"),
            (r"^\s$", "\u{feff}", "\u{85}"),
            (r"^\S\D\W$", "aa-", "a1-"),
            (r"^[\d\-a]+$", "1-a", "b"),
            (r"^[^\w]$", "é", "e"),
            (r"^[\W]$", "é", "e"),
            (r"\bfoo\b", "éfooé", "afoo"),
            (r"^.$", "é", "\r"),
            (r"^a\.b\/c\-\<$", "a.b/c-<", "axb/c-<"),
            (r"^[a-z--0]+$", "a-.0", "1"),
            (r"^[[&&~~]+$", "[&~", "a"),
            (r"^[a-]$", "-", "b"),
            (r"^[-a]$", "-", "b"),
            (r"^[\w-]{2}$", "a-", "a."),
            (r"^[^^]$", "a", "^"),
            (r"^(?:ab){2,3}?$", "abab", "ab"),
            (r"^(a|b)*c{2}$", "abcc", "abc"),
            (r"^\x41\u00e9 #$", "Aé #", "Aé#"),
            ("^日本?$", "日", "本"),
            (r"^$", "", "\n"),
            ("x", "axb", "y"),
        ] {
            assert_eq!(finds(pattern, yes), Some(true), "{pattern} {yes:?}");
            assert_eq!(finds(pattern, no), Some(false), "{pattern} {no:?}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for pattern in [
            "(?=a)", "(?<n", "(?<=a)", "(?<!a)", "(?i)a", r"(a)\1", r"\k<n>", r"\pL", r"\c1",
            r"\0", r"\B", r"\a", r"\z", r"\ud83d", r"\u{61}", "a**", "a*+", "*a", "(*a)", "|*",
            "^*", "a{,2}", "a{", "a{x}", "a}", "a]", "[", "[]", "[^]", "[a", "[z-a]", r"[\d-z]",
            r"[a-\d]", r"[\b]", "(", ")", "(a))", "\\", r"\u00", "a{1}{2}", r"\bx*?*",
        ] {
            assert!(translate(pattern).is_none(), "{pattern}");
        }
        assert!(Pattern::new("(?:a{1000}){1000}").is_none());
        assert!(Pattern::new(r"\p{Nope}").is_none());
    }

    #[test]
    fn what_is_light_can_be_compiled() {
        let sets = [
            r"\S",
            r"[^a]",
            ".",
            r"[^\w]",
            "[a-é]",
            r"\D",
            "日",
            r"[\u0100-\uffff]",
        ];
        for set in sets {
            let (_, weight) = translate(set).unwrap();
            let most = LIGHT / weight;
            for pattern in [
                set.repeat(most),
                format!("{set}{{{}}}", most - 1),
                format!("(?:{set}{{0,{}}}|b){{2,3}}", most / 3 - 1),
            ] {
                let pattern = Pattern::new(&pattern).unwrap();
                assert!(
                    pattern.regex.get().is_none() && pattern.is_match("é").is_some(),
                    "{set}"
                );
            }
        }
    }
}
