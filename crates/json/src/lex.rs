//! Splits a text that is nearly JSON into pieces. The pieces together always make up the whole
//! text.

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// White space.
    Space,
    /// One of `{}[],:`.
    Mark,
    /// Text in quotes, with its closing quote. Single quotes count only where a value or key may
    /// begin.
    Quoted,
    /// Any other text up to the next piece.
    Word,
    /// The rest of the text from a quote that is never closed.
    Open,
}

/// Splits `text` into pieces.
pub(crate) fn pieces(text: &str) -> Vec<(PieceKind, &str)> {
    let b = text.as_bytes();
    let mut out: Vec<(PieceKind, &str)> = Vec::new();
    let mut value_may_begin = true;
    let mut i = 0;
    while i < b.len() {
        let (piece, end) = match b[i] {
            b' ' | b'\t' | b'\r' | b'\n' => (PieceKind::Space, event::space(b, i)),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => (PieceKind::Mark, i + 1),
            b'"' => quoted(b, i),
            b'\'' if value_may_begin => quoted(b, i),
            _ => (
                PieceKind::Word,
                run(b, i, |c| !b" \t\r\n{}[],:\"".contains(&c)).max(i + 1),
            ),
        };
        if piece != PieceKind::Space {
            value_may_begin = matches!(b[i], b'{' | b'[' | b',' | b':');
        }
        out.push((piece, &text[i..end]));
        i = end;
    }
    out
}

fn run(b: &[u8], at: usize, inside: impl Fn(u8) -> bool) -> usize {
    b[at..]
        .iter()
        .position(|c| !inside(*c))
        .map_or(b.len(), |n| at + n)
}

fn quoted(b: &[u8], at: usize) -> (PieceKind, usize) {
    let mut i = at + 1;
    while i < b.len() {
        match b[i] {
            b'\\' => i += 1,
            c if c == b[at] => return (PieceKind::Quoted, i + 1),
            _ => {}
        }
        i += 1;
    }
    (PieceKind::Open, b.len())
}

/// Whether the brackets outside quotes show that the text is complete: the last byte closes the
/// first `{`, no earlier byte closes it, and no quote is open. A missing inner `]` is a mistake of
/// the model, because a truncated text would also lack the last `}`.
pub(crate) fn is_closed(pieces: &[(PieceKind, &str)]) -> bool {
    let mut open = Vec::new();
    for (at, (piece, text)) in pieces.iter().enumerate() {
        match (piece, *text) {
            (PieceKind::Open, _) => return false,
            (PieceKind::Mark, bracket @ ("{" | "[")) => open.push(bracket),
            (PieceKind::Mark, "]") => {
                open.pop_if(|b| *b == "[");
            }
            (PieceKind::Mark, "}") => {
                while open.pop_if(|b| *b == "[").is_some() {}
                if open.pop().is_none() {
                    return false;
                }
                if open.is_empty() {
                    return at + 1 == pieces.len();
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns how many bytes at the beginning of a text are escapes of white space: `\n`, `\r` and
/// `\t`, two bytes each.
pub(crate) fn bare_escapes(text: &str) -> usize {
    let is_escape = |pair: &&[u8]| pair[0] == b'\\' && matches!(pair[1], b'n' | b'r' | b't');
    2 * text
        .as_bytes()
        .chunks_exact(2)
        .take_while(is_escape)
        .count()
}

/// Returns the pieces without escapes of white space outside quotes, if the escapes are between
/// values or next to a JSON word. Models write them there
/// (<https://github.com/OpenHands/software-agent-sdk/issues/2488>).
pub(crate) fn without_bare_escapes<'t>(
    pieces: &[(PieceKind, &'t str)],
) -> Vec<(PieceKind, &'t str)> {
    let bare = |(piece, text): &(PieceKind, &'t str)| {
        if *piece != PieceKind::Word || !text.contains('\\') {
            return (*piece, *text);
        }
        let word = &text[bare_escapes(text)..];
        let end = word.find('\\').unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_json = word.is_empty() || event::Raw::parse(word).is_ok();
        match is_json && bare_escapes(after) == after.len() {
            true => (*piece, word),
            false => (*piece, *text),
        }
    };
    pieces
        .iter()
        .map(bare)
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

/// Returns the text with strings that are valid JSON: inside quotes, a backslash that does not
/// begin a JSON escape (`C:\Users`) is doubled, and raw control characters are escaped.
pub(crate) fn with_valid_strings(pieces: &[(PieceKind, &str)]) -> String {
    let mut out = String::new();
    for (piece, text) in pieces {
        if *piece != PieceKind::Quoted {
            out.push_str(text);
            continue;
        }
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    let rest = &text[at + 1..];
                    let unicode = rest.strip_prefix('u').is_some_and(|hex| {
                        hex.as_bytes()
                            .iter()
                            .take(4)
                            .filter(|c| c.is_ascii_hexdigit())
                            .count()
                            == 4
                    });
                    if unicode || rest.starts_with(['"', '\\', '/', 'b', 'f', 'n', 'r', 't', '\''])
                    {
                        out.push('\\');
                        out.extend(chars.next().map(|(_, c)| c));
                    } else {
                        out.push_str("\\\\");
                    }
                }
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_text() {
        let text = "{'a': \"b\\\"c\", d: it's /* é */ [1,2}";
        let got = pieces(text);
        assert_eq!(got.iter().map(|p| p.1).collect::<String>(), text);
        assert_eq!(
            got.iter()
                .filter(|p| p.0 == PieceKind::Quoted)
                .map(|p| p.1)
                .collect::<Vec<_>>(),
            ["'a'", "\"b\\\"c\""]
        );
        assert!(got.contains(&(PieceKind::Word, "it's")));
    }

    #[test]
    fn closed_or_cut() {
        for whole in [
            "{}",
            "{a:{b:[1,2}}",
            "{'a':'}'}",
            "{\"a\":1,}",
            "{\"a\":[1,]]}",
        ] {
            assert!(is_closed(&pieces(whole)), "{whole}");
        }
        for cut in [
            "",
            "{",
            "{\"a\":\"}",
            "{\"a\":{\"b\":1}",
            "{}{}",
            "{}}",
            "{'a':'}",
            "[1]",
            "{} x",
            "{\"a\":[{}]",
        ] {
            assert!(!is_closed(&pieces(cut)), "{cut}");
        }
    }
}
