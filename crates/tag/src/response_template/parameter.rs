//! Reads the `tag_pattern` of a `response_template`, and derives from it how one tagged parameter
//! is written in the notation of dialects.

use crate::notation::Fault;
use crate::response_template::delimiter::{Token, append, text};
use crate::response_template::member::Member;
use crate::response_template::pattern::{self, Piece};

const UNKNOWN: &str = "the pattern of a parameter is none that the notation has; expected such as \
    <p=(?P<key>\\w+)>(?P<value>.*?)</p>";

/// Returns the notation of one parameter, and the white space before each parameter and after the
/// last one (`⏎` or nothing).
///
/// # Errors
/// The part of `arguments` that the notation of dialects cannot express.
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
    let token = match piece {
        Piece::Text(text) => {
            let inside = text.trim();
            let (before, after) = text.split_once(inside).unwrap_or_default();
            if !before.is_empty() {
                append(tokens, Token::Space);
            }
            if !inside.is_empty() {
                append(tokens, Token::Text(inside.to_owned()));
            }
            if after.is_empty() {
                return Ok(());
            }
            Token::Space
        }
        Piece::Space => Token::Space,
        Piece::Same => Token::Same,
        Piece::Edge | Piece::Ahead => return Ok(()),
        Piece::Open => return Err(UNKNOWN.to_owned()),
        Piece::Group { name, options, .. } => match (name.as_deref(), &options[..]) {
            (Some("key"), [option]) if option[..] == [Piece::Open] => Token::Name,
            (Some("value"), [option]) if option[..] == [Piece::Open] => Token::Value,
            (Some("key" | "value"), _) => return Err(UNKNOWN.to_owned()),
            (_, [a, b]) if is_word(a, "true") && is_word(b, "false") => Token::Flag,
            (_, options) => {
                // An option that is only a lookahead (`Piece::Ahead`) describes the beginning of
                // the next parameter, which ends this parameter in any case: the option is skipped.
                let mut own = options.iter().filter(|option| option[..] != [Piece::Ahead]);
                let (Some(one), None) = (own.next(), own.next()) else {
                    return Err("alternatives".to_owned());
                };
                return one.iter().try_for_each(|piece| tokenize(piece, tokens));
            }
        },
    };
    append(tokens, token);
    Ok(())
}

fn is_word(option: &[Piece], word: &str) -> bool {
    matches!(option, [Piece::Text(text)] if text.eq_ignore_ascii_case(word))
}

fn notation(tokens: &[Token]) -> Option<(String, &'static str)> {
    use Token::{Flag, Name, Same, Space, Text, Value};
    // If the pattern has white space on both sides of the value, the template writes one newline on
    // each side. White space on one side only is ignored.
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
    let (head, close) = match tokens[..] {
        [Text(a), Name, Text(b), Value, Text(c)] => {
            // The name and the value are in two elements with nothing between them: `</a><b>`.
            let elements = b.split_once("><").filter(|_| b.starts_with("</"));
            let end = match elements {
                Some((end, open)) => format!("{}>¦<{}", text(end), text(open)),
                None => text(b),
            };
            (format!("{}{{name}}{end}", text(a)), text(c))
        }
        [Text(a), Name, Text(b), Space, Text(open), Value, Text(c)] => {
            before = "⏎";
            (
                format!("{}{{name}}{}⏎{}", text(a), text(b), text(open)),
                text(c),
            )
        }
        [Text(a), Name, Text(flag), Flag, Text(b), Value, Text(c)] => (
            format!("{}{{name}}{flag}{{is_string}}{}", text(a), text(b)),
            text(c),
        ),
        [Text(a), Name, Text(b), Value, Text(c), Same, Text(d)] if b == ">" && d == ">" => (
            format!("{}{{name}}>", text(a)),
            format!("{}{{name}}>", text(c)),
        ),
        _ => return None,
    };
    let parameter = format!("{before}{head}{round}{{value}}{round}{close}");
    Some((parameter, before))
}
