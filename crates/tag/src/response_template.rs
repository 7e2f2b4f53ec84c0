//! A checkpoint's own description of what it writes: `response_template` in its
//! `tokenizer_config.json` (<https://huggingface.co/docs/transformers/main/chat_response_parsing>),
//! which vLLM's parser `hf` reads, too.
//!
//! It is written down as a file of dialects in TOML, which is then read as every other, so that a
//! dialect has one meaning: its text streams, its calls are known by their tools, and prompts show
//! them. Of the regular expressions in it only those are read that are text with gaps. What the
//! notation of dialects has no place for is refused.

mod call;
mod delimiter;
mod member;
mod parameter;
mod pattern;
#[cfg(test)]
mod tests;
mod written;

use crate::notation::{Fault, NotationError};
use crate::parser::header_is_reasoning;
use call::CallKeys;
use delimiter::{Captures, Delimiter};
use event::Raw;
use member::Member;
use std::fmt::Write;
use written::{array, lines, string};

/// The longest file, in bytes: the configuration of a tokenizer lists its tokens, too.
const MAX_FILE: usize = 16 * 1024 * 1024;

/// The keys of a description.
const KEYS: &[&str] = &[
    "version",
    "defaults",
    "fields",
    "start_anchor",
    "start_anchor_pattern",
];
/// The keys of a field.
const FIELD_KEYS: &[&str] = &[
    "open",
    "open_pattern",
    "close",
    "close_pattern",
    "content",
    "content_args",
    "repeats",
    "join",
    "optional",
    "transform",
    "transform_each",
];
/// The fields of reasoning.
const REASONING: &[&str] = &["thinking", "reasoning_content", "reasoning"];

/// Whether a file is a description and not TOML, which never begins with a brace.
pub(crate) fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
}

/// The description in a file, as a file of one dialect in TOML. The dialect is named after the
/// file, or its folder; `is_taken`: the name is another dialect's.
///
/// # Errors
/// What is wrong in it, or has no place in the notation of dialects.
pub(crate) fn to_toml(
    file: &str,
    text: &str,
    is_taken: impl Fn(&str) -> bool,
) -> Result<String, NotationError> {
    let json = text.trim_start_matches('\u{feff}');
    translated(file, json, is_taken).map_err(|fault| fault.of(file, json))
}

/// The error of the TOML that was made of a description, as an error of its file.
pub(crate) fn error_of(error: NotationError, text: &str) -> NotationError {
    let at = text.find("\"response_template\"").unwrap_or(0);
    let what = format!(
        "response_template: {}; write the dialect as TOML, see docs/new-dialect.md",
        error.message
    );
    Fault::new(at, what).of(&error.file, text)
}

fn translated(file: &str, text: &str, is_taken: impl Fn(&str) -> bool) -> Result<String, Fault> {
    if text.len() > MAX_FILE {
        return Err(Fault::new(
            0,
            format!("the file is too long; expected at most {MAX_FILE} bytes"),
        ));
    }
    let raw = Raw::parse(text).map_err(|why| {
        Fault::new(
            0,
            format!("not JSON: {why}; expected a tokenizer_config.json"),
        )
    })?;
    let whole = Member::new(text, raw);
    let description = match whole.get("response_template") {
        Some(description) => description,
        None if raw.get("fields").is_some() => whole.clone(),
        None if raw.get("response_schema").is_some() => {
            return Err(Fault::new(
                0,
                "it has a response_schema, which is the form before response_template; expected a newer \
                version of the checkpoint, or the dialect as TOML, see docs/new-dialect.md",
            ));
        }
        None => {
            return Err(Fault::new(
                0,
                "it has no response_template; expected a tokenizer_config.json that has one, or the \
                dialect as TOML, see docs/new-dialect.md",
            ));
        }
    };
    description.expect(KEYS)?;
    if let Some(version) = description
        .get("version")
        .filter(|version| version.raw.i64() != Some(1))
    {
        return Err(version.refuse("a version that is not known here"));
    }
    let Some(fields) = description.get("fields") else {
        return Err(description.fault("it has no 'fields'; expected those of the answer"));
    };
    let known: Vec<&str> = REASONING
        .iter()
        .copied()
        .chain(["content", "tool_calls"])
        .collect();
    fields.expect(&known)?;
    for (name, _) in fields.raw.entries() {
        if let Some(field) = fields.get(&name) {
            field.expect(FIELD_KEYS)?;
        }
    }
    let Some(calls) = fields.get("tool_calls") else {
        return Err(fields.refuse("it has no 'tool_calls', so that no call is described"));
    };
    let keys = call::read(&calls)?;
    let mut toml = String::new();
    let mut key = |name: &str, value: String| {
        let _ = writeln!(toml, "{name} = {value}");
    };
    key("name", string(&name(file, is_taken)));
    key("models", string("the checkpoint's own description"));
    key("source", string(&format!("response_template in {file}")));
    let reasoning = REASONING.iter().find_map(|name| fields.get(name));
    let content = fields.get("content");
    let (thinks, answer) = (
        delimiters(reasoning.as_ref())?,
        delimiters(content.as_ref())?,
    );
    if keys.messages {
        key("messages", "true".to_owned());
        key("reasoning", "[]".to_owned());
        frame(reasoning.as_ref(), &thinks, true)?;
        frame(content.as_ref(), &answer, false)?;
    } else {
        let (pairs, is_opened) = pairs(reasoning.as_ref(), &thinks)?;
        key("reasoning", array(&pairs));
        // The prompt decides whether reasoning is open: a server's template may open it.
        let opened = if is_opened { "usually" } else { "perhaps" };
        key(
            "reasoning_opened",
            string(if pairs.is_empty() { "no" } else { opened }),
        );
        let mut dropped = dropped(&answer);
        // The token that ends a turn is named in the rest of the file.
        if let Some(end) = whole.get("eos_token")
            && let Some(text) = end.raw.str().or_else(|| end.raw.get_str("content"))
        {
            let text = lines(text.trim());
            dropped.extend(Some(text).filter(|text| !text.is_empty() && !dropped.contains(text)));
        }
        key("dropped", array(&dropped));
    }
    write_calls(&keys, &mut key);
    Ok(toml)
}

fn write_calls(keys: &CallKeys, key: &mut impl FnMut(&str, String)) {
    if let Some((call, also)) = keys.calls.split_first() {
        key("call", string(call));
        let also: Vec<String> = also
            .iter()
            .map(|call| format!("{{ call = {} }}", string(call)))
            .collect();
        key("also", format!("[{}]", also.join(", ")));
        let spellings: Vec<String> = keys.spellings.iter().map(|texts| array(texts)).collect();
        key("spellings", format!("[{}]", spellings.join(", ")));
    }
    if let Some(around) = &keys.around {
        key("calls", string(around));
    }
    if let Some(parameter) = &keys.parameter {
        key("parameter", string(parameter));
    }
}

/// How a field of text begins and ends.
fn delimiters(field: Option<&Member<'_>>) -> Result<(Option<Delimiter>, Option<Delimiter>), Fault> {
    let Some(field) = field else {
        return Ok((None, None));
    };
    let kind = field.text_of("content")?;
    if kind.is_some_and(|kind| kind != "text") || field.get("transform").is_some() {
        return Err(field.refuse("it is not text"));
    }
    Ok((
        field.delimiter("open", Captures::default())?,
        field.delimiter("close", Captures::default())?,
    ))
}

/// The pairs of markers of reasoning, and whether the answer may begin inside it.
fn pairs(
    field: Option<&Member<'_>>,
    (open, close): &(Option<Delimiter>, Option<Delimiter>),
) -> Result<(Vec<String>, bool), Fault> {
    let Some(field) = field else {
        return Ok((Vec::new(), false));
    };
    let (Some(open), Some(close)) = (open, close) else {
        return Err(field.refuse("reasoning without a marker that opens it and one that closes it"));
    };
    let texts = |delimiter: &Delimiter| {
        // What may precede or follow a marker of reasoning is left out of the answer, too.
        let all = delimiter
            .spellings
            .iter()
            .map(|spelling| match delimiter::trimmed(spelling) {
                [delimiter::Token::Text(text)] => Some(text.trim().to_owned()),
                [.., delimiter::Token::Text(text)] => Some(text.trim().to_owned()),
                _ => None,
            });
        all.collect::<Option<Vec<String>>>()
            .filter(|texts| !texts.is_empty())
    };
    let (Some(opens), Some(closes)) = (texts(open), texts(close)) else {
        return Err(field.refuse("a marker of reasoning that is more than a fixed text"));
    };
    let mut pairs: Vec<String> = Vec::new();
    for open in &opens {
        for close in &closes {
            let pair = format!("{}…{}", lines(open), lines(close));
            if open != close && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    Ok((pairs, open.is_edge))
}

/// The markers that frame the answer, with and without the white space that belongs to them.
fn dropped((open, close): &(Option<Delimiter>, Option<Delimiter>)) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in open.iter().chain(close).flat_map(Delimiter::all_texts) {
        for marker in [text, text.trim()] {
            let marker = lines(marker);
            if !marker.trim_matches('⏎').trim().is_empty() && !all.contains(&marker) {
                all.push(marker);
            }
        }
    }
    all
}

/// That a region of text is a message whose header is read as what it is.
fn frame(
    field: Option<&Member<'_>>,
    (open, _): &(Option<Delimiter>, Option<Delimiter>),
    is_reasoning: bool,
) -> Result<(), Fault> {
    let (Some(field), Some(open)) = (field, open) else {
        return Ok(());
    };
    let texts = open.texts().unwrap_or_default();
    let fits = |text: &&str| header_is_reasoning(text) == Some(is_reasoning);
    if texts.is_empty() || !texts.iter().all(fits) {
        return Err(field.refuse("a message whose header is read in another way"));
    }
    Ok(())
}

/// The name of the dialect: the file's, or its folder's where every checkpoint has a file of that
/// name.
fn name(file: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut parts = file.rsplit(['/', '\\']).filter(|part| !part.is_empty());
    let file = parts.next().unwrap_or_default();
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let stem = match stem {
        "tokenizer_config" | "processor_config" | "response_template" => {
            parts.next().unwrap_or_default()
        }
        stem => stem,
    };
    let letter = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '-' | '_' | '.') => c,
        _ => '-',
    };
    let name: String = stem.chars().take(48).map(letter).collect();
    let name = name.trim_matches(['-', '.']);
    match name {
        "" | "auto" => "checkpoint".to_owned(),
        name if is_taken(name) => format!("{name}-checkpoint"),
        name => name.to_owned(),
    }
}
