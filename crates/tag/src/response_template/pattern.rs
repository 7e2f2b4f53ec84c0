//! The regular expressions of a description, read as text with gaps.
//!
//! No text is matched with them: a pattern is read once, into pieces that a dialect's notation has
//! too, so that no pattern can cost more than its own length. What has no such piece is refused.
//! The patterns are those of Python's `regex`, with `.` for any character
//! (<https://huggingface.co/docs/transformers/main/chat_response_parsing>).

use std::iter::Peekable;
use std::str::Chars;

/// The longest pattern, in bytes.
const LONGEST: usize = 4096;
/// The most groups inside each other.
const DEPTH: usize = 16;

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// This text.
    Text(String),
    /// Text that the pattern leaves open: `.*?`, `\w+`, `[^<]*`.
    Open,
    /// White space, or none.
    Space,
    /// The beginning or the end of all text.
    Edge,
    /// One of these, or nothing if `is_optional`; `name` is that of a named group.
    Group {
        name: Option<String>,
        options: Vec<Vec<Piece>>,
        is_optional: bool,
    },
    /// What a group before it matched.
    Same,
    /// What must follow, but is not a part of the match.
    Ahead,
}

/// Reads a pattern: its alternatives.
///
/// # Errors
/// What in it has no piece.
pub(super) fn read(pattern: &str) -> Result<Vec<Vec<Piece>>, String> {
    if pattern.len() > LONGEST {
        return Err(format!(
            "the pattern is too long; expected at most {LONGEST} bytes"
        ));
    }
    let mut reader = PatternReader {
        rest: pattern.chars().peekable(),
        depth: 0,
    };
    let options = reader.options()?;
    match reader.rest.next() {
        None => Ok(options),
        Some(_) => Err("a ')' without its '('".to_owned()),
    }
}

/// One atom, before what repeats it.
enum Atom {
    Letter(char),
    /// One character of several.
    Any,
    /// One character of white space.
    Blank,
    Piece(Piece),
}

struct PatternReader<'p> {
    rest: Peekable<Chars<'p>>,
    depth: usize,
}

impl PatternReader<'_> {
    /// Alternatives, up to the end or a `)`.
    fn options(&mut self) -> Result<Vec<Vec<Piece>>, String> {
        let mut options = vec![Vec::new()];
        while let Some(c) = self.rest.next_if(|c| *c != ')') {
            if c == '|' {
                options.push(Vec::new());
                continue;
            }
            let atom = self.atom(c)?;
            let piece = self.repeated(atom)?;
            if let Some(last) = options.last_mut() {
                add(last, piece);
            }
        }
        Ok(options)
    }

    fn atom(&mut self, c: char) -> Result<Atom, String> {
        Ok(match c {
            '.' => Atom::Any,
            '^' | '$' => Atom::Piece(Piece::Edge),
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => Atom::Piece(self.group()?),
            '*' | '+' | '?' => return Err(format!("'{c}' repeats nothing")),
            c => Atom::Letter(c),
        })
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<Atom, String> {
        const ENDS: &str = "it ends with '\\'";
        Ok(match self.rest.next().ok_or(ENDS)? {
            's' => Atom::Blank,
            'S' | 'w' | 'W' | 'd' | 'D' => Atom::Any,
            'A' | 'Z' | 'z' => Atom::Piece(Piece::Edge),
            'n' => Atom::Letter('\n'),
            'r' => Atom::Letter('\r'),
            't' => Atom::Letter('\t'),
            'x' => Atom::Letter(self.code(2)?),
            'u' => Atom::Letter(self.code(4)?),
            c @ '1'..='9' => {
                while self.rest.next_if(char::is_ascii_digit).is_some() {}
                let _ = c;
                Atom::Piece(Piece::Same)
            }
            c if c.is_ascii_alphanumeric() => {
                return Err(format!("'\\{c}' has no place in the notation of dialects"));
            }
            c => Atom::Letter(c),
        })
    }

    /// A character by its hexadecimal code.
    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code: String = self.rest.by_ref().take(digits).collect();
        let number = (code.len() == digits)
            .then(|| u32::from_str_radix(&code, 16).ok())
            .flatten();
        number
            .and_then(char::from_u32)
            .ok_or_else(|| format!("'{code}' is not the code of a character"))
    }

    /// A class of characters, after its `[`.
    fn class(&mut self) -> Result<Atom, String> {
        const OPEN: &str = "a '[' without its ']'";
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let (mut atoms, mut is_first) = (Vec::new(), true);
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

    /// A group, after its `(`.
    fn group(&mut self) -> Result<Piece, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("more than {DEPTH} groups inside each other"));
        }
        let (mut name, mut is_ahead) = (None, false);
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some(':') => {}
                Some('=') => is_ahead = true,
                Some('P') if self.rest.next_if_eq(&'=').is_some() => {
                    self.until(')')?;
                    self.depth -= 1;
                    return Ok(Piece::Same);
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
        let options = self.options()?;
        if self.rest.next() != Some(')') {
            return Err("a '(' without its ')'".to_owned());
        }
        self.depth -= 1;
        Ok(if is_ahead {
            Piece::Ahead
        } else {
            Piece::Group {
                name,
                options,
                is_optional: false,
            }
        })
    }

    fn until(&mut self, end: char) -> Result<String, String> {
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some(c) if c == end => return Ok(name),
                Some(c) => name.push(c),
                None => return Err("the name of a group does not end".to_owned()),
            }
        }
    }

    /// The piece that an atom and what repeats it are.
    fn repeated(&mut self, atom: Atom) -> Result<Piece, String> {
        let Some((is_optional, is_once)) = self.repetition() else {
            return Ok(match atom {
                Atom::Letter(c) => Piece::Text(c.to_string()),
                Atom::Any => Piece::Open,
                Atom::Blank => Piece::Space,
                Atom::Piece(piece) => piece,
            });
        };
        Ok(match atom {
            Atom::Any => Piece::Open,
            Atom::Blank => Piece::Space,
            Atom::Letter(c) if c.is_whitespace() => Piece::Space,
            Atom::Letter(c) if is_once => {
                let options = vec![vec![Piece::Text(c.to_string())]];
                Piece::Group {
                    name: None,
                    options,
                    is_optional,
                }
            }
            Atom::Letter(c) => return Err(format!("'{c}' repeats")),
            Atom::Piece(Piece::Group {
                name,
                options,
                is_optional: before,
            }) if is_once => Piece::Group {
                name,
                options,
                is_optional: before || is_optional,
            },
            Atom::Piece(Piece::Group {
                name: None,
                options,
                ..
            }) => {
                let all = |is: fn(&Piece) -> bool| options.iter().flatten().all(is);
                if all(is_blank) {
                    Piece::Space
                } else if options.iter().all(|option| option.len() == 1)
                    && options.iter().flatten().any(|p| *p == Piece::Open)
                {
                    Piece::Open
                } else {
                    return Err("a group repeats".to_owned());
                }
            }
            Atom::Piece(Piece::Group { .. }) => return Err("a named group repeats".to_owned()),
            Atom::Piece(piece) => piece,
        })
    }

    /// What repeats the atom before: whether it may be missing, and whether it is there once at
    /// most.
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
        // Whether it takes as much as it can makes no difference to what it may match.
        self.rest.next_if(|c| matches!(c, '?' | '+'));
        Some(found)
    }
}

fn is_blank(piece: &Piece) -> bool {
    matches!(piece, Piece::Space) || matches!(piece, Piece::Text(text) if text.trim().is_empty())
}

/// Appends a piece; text goes to the text before it.
pub(super) fn add(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
        (Some(Piece::Open), Piece::Open) | (Some(Piece::Space), Piece::Space) => {}
        (_, piece) => pieces.push(piece),
    }
}
