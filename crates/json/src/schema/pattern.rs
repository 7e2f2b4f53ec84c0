//! Translates patterns from ECMA-262, which JSON Schema uses
//! (<https://json-schema.org/draft/2020-12/json-schema-core#section-6.4>), to the syntax of the
//! crate `regex`.

use super::size::MAX_PATTERN_SIZE;
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::OnceLock;

/// ECMA-262's `\d`, `\w` and `\s` as the content of a class. In the crate `regex` they match more
/// Unicode characters (<https://tc39.es/ecma262/#sec-compiletocharset>).
const DIGITS: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str =
    r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// The maximum weight of a pattern whose compiled size is certain to be within the limit.
const LIGHT: usize = 6_000;
/// The additional weight of a character set, which may compile to many byte ranges.
const SET: usize = 16;

/// A pattern of a schema.
#[derive(Debug)]
pub(super) struct Pattern {
    translated: String,
    weight: usize,
    /// The compiled pattern. Compiling takes longer than reading all tools, so it is done at the
    /// first match.
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Parses a pattern. Returns `None` if it is too large, or has a construct that is invalid,
    /// missing in the crate `regex`: look-around, back-references, surrogate escapes.
    pub(super) fn new(pattern: &str) -> Option<Pattern> {
        let (translated, weight) = translate(pattern)?;
        let pattern = Pattern {
            translated,
            weight,
            regex: OnceLock::new(),
        };
        // Compiling shows whether the Unicode properties in the pattern exist.
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

    /// Returns the maximum number of steps of a match: the crate passes over the text once, with
    /// all parts of the pattern that may match.
    pub(super) fn steps(&self, text: &str) -> usize {
        text.len().saturating_mul(1 + self.weight / 32)
    }

    /// Whether the text matches anywhere. Returns `None` if the pattern cannot be compiled, which
    /// [`Pattern::new`] has checked.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        Some(self.regex()?.is_match(text))
    }
}

/// Returns the equivalent pattern in the syntax of the crate `regex`, and its weight: the number of
/// characters and sets, including those repeated by a count.
fn translate(pattern: &str) -> Option<(String, usize)> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    // The weight of the whole pattern, followed by the weights of the open groups.
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
                    // A group's name matters only for back-references, which are rejected.
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
            '\\' if matches!(rest.peek(), Some('b' | 'B')) => {
                out.push_str(r"(?-u:\");
                out.extend(rest.next());
                out.push(')');
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
        // A quantifier must follow an atom, and cannot follow another quantifier.
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

/// Reads a quantifier, if there is one. Returns how many times the atom's pattern is repeated.
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

/// Reads the digits of a count, and the character after them.
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
    /// The content of a class, and whether the class is negated.
    Class(Cow<'static, str>, bool),
}

/// Reads the text after a backslash.
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

/// Reads the rest of a class, after `[`.
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
                    // A set cannot be the start of a range.
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

/// Whether the next character is a hyphen that is not the last character of its class.
fn is_range(rest: &Peekable<Chars<'_>>) -> bool {
    let mut ahead = rest.clone();
    ahead.next() == Some('-') && ahead.next() != Some(']')
}

/// Appends a literal character, inside or outside a class.
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
            (r"\Bfoo\B", "afooa", "éfooé"),
            (r"^\B", "é", "e"),
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
            r"\0", r"\a", r"\z", r"\ud83d", r"\u{61}", "a**", "a*+", "*a", "(*a)", "|*", "^*",
            "a{,2}", "a{", "a{x}", "a}", "a]", "[", "[]", "[^]", "[a", "[z-a]", r"[\d-z]",
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
