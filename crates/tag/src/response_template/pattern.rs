//! Parses the regular expressions of a description as texts with gaps.
//!
//! No text is matched with them: each pattern is expanded once into all spellings that it matches,
//! so that its cost is bounded by its own length. A pattern that a dialect's notation cannot
//! express is rejected. The patterns use the syntax of Python's `regex`, with `.` matching any
//! character (<https://huggingface.co/docs/transformers/main/chat_response_parsing>).

use crate::response_template::delimiter::{DelimiterToken, Spelling, append};
use std::iter::Peekable;
use std::str::Chars;

/// The maximum length of a pattern, in bytes.
const LONGEST: usize = 4096;
/// The maximum nesting of groups.
const DEPTH: usize = 16;
/// The maximum number of spellings of one pattern.
const MAX_SPELLINGS: usize = 16;

/// The error for a parameter that is written unlike those of any dialect.
pub(super) const UNKNOWN_PARAMETER: &str = "the notation cannot express the pattern of a \
    parameter; expected for example <p=(?P<key>\\w+)>(?P<value>.*?)</p>";

/// The names of the groups that capture a part of a call or of a parameter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Captures<'c> {
    pub name: Option<&'c str>,
    pub id: Option<&'c str>,
    /// The value of a parameter. In its pattern optional parts count as present.
    pub value: Option<&'c str>,
}

/// Parses a pattern. Returns all spellings that it matches, and whether the beginning or the end of
/// the text also matches.
///
/// # Errors
/// Returns what the notation of dialects cannot express.
pub(super) fn read(pattern: &str, captures: Captures<'_>) -> Result<(Vec<Spelling>, bool), String> {
    if pattern.len() > LONGEST {
        return Err(format!(
            "the pattern is too long; expected at most {LONGEST} bytes"
        ));
    }
    let mut reader = PatternReader {
        rest: pattern.chars().peekable(),
        depth: 0,
        captures,
        is_edge: false,
    };
    let spellings = reader.options()?;
    match reader.rest.next() {
        None => Ok((spellings, reader.is_edge)),
        Some(_) => Err("a ')' without its '('".to_owned()),
    }
}

/// One atom, without its repetition.
enum Atom {
    Letter(char),
    /// Any of several characters.
    Any,
    /// A white space character.
    Blank,
    /// The spellings of a group, and whether it has a name.
    Group(Vec<Spelling>, bool),
}

/// Returns the spelling that consists only of this token.
fn only(token: DelimiterToken) -> Vec<Spelling> {
    vec![vec![token]]
}

struct PatternReader<'p> {
    rest: Peekable<Chars<'p>>,
    depth: usize,
    captures: Captures<'p>,
    is_edge: bool,
}

impl PatternReader<'_> {
    /// Parses alternatives up to the end or a `)`, and returns their spellings.
    fn options(&mut self) -> Result<Vec<Spelling>, String> {
        let many = |count: usize| match count > MAX_SPELLINGS {
            true => Err(format!("it has more than {MAX_SPELLINGS} spellings")),
            false => Ok(()),
        };
        let mut all = Vec::new();
        let mut option = vec![Vec::new()];
        while let Some(c) = self.rest.next_if(|c| *c != ')') {
            if c == '|' {
                all.append(&mut option);
                option.push(Vec::new());
                continue;
            }
            let atom = self.atom(c)?;
            let next = self.repeated(atom)?;
            many(option.len() * next.len())?;
            option = option
                .iter()
                .flat_map(|before| next.iter().map(|after| joined(before, after)))
                .collect();
        }
        all.append(&mut option);
        many(all.len())?;
        Ok(all)
    }

    fn atom(&mut self, c: char) -> Result<Atom, String> {
        Ok(match c {
            '.' => Atom::Any,
            '^' | '$' => self.edge(),
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => self.group()?,
            '*' | '+' | '?' => return Err(format!("'{c}' repeats nothing")),
            c => Atom::Letter(c),
        })
    }

    fn edge(&mut self) -> Atom {
        self.is_edge = true;
        Atom::Group(vec![Vec::new()], false)
    }

    /// Parses the text after a backslash.
    fn escape(&mut self) -> Result<Atom, String> {
        const ENDS: &str = "it ends with '\\'";
        Ok(match self.rest.next().ok_or(ENDS)? {
            's' => Atom::Blank,
            'S' | 'w' | 'W' | 'd' | 'D' => Atom::Any,
            'A' | 'Z' | 'z' => self.edge(),
            'n' => Atom::Letter('\n'),
            'r' => Atom::Letter('\r'),
            't' => Atom::Letter('\t'),
            'x' => Atom::Letter(self.code(2)?),
            'u' => Atom::Letter(self.code(4)?),
            '1'..='9' => {
                while self.rest.next_if(char::is_ascii_digit).is_some() {}
                Atom::Group(only(DelimiterToken::Same), false)
            }
            c if c.is_ascii_alphanumeric() => {
                return Err(format!(
                    "'\\{c}' cannot be expressed in the notation of dialects"
                ));
            }
            c => Atom::Letter(c),
        })
    }

    /// Parses a character given by its hexadecimal code.
    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code: String = self.rest.by_ref().take(digits).collect();
        let number = (code.len() == digits)
            .then(|| u32::from_str_radix(&code, 16).ok())
            .flatten();
        number
            .and_then(char::from_u32)
            .ok_or_else(|| format!("'{code}' is not the code of a character"))
    }

    /// Parses a character class after its `[`.
    fn class(&mut self) -> Result<Atom, String> {
        const OPEN: &str = "a '[' without its ']'";
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut atoms = Vec::new();
        let mut is_first = true;
        loop {
            match self.rest.next().ok_or(OPEN)? {
                ']' if !is_first => break,
                '\\' => atoms.push(self.escape()?),
                c => atoms.push(Atom::Letter(c)),
            }
            is_first = false;
        }
        let is_blank = |atom: &Atom| {
            matches!(atom, Atom::Blank) || matches!(atom, Atom::Letter(c) if c.is_whitespace())
        };
        Ok(match &atoms[..] {
            _ if is_negated => Atom::Any,
            [Atom::Letter(c)] => Atom::Letter(*c),
            atoms if atoms.iter().all(is_blank) => Atom::Blank,
            _ => Atom::Any,
        })
    }

    /// Parses a group after its `(`.
    fn group(&mut self) -> Result<Atom, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("more than {DEPTH} groups inside each other"));
        }
        let (mut name, mut is_ahead) = (None, false);
        let was_edge = self.is_edge;
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some(':') => {}
                Some('=') => is_ahead = true,
                Some('P') if self.rest.next_if_eq(&'=').is_some() => {
                    self.until(')')?;
                    self.depth -= 1;
                    return Ok(Atom::Group(only(DelimiterToken::Same), false));
                }
                Some('P') if self.rest.next_if_eq(&'<').is_some() => name = Some(self.until('>')?),
                Some('<') if !matches!(self.rest.peek(), Some('=' | '!')) => {
                    name = Some(self.until('>')?)
                }
                Some('!' | '<') => {
                    return Err("a look at what must not follow, or at what precedes".to_owned());
                }
                _ => return Err("flags, or another kind of group that is rarely used".to_owned()),
            }
        }
        let mut spellings = self.options()?;
        if self.rest.next() != Some(')') {
            return Err("a '(' without its ')'".to_owned());
        }
        self.depth -= 1;
        if is_ahead {
            self.is_edge = was_edge;
            spellings = only(DelimiterToken::Ahead);
        }
        let spellings = self.slot(name.as_deref(), spellings)?;
        Ok(Atom::Group(spellings, name.is_some()))
    }

    /// Returns the spellings of a group, or a slot if the group captures a part of a call or of a
    /// parameter.
    fn slot(&self, name: Option<&str>, spellings: Vec<Spelling>) -> Result<Vec<Spelling>, String> {
        let Captures {
            name: tool,
            id,
            value,
        } = self.captures;
        let slots = [
            (tool, DelimiterToken::Name),
            (id, DelimiterToken::Id),
            (value, DelimiterToken::Value),
        ];
        let slot = slots
            .into_iter()
            .find(|(slot, _)| slot.is_some() && *slot == name);
        let is_word = |spelling: &Spelling, word: &str| matches!(&spelling[..], [DelimiterToken::Text(text)] if text.eq_ignore_ascii_case(word));
        match (slot, &spellings[..]) {
            (Some((_, token)), [one]) if one[..] == [DelimiterToken::Open] => Ok(only(token)),
            (Some(_), _) if value.is_some() => Err(UNKNOWN_PARAMETER.to_owned()),
            (Some((Some(name), DelimiterToken::Name)), _) => {
                Err(format!("the group '{name}' is more than the name"))
            }
            (_, [a, b]) if value.is_some() && is_word(a, "true") && is_word(b, "false") => {
                Ok(only(DelimiterToken::Flag))
            }
            _ => Ok(spellings),
        }
    }

    fn until(&mut self, end: char) -> Result<String, String> {
        let name: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != end)).collect();
        match self.rest.next() {
            Some(_) => Ok(name),
            None => Err("the name of a group does not end".to_owned()),
        }
    }

    /// Returns the spellings of an atom with its repetition.
    fn repeated(&mut self, atom: Atom) -> Result<Vec<Spelling>, String> {
        let repetition = self.repetition();
        let (is_optional, is_once) = repetition.unwrap_or((false, true));
        let is_blank = |token: &DelimiterToken| match token {
            DelimiterToken::Text(text) => text.trim().is_empty(),
            token => *token == DelimiterToken::Space,
        };
        let mut spellings = match atom {
            Atom::Any => return Ok(only(DelimiterToken::Open)),
            Atom::Blank => return Ok(only(DelimiterToken::Space)),
            Atom::Letter(c) if repetition.is_some() && c.is_whitespace() => {
                return Ok(only(DelimiterToken::Space));
            }
            Atom::Letter(c) if is_once => only(DelimiterToken::Text(c.to_string())),
            Atom::Letter(c) => return Err(format!("'{c}' repeats")),
            Atom::Group(spellings, _) if is_once => spellings,
            Atom::Group(_, true) => return Err("a named group repeats".to_owned()),
            Atom::Group(spellings, _) if spellings.iter().flatten().all(is_blank) => {
                return Ok(only(DelimiterToken::Space));
            }
            Atom::Group(spellings, _)
                if spellings.iter().all(|spelling| spelling.len() == 1)
                    && spellings
                        .iter()
                        .flatten()
                        .any(|token| *token == DelimiterToken::Open) =>
            {
                return Ok(only(DelimiterToken::Open));
            }
            Atom::Group(..) => return Err("a group repeats".to_owned()),
        };
        if is_optional && self.captures.value.is_none() {
            spellings.push(Vec::new());
        }
        Ok(spellings)
    }

    /// Parses the repetition of the previous atom: whether the atom may be missing, and whether it
    /// occurs at most once. Returns `None` if the atom is not repeated.
    fn repetition(&mut self) -> Option<(bool, bool)> {
        let found = match self.rest.peek()? {
            '?' => (true, true),
            '*' => (true, false),
            '+' => (false, false),
            '{' => {
                let ahead: String = self
                    .rest
                    .clone()
                    .skip(1)
                    .take_while(|c| *c != '}')
                    .take(16)
                    .collect();
                let is_count = ahead.starts_with(|c: char| c.is_ascii_digit())
                    && ahead.chars().all(|c| c.is_ascii_digit() || c == ',');
                if !is_count {
                    return None;
                }
                self.rest.by_ref().take(ahead.len() + 1).for_each(drop);
                (ahead.starts_with("0"), ahead == "1")
            }
            _ => return None,
        };
        self.rest.next();
        // Greediness does not change which texts may match.
        self.rest.next_if(|c| matches!(c, '?' | '+'));
        Some(found)
    }
}

/// Concatenates two spellings.
fn joined(before: &[DelimiterToken], after: &[DelimiterToken]) -> Spelling {
    let mut all = before.to_vec();
    after
        .iter()
        .for_each(|token| append(&mut all, token.clone()));
    all
}
