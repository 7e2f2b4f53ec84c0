//! The beginning or the end of a region of the answer, in all spellings.

/// A token of a delimiter or of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DelimiterToken {
    Text(String),
    /// Optional white space.
    Space,
    /// Arbitrary text without meaning.
    Open,
    /// The name of the tool or the parameter.
    Name,
    /// The call's id.
    Id,
    /// The value of the parameter.
    Value,
    /// Whether the value is a string: `true` or `false`.
    Flag,
    /// A repetition of the same name.
    Same,
    /// Text that must follow but is not part of the match.
    Ahead,
}

/// Appends a token. A text is joined to a text before it, and two equal gaps are merged.
pub(super) fn append(tokens: &mut Vec<DelimiterToken>, token: DelimiterToken) {
    match (tokens.last_mut(), token) {
        (Some(DelimiterToken::Text(text)), DelimiterToken::Text(more)) => text.push_str(&more),
        (Some(DelimiterToken::Open), DelimiterToken::Open)
        | (Some(DelimiterToken::Space), DelimiterToken::Space) => {}
        (_, token) => tokens.push(token),
    }
}

/// One way to write a delimiter.
pub(super) type Spelling = Vec<DelimiterToken>;

/// A delimiter.
#[derive(Debug, Default)]
pub(super) struct Delimiter {
    /// Optional markers before the delimiter.
    pub before: Vec<String>,
    /// Every spelling of the delimiter.
    pub spellings: Vec<Spelling>,
    /// Optional markers after the delimiter.
    pub after: Vec<String>,
    /// Whether the beginning or the end of the text also counts as the delimiter.
    pub is_edge: bool,
}

impl Delimiter {
    /// Creates a delimiter from all its spellings. If a spelling ends with another one, the text
    /// before the shorter one becomes optional if `has_before`; if it begins with another one, the
    /// text after the shorter one becomes optional if `has_after`.
    pub(super) fn new(mut all: Vec<Spelling>, has_before: bool, has_after: bool) -> Delimiter {
        all.iter_mut()
            .for_each(|spelling| spelling.retain(|token| *token != DelimiterToken::Ahead));
        all.retain(|spelling| !trimmed(spelling).is_empty());
        let flat: Vec<String> = all.iter().map(|spelling| flat(trimmed(spelling))).collect();
        let is_marker = |rest: &&str| !rest.trim().is_empty() && !rest.contains(SLOT);
        let mut delimiter = Delimiter::default();
        for (spelling, long) in all.iter().zip(&flat) {
            let mut others = flat.iter().filter(|_| has_after);
            let after = others.find_map(|short| long.strip_prefix(&**short).filter(is_marker));
            let mut others = flat
                .iter()
                .filter(|short| has_before && !short.starts_with(SLOT));
            let before = others.find_map(|short| long.strip_suffix(&**short).filter(is_marker));
            let (list, marker) = match (after, before) {
                (Some(marker), _) => (&mut delimiter.after, marker),
                (None, Some(marker)) => (&mut delimiter.before, marker),
                (None, None) => {
                    if !delimiter.spellings.contains(spelling) {
                        delimiter.spellings.push(spelling.clone());
                    }
                    continue;
                }
            };
            if !list.iter().any(|known| known == marker) {
                list.push(marker.to_owned());
            }
        }
        delimiter
    }

    /// Returns the delimiter's spellings as fixed texts, or `None` if they contain other tokens.
    pub(super) fn texts(&self) -> Option<Vec<&str>> {
        let is_text = |spelling: &Spelling| matches!(trimmed(spelling), [DelimiterToken::Text(_)]);
        let all = self.spellings.iter().all(is_text);
        all.then(|| self.all_texts().collect())
    }

    /// Returns all texts in the delimiter.
    pub(super) fn all_texts(&self) -> impl Iterator<Item = &str> {
        let inside = self
            .spellings
            .iter()
            .flatten()
            .filter_map(|token| match token {
                DelimiterToken::Text(text) => Some(&text[..]),
                _ => None,
            });
        self.before
            .iter()
            .chain(&self.after)
            .map(|text| &text[..])
            .chain(inside)
    }
}

/// Returns a spelling without the white space and the arbitrary text at its ends.
pub(super) fn trimmed(spelling: &[DelimiterToken]) -> &[DelimiterToken] {
    let is_edge =
        |token: &DelimiterToken| matches!(token, DelimiterToken::Space | DelimiterToken::Open);
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

/// The character that [`flat`] writes in place of a slot.
const SLOT: char = '\u{1}';

/// Returns a spelling as one text.
fn flat(spelling: &[DelimiterToken]) -> String {
    let text = |token: &DelimiterToken| match token {
        DelimiterToken::Text(text) => text.clone(),
        DelimiterToken::Space => " ".to_owned(),
        _ => SLOT.to_string(),
    };
    spelling.iter().map(text).collect()
}

// Formats texts for the notation of dialects and for TOML.

/// Formats a marker for the notation of a call: white space at its ends becomes any white space,
/// and characters that have a meaning in the notation are escaped.
pub(super) fn text(marker: &str) -> String {
    let mut out = String::new();
    for c in marker.chars() {
        out.extend("{(?¦·␣⏎\\".contains(c).then_some('\\'));
        out.push(c);
    }
    let inside = out.trim();
    let (before, after) = out.split_once(inside).unwrap_or_default();
    format!("{}{}{}", space(before), lines(inside), space(after))
}

/// Formats the white space at the end of a marker.
fn space(blank: &str) -> &'static str {
    match blank {
        "" => "",
        blank if blank.contains(['\n', '\r']) => "⏎",
        _ => "␣",
    }
}

/// Formats the newlines of a text for the notation.
pub(super) fn lines(text: &str) -> String {
    text.replace('\n', "⏎")
}

/// Formats a TOML string.
pub(super) fn string(text: &str) -> String {
    event::quoted(text)
}

/// Formats a TOML array of strings.
pub(super) fn array(texts: &[impl AsRef<str>]) -> String {
    let all: Vec<String> = texts.iter().map(|text| string(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}
