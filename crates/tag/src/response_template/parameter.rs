//! Reads the `tag_pattern` of a `response_template`, and derives from it how one tagged parameter
//! is written in the notation of dialects.

use crate::notation::{self, Fault};
use crate::response_template::call;
use crate::response_template::delimiter::{DelimiterToken, append};
use crate::response_template::member::TemplateMember;
use crate::response_template::pattern::{Captures, UNKNOWN_PARAMETER};

/// Returns the notation of one parameter, and the white space before each parameter and after the
/// last one (`⏎` or nothing).
///
/// # Errors
/// The part of `arguments` that the notation of dialects cannot express.
pub(super) fn read(arguments: &TemplateMember<'_>) -> Result<(String, &'static str), Fault> {
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
    let captures = Captures {
        name: Some("key"),
        id: None,
        value: Some("value"),
    };
    let (mut spellings, _) = member.pattern(captures)?;
    // A lookahead matches the beginning of the next parameter, which ends this parameter in any
    // case.
    let is_whole = |spelling: &Vec<DelimiterToken>| !spelling.contains(&DelimiterToken::Ahead);
    if spellings.iter().any(is_whole) {
        spellings.retain(is_whole);
    }
    let [spelling] = &spellings[..] else {
        return Err(member.refuse("alternatives"));
    };
    parameter(spelling).ok_or_else(|| member.refuse(UNKNOWN_PARAMETER))
}

/// Returns the notation of a parameter with this spelling.
fn parameter(spelling: &[DelimiterToken]) -> Option<(String, &'static str)> {
    let mut tokens = Vec::new();
    for token in spelling {
        let DelimiterToken::Text(text) = token else {
            append(&mut tokens, token.clone());
            continue;
        };
        let inside = text.trim();
        let (before, after) = text.split_once(inside).unwrap_or_default();
        let marker = DelimiterToken::Text(inside.to_owned());
        let pieces = [
            (before, DelimiterToken::Space),
            (inside, marker),
            (after, DelimiterToken::Space),
        ];
        for (_, piece) in pieces.into_iter().filter(|(text, _)| !text.is_empty()) {
            append(&mut tokens, piece);
        }
    }
    // White space on both sides of the value is one newline on each side, as the template writes it.
    let parts: Vec<&[DelimiterToken]> = tokens
        .split(|token| *token == DelimiterToken::Value)
        .collect();
    let [head, close] = parts[..] else {
        return None;
    };
    let (round, head, close) = match (
        head.strip_suffix(&[DelimiterToken::Space]),
        close.strip_prefix(&[DelimiterToken::Space]),
    ) {
        (Some(head), Some(close)) => ("⏎", head, close),
        (trimmed, None) => ("", trimmed.unwrap_or(head), close),
        (None, Some(close)) => ("", head, close),
    };
    let before = if round.is_empty() && !head.contains(&DelimiterToken::Space) {
        ""
    } else {
        "⏎"
    };
    let newline = |token: &DelimiterToken| match token {
        DelimiterToken::Space => DelimiterToken::Text("\n".to_owned()),
        token => token.clone(),
    };
    let head = call::notation(&head.iter().map(newline).collect::<Vec<_>>());
    // The name and the value are in two adjacent elements: `</a><b>`.
    let head = match head.split_once("}</") {
        Some((key, end)) => format!("{key}}}</{}", end.replacen("><", ">¦<", 1)),
        None => head,
    };
    let text = format!(
        "{before}{head}{round}{{value}}{round}{}",
        call::notation(close)
    );
    notation::parameter(&text).map(|_| (text, before))
}
