//! The beginning or the end of a region of the answer, in every spelling.

use crate::response_template::pattern::Piece;

/// The most spellings of one delimiter.
const MAX_SPELLINGS: usize = 16;

/// A place in a delimiter, or in a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Text(String),
    /// White space, or none.
    Space,
    /// Text that is left open and means nothing.
    Open,
    /// The name of the tool or the parameter.
    Name,
    /// The call's id.
    Id,
    /// The value of the parameter.
    Value,
    /// Whether the value is a string: `true` or `false`.
    Flag,
    /// The same name as before.
    Same,
}

/// Appends a token. A text is joined with a text before it, and two equal gaps become one.
pub(super) fn append(tokens: &mut Vec<Token>, token: Token) {
    match (tokens.last_mut(), token) {
        (Some(Token::Text(text)), Token::Text(more)) => text.push_str(&more),
        (Some(Token::Open), Token::Open) | (Some(Token::Space), Token::Space) => {}
        (_, token) => tokens.push(token),
    }
}

/// One way to write a delimiter.
pub(super) type Spelling = Vec<Token>;

/// The names of the groups that hold the tool's name and the call's id.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Captures<'c> {
    pub name: Option<&'c str>,
    pub id: Option<&'c str>,
}

/// A delimiter.
#[derive(Debug, Default)]
pub(super) struct Delimiter {
    /// Markers before the delimiter that may be missing.
    pub before: Vec<String>,
    /// Every spelling of the delimiter.
    pub spellings: Vec<Spelling>,
    /// Markers after the delimiter that may be missing.
    pub after: Vec<String>,
    /// The beginning or the end of the text counts as the delimiter, too.
    pub is_edge: bool,
}

impl Delimiter {
    /// A delimiter that is one of these texts. If a text begins with another one of them, the rest
    /// of the longer text may be missing.
    pub fn of_texts(texts: &[String]) -> Delimiter {
        let begins = |text: &str| {
            texts
                .iter()
                .find(|other| *other != text && text.starts_with(&***other))
        };
        let mut delimiter = Delimiter::default();
        let first = |(n, text): &(usize, &String)| !texts[..*n].contains(text);
        for (_, text) in texts.iter().enumerate().filter(first) {
            match begins(text) {
                Some(shorter) => delimiter.after.push(text[shorter.len()..].to_owned()),
                None => delimiter.spellings.push(vec![Token::Text(text.clone())]),
            }
        }
        delimiter
    }

    /// A delimiter that a pattern describes.
    ///
    /// # Errors
    /// The part of the pattern that the notation of dialects cannot express.
    pub fn of_pattern(options: &[Vec<Piece>], captures: Captures<'_>) -> Result<Delimiter, String> {
        let mut delimiter = Delimiter::default();
        let spellings = match options {
            [only] => {
                let (before, rest) = optional_first(only);
                let (after, rest) = optional_last(rest);
                (delimiter.before, delimiter.after) = (before, after);
                expand(&[rest.to_vec()], captures, &mut delimiter.is_edge)?
            }
            options => expand(options, captures, &mut delimiter.is_edge)?,
        };
        for spelling in spellings {
            if !trimmed(&spelling).is_empty() && !delimiter.spellings.contains(&spelling) {
                delimiter.spellings.push(spelling);
            }
        }
        Ok(delimiter)
    }

    /// The delimiter as fixed texts; `None` if it has other tokens.
    pub fn texts(&self) -> Option<Vec<&str>> {
        let text = |spelling: &'_ Spelling| match trimmed(spelling) {
            [Token::Text(text)] => Some(text.clone()),
            _ => None,
        };
        if self
            .spellings
            .iter()
            .any(|spelling| text(spelling).is_none())
        {
            return None;
        }
        Some(self.all_texts().collect())
    }

    /// All texts in the delimiter.
    pub fn all_texts(&self) -> impl Iterator<Item = &str> {
        let inside = self
            .spellings
            .iter()
            .flatten()
            .filter_map(|token| match token {
                Token::Text(text) => Some(&text[..]),
                _ => None,
            });
        self.before
            .iter()
            .chain(&self.after)
            .map(|text| &text[..])
            .chain(inside)
    }
}

/// A spelling without the white space and the open text at its ends.
pub(super) fn trimmed(spelling: &[Token]) -> &[Token] {
    let is_edge = |token: &Token| matches!(token, Token::Space | Token::Open);
    let from = spelling
        .iter()
        .position(|token| !is_edge(token))
        .unwrap_or(spelling.len());
    let to = spelling
        .iter()
        .rposition(|token| !is_edge(token))
        .map_or(from, |at| at + 1);
    &spelling[from..to]
}

/// The fixed texts of an optional group.
fn optional(piece: &Piece) -> Option<Vec<String>> {
    let Piece::Group {
        options,
        is_optional: true,
        ..
    } = piece
    else {
        return None;
    };
    let text = |option: &Vec<Piece>| match &option[..] {
        [Piece::Text(text)] => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        _ => None,
    };
    options.iter().map(text).collect()
}

/// The optional marker at the beginning of the pieces, if a marker follows directly, and the pieces
/// after it.
fn optional_first(pieces: &[Piece]) -> (Vec<String>, &[Piece]) {
    let at = pieces
        .iter()
        .take_while(|piece| matches!(piece, Piece::Space))
        .count();
    let rest = pieces.get(at + 1..).unwrap_or_default();
    let is_marked = matches!(
        rest.iter().find(|piece| **piece != Piece::Space),
        Some(Piece::Text(_))
    );
    match pieces.get(at).and_then(optional) {
        Some(texts) if is_marked => (texts, rest),
        _ => (Vec::new(), pieces),
    }
}

/// The optional marker at the end of the pieces, after another marker, and the pieces before it.
fn optional_last(pieces: &[Piece]) -> (Vec<String>, &[Piece]) {
    let Some((last, rest)) = pieces.split_last() else {
        return (Vec::new(), pieces);
    };
    match optional(last) {
        Some(texts) if rest.iter().any(|piece| matches!(piece, Piece::Text(_))) => (texts, rest),
        _ => (Vec::new(), pieces),
    }
}

/// Every spelling of these alternatives.
fn expand(
    options: &[Vec<Piece>],
    captures: Captures<'_>,
    is_edge: &mut bool,
) -> Result<Vec<Spelling>, String> {
    const MANY: &str = "it has more than 16 spellings";
    let mut all: Vec<Spelling> = Vec::new();
    for option in options {
        let mut spellings: Vec<Spelling> = vec![Vec::new()];
        for piece in option {
            let next: Vec<Spelling> = match piece {
                Piece::Edge => {
                    *is_edge = true;
                    continue;
                }
                Piece::Ahead => continue,
                Piece::Same => return Err("it refers to what a group matched".to_owned()),
                Piece::Text(text) => vec![vec![Token::Text(text.clone())]],
                Piece::Space => vec![vec![Token::Space]],
                Piece::Open => vec![vec![Token::Open]],
                Piece::Group {
                    name,
                    options,
                    is_optional,
                } => {
                    let mut inner = group(name.as_deref(), options, captures, is_edge)?;
                    inner.extend(is_optional.then(Vec::new));
                    inner
                }
            };
            if spellings.len() * next.len() > MAX_SPELLINGS {
                return Err(MANY.to_owned());
            }
            spellings = spellings
                .iter()
                .flat_map(|a| next.iter().map(move |b| joined(a, b)))
                .collect();
        }
        all.extend(spellings);
        if all.len() > MAX_SPELLINGS {
            return Err(MANY.to_owned());
        }
    }
    Ok(all)
}

/// The spellings of a group: a slot, if the group holds the tool's name or the call's id.
fn group(
    name: Option<&str>,
    options: &[Vec<Piece>],
    captures: Captures<'_>,
    is_edge: &mut bool,
) -> Result<Vec<Spelling>, String> {
    let is_open = matches!(options, [option] if matches!(option[..], [Piece::Open]));
    match name {
        Some(_) if name == captures.name && is_open => Ok(vec![vec![Token::Name]]),
        Some(name) if captures.name == Some(name) => {
            Err(format!("the group '{name}' is more than the name"))
        }
        Some(_) if name == captures.id && is_open => Ok(vec![vec![Token::Id]]),
        _ => expand(options, captures, is_edge),
    }
}

/// One spelling after the other.
fn joined(before: &[Token], after: &[Token]) -> Spelling {
    let mut all = before.to_vec();
    after
        .iter()
        .for_each(|token| append(&mut all, token.clone()));
    all
}

// Texts as the notation of dialects has them, and keys as TOML has them.

/// A marker in the notation of a call: white space at its ends becomes any white space, and
/// characters with a meaning in the notation are escaped.
pub(super) fn text(marker: &str) -> String {
    let mut out = String::new();
    for c in marker.chars() {
        match c {
            '{' | '(' | '?' | '¦' | '·' | '␣' | '⏎' | '\\' => out.extend(['\\', c]),
            c if c.is_whitespace() => out.push(c),
            c => out.push(c),
        }
    }
    let inside = out.trim();
    let (before, after) = out.split_once(inside).unwrap_or_default();
    format!("{}{}{}", space(before), lines(inside), space(after))
}

/// White space at the end of a marker.
fn space(blank: &str) -> &'static str {
    match blank {
        "" => "",
        blank if blank.contains(['\n', '\r']) => "⏎",
        _ => "␣",
    }
}

/// Text with its newlines as the notation has them.
pub(super) fn lines(text: &str) -> String {
    text.replace('\n', "⏎")
}

/// A TOML string.
pub(super) fn string(text: &str) -> String {
    event::quoted(text)
}

/// A TOML array of strings.
pub(super) fn array(texts: &[impl AsRef<str>]) -> String {
    let all: Vec<String> = texts.iter().map(|text| string(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}
