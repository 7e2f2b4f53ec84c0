//! How one tagged parameter is written, by the `tag_pattern` of a description.

use super::member::Member;
use super::pattern::{self, Piece};
use super::written::text;
use crate::notation::Fault;

/// A place in the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Space,
    Key,
    Value,
    /// `true` or `false`.
    Flag,
    /// The key again.
    Same,
}

const UNKNOWN: &str = "the pattern of a parameter is none that the notation has; expected such as \
    <p=(?P<key>\\w+)>(?P<value>.*?)</p>";

/// The notation of one parameter, and the white space that follows the last one.
///
/// # Errors
/// What has no place in the notation.
pub(super) fn read(arguments: &Member<'_>) -> Result<(String, &'static str), Fault> {
    arguments.expect(&["tag_pattern", "value_parser", "merge_duplicates"])?;
    if arguments.flag_of("merge_duplicates")? {
        return Err(arguments.refuse("merge_duplicates"));
    }
    if let Some(parser) = arguments.get("value_parser") {
        let name = parser.text_of("name")?.unwrap_or_default();
        let is_bare = parser
            .get("args")
            .is_some_and(|args| args.flag_of("allow_non_json").unwrap_or(false));
        // The tool's schema decides the type of bare text.
        if !matches!((&name[..], is_bare), ("text", _) | ("json", true)) {
            return Err(parser.refuse("values that are not bare text"));
        }
    }
    let Some(member) = arguments.get("tag_pattern") else {
        return Err(arguments.fault("tag_pattern is missing; expected the pattern of a parameter"));
    };
    let options = pattern::read(&member.text()?).map_err(|why| member.refuse(why))?;
    let [pieces] = &options[..] else {
        return Err(member.refuse("alternatives"));
    };
    let mut tokens = Vec::new();
    for piece in pieces {
        tokenize(piece, &mut tokens).map_err(|why| member.refuse(why))?;
    }
    notation(&tokens).ok_or_else(|| member.refuse(UNKNOWN))
}

fn tokenize(piece: &Piece, tokens: &mut Vec<Token>) -> Result<(), String> {
    match piece {
        Piece::Text(text) => {
            let inside = text.trim();
            let (before, after) = text.split_once(inside).unwrap_or_default();
            push(tokens, (!before.is_empty()).then_some(Token::Space));
            push(
                tokens,
                (!inside.is_empty()).then(|| Token::Text(inside.to_owned())),
            );
            push(tokens, (!after.is_empty()).then_some(Token::Space));
        }
        Piece::Space => push(tokens, Some(Token::Space)),
        Piece::Same => push(tokens, Some(Token::Same)),
        Piece::Edge | Piece::Ahead => {}
        Piece::Open => return Err(UNKNOWN.to_owned()),
        Piece::Group { name, options, .. } => match (name.as_deref(), &options[..]) {
            (Some("key"), [option]) if option[..] == [Piece::Open] => {
                push(tokens, Some(Token::Key))
            }
            (Some("value"), [option]) if option[..] == [Piece::Open] => {
                push(tokens, Some(Token::Value))
            }
            (Some("key" | "value"), _) => return Err(UNKNOWN.to_owned()),
            (_, [a, b]) if is_word(a, "true") && is_word(b, "false") => {
                push(tokens, Some(Token::Flag))
            }
            (_, options) => {
                // What must only follow is the beginning of the next parameter, which ends this one
                // in any case.
                let own: Vec<_> = options
                    .iter()
                    .filter(|option| option[..] != [Piece::Ahead])
                    .collect();
                let [one] = own[..] else {
                    return Err("alternatives".to_owned());
                };
                one.iter().try_for_each(|piece| tokenize(piece, tokens))?;
            }
        },
    }
    Ok(())
}

fn is_word(option: &[Piece], word: &str) -> bool {
    matches!(option, [Piece::Text(text)] if text.eq_ignore_ascii_case(word))
}

fn push(tokens: &mut Vec<Token>, token: Option<Token>) {
    let Some(token) = token else { return };
    match (tokens.last_mut(), token) {
        (Some(Token::Text(text)), Token::Text(more)) => text.push_str(&more),
        (Some(Token::Space), Token::Space) => {}
        (_, token) => tokens.push(token),
    }
}

fn notation(tokens: &[Token]) -> Option<(String, &'static str)> {
    use Token::{Flag, Key, Same, Space, Text, Value};
    // White space round a value is one newline that the template writes.
    let value = tokens.iter().position(|token| *token == Value)?;
    let is_round =
        tokens.get(value.checked_sub(1)?) == Some(&Space) && tokens.get(value + 1) == Some(&Space);
    let around = |n: usize| n + 1 == value || n == value + 1;
    let tokens: Vec<&Token> = tokens
        .iter()
        .enumerate()
        .filter(|(n, token)| !(**token == Space && around(*n)))
        .map(|(_, t)| t)
        .collect();
    let (round, mut before) = if is_round { ("⏎", "⏎") } else { ("", "") };
    let parameter = match tokens[..] {
        [Text(a), Key, Text(b), Value, Text(c)] => match b.split_once("><") {
            // Two elements that follow each other at once.
            Some((end, open)) if b.starts_with("</") => {
                format!(
                    "{}{{name}}{}>¦<{}{round}{{value}}{round}{}",
                    text(a),
                    text(end),
                    text(open),
                    text(c)
                )
            }
            _ => format!(
                "{}{{name}}{}{round}{{value}}{round}{}",
                text(a),
                text(b),
                text(c)
            ),
        },
        [Text(a), Key, Text(b), Space, Text(open), Value, Text(c)] => {
            before = "⏎";
            format!(
                "{}{{name}}{}⏎{}{round}{{value}}{round}{}",
                text(a),
                text(b),
                text(open),
                text(c)
            )
        }
        [Text(a), Key, Text(flag), Flag, Text(b), Value, Text(c)] => {
            format!(
                "{}{{name}}{}{{is_string}}{}{round}{{value}}{round}{}",
                text(a),
                flag,
                text(b),
                text(c)
            )
        }
        [Text(a), Key, Text(b), Value, Text(c), Same, Text(d)] if b == ">" && d == ">" => {
            format!(
                "{}{{name}}>{round}{{value}}{round}{}{{name}}>",
                text(a),
                text(c)
            )
        }
        _ => return None,
    };
    Some((format!("{before}{parameter}"), before))
}
