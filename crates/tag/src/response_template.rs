//! Reads a checkpoint's own description of its output format: `response_template` in
//! `tokenizer_config.json` (<https://huggingface.co/docs/transformers/main/chat_response_parsing>),
//! which vLLM's parser `hf` reads too.
//!
//! The description is converted to a file of dialects in TOML, which is then parsed like any other
//! file. So the dialect behaves like all others: its text streams, its calls are recognized by
//! their tools, and prompts show them. Only regular expressions that are text with gaps are
//! supported. A description that the notation of dialects cannot express is rejected.

mod call;
mod delimiter;
mod member;
mod parameter;
mod pattern;

use crate::dialect::Dialect;
use crate::notation::{self, Fault, NotationError};
use crate::parser::header_is_reasoning;
use crate::response_template::call::CallNotation;
use crate::response_template::delimiter::{Delimiter, array, lines, string};
use crate::response_template::member::TemplateMember;
use crate::response_template::pattern::Captures;
use crate::table::Dialects;
use event::Raw;
use std::fmt::Write;

/// The maximum length of a file, in bytes. It is large because a tokenizer's configuration lists
/// its tokens.
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
/// The names of the fields that hold reasoning.
const REASONING: &[&str] = &["thinking", "reasoning_content", "reasoning"];

// Reads files of users: dialects in TOML, or a checkpoint's own description in JSON.

impl Dialects {
    /// Adds the dialects of a file. The name of the file appears in errors and names the dialect of
    /// a checkpoint.
    ///
    /// # Errors
    /// The file contains a mistake, or describes something that the notation cannot express. No
    /// dialect is added then.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), NotationError> {
        let known: Vec<&Dialect> = self.all().collect();
        let read = if is_json(text) {
            let toml = to_toml(file, text, |name| self.named(name).is_some())?;
            notation::read(&[(file, &toml)], &known).map_err(|error| error_of(error, text))?
        } else {
            notation::read(&[(file, text)], &known)?
        };
        self.extend(read);
        Ok(())
    }
}

/// Whether a file is a description in JSON. TOML never begins with a brace.
fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
}

/// Converts the description in a file to a TOML file of one dialect. The dialect is named after the
/// file or its folder; `is_taken` returns whether another dialect has a name.
///
/// # Errors
/// Returns what is invalid, or what the notation of dialects cannot express.
fn to_toml(
    file: &str,
    text: &str,
    is_taken: impl Fn(&str) -> bool,
) -> Result<String, NotationError> {
    let json = text.trim_start_matches('\u{feff}');
    translated(file, json, is_taken).map_err(|fault| fault.of(file, json))
}

/// Converts an error in the generated TOML to an error in the description's file.
fn error_of(error: NotationError, text: &str) -> NotationError {
    let at = text.find("\"response_template\"").unwrap_or(0);
    let what = format!(
        "response_template: {}; write the dialect as TOML, see docs/new-dialect.md",
        error.message
    );
    Fault::new(at, what).of(&error.file, text)
}

fn translated(file: &str, text: &str, is_taken: impl Fn(&str) -> bool) -> Result<String, Fault> {
    let start = |what: String| Fault::new(0, what);
    if text.len() > MAX_FILE {
        return Err(start(format!(
            "the file is too long; expected at most {MAX_FILE} bytes"
        )));
    }
    let raw = Raw::parse(text)
        .map_err(|why| start(format!("not JSON: {why}; expected a tokenizer_config.json")))?;
    let whole = TemplateMember::new(text, raw);
    let fields = fields(&whole)?;
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
    let thinks = delimiters(reasoning.as_ref())?;
    let answer = delimiters(content.as_ref())?;
    if keys.messages {
        key("messages", "true".to_owned());
        key("reasoning", "[]".to_owned());
        frame(reasoning.as_ref(), &thinks, true)?;
        frame(content.as_ref(), &answer, false)?;
    } else {
        let (pairs, is_opened) = pairs(reasoning.as_ref(), &thinks)?;
        key("reasoning", array(&pairs));
        // The prompt determines whether reasoning is open, because a server's template may open it.
        let opened = match (pairs.is_empty(), is_opened) {
            (true, _) => "no",
            (false, true) => "usually",
            (false, false) => "perhaps",
        };
        key("reasoning_opened", string(opened));
        key("dropped", array(&dropped(&answer, &whole)));
    }
    write_calls(&keys, &mut key);
    Ok(toml)
}

/// Returns the fields of the description in a file, after checking that all are known.
fn fields<'t>(whole: &TemplateMember<'t>) -> Result<TemplateMember<'t>, Fault> {
    let description = match whole.get("response_template") {
        Some(description) => description,
        None if whole.raw.get("fields").is_some() => whole.clone(),
        None if whole.raw.get("response_schema").is_some() => {
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
    let version = description.get("version");
    if let Some(version) = version.filter(|version| version.raw.i64() != Some(1)) {
        return Err(version.refuse("a version that is not known here"));
    }
    let Some(fields) = description.get("fields") else {
        return Err(description.fault("it has no 'fields'; expected those of the answer"));
    };
    fields.expect(&[REASONING, &["content", "tool_calls"]].concat())?;
    for (name, _) in fields.raw.entries() {
        if let Some(field) = fields.get(&name) {
            field.expect(FIELD_KEYS)?;
        }
    }
    Ok(fields)
}

fn write_calls(keys: &CallNotation, key: &mut impl FnMut(&str, String)) {
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

/// Returns how a field of text begins and ends.
fn delimiters(
    field: Option<&TemplateMember<'_>>,
) -> Result<(Option<Delimiter>, Option<Delimiter>), Fault> {
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

/// Returns the pairs of reasoning markers, and whether the answer may begin inside reasoning.
fn pairs(
    field: Option<&TemplateMember<'_>>,
    (open, close): &(Option<Delimiter>, Option<Delimiter>),
) -> Result<(Vec<String>, bool), Fault> {
    let Some(field) = field else {
        return Ok((Vec::new(), false));
    };
    let (Some(open), Some(close)) = (open, close) else {
        return Err(field.refuse("reasoning without a marker that opens it and one that closes it"));
    };
    let texts = |delimiter: &Delimiter| {
        // Text that may precede or follow a reasoning marker is also dropped from the answer.
        let all = delimiter
            .spellings
            .iter()
            .map(|spelling| match delimiter::trimmed(spelling) {
                [delimiter::DelimiterToken::Text(text)] => Some(text.trim().to_owned()),
                [.., delimiter::DelimiterToken::Text(text)] => Some(text.trim().to_owned()),
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

/// Returns the markers that frame the answer, with and without the white space that belongs to
/// them, and the token that ends a turn, which another part of the file names.
fn dropped(
    (open, close): &(Option<Delimiter>, Option<Delimiter>),
    file: &TemplateMember<'_>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut add = |marker: &str| {
        let marker = lines(marker);
        if !marker.trim_matches('⏎').trim().is_empty() && !all.contains(&marker) {
            all.push(marker);
        }
    };
    for text in open.iter().chain(close).flat_map(Delimiter::all_texts) {
        add(text);
        add(text.trim());
    }
    if let Some(end) = file.get("eos_token")
        && let Some(text) = end.raw.str().or_else(|| end.raw.get_str("content"))
    {
        add(text.trim());
    }
    all
}

/// Checks that a region of text is a message whose header is interpreted as described.
fn frame(
    field: Option<&TemplateMember<'_>>,
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

/// Returns the name of the dialect: the name of the file, or of its folder if every checkpoint has
/// a file with this name.
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

#[cfg(test)]
mod tests {
    use super::to_toml;
    use crate::CallPiece;
    use crate::Dialects;
    use crate::Look;
    use crate::Outlet;
    use crate::Parser;
    use crate::PromptCall;
    use json::ToolList;
    use proptest::prelude::*;
    use std::rc::Rc;

    const TOOLS: &str = r#"[{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}},
    {"name": "g", "parameters": {"type": "object", "properties": {}}}]"#;
    const FUNCTION: &str =
        r#"{"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}"#;

    /// Returns a description with these fields.
    fn described(fields: &str) -> String {
        format!(
            r#"{{"response_template": {{"defaults": {{"role": "assistant"}}, "start_anchor": "<bot>", "fields": {{{fields}}}}}}}"#
        )
    }

    fn add(json: &str) -> Result<Dialects, String> {
        let mut dialects = Dialects::default();
        dialects
            .add("models/Fjord 2/tokenizer_config.json", json)
            .map_err(|e| e.to_string())?;
        Ok(dialects)
    }

    /// Collects what a parser finds, as lines: `text`, `(reasoning)` and `name{arguments}`.
    #[derive(Default)]
    struct Found {
        parts: Vec<String>,
        is_open: bool,
    }

    impl Found {
        fn add(&mut self, mark: char, text: &str) {
            match self.parts.last_mut() {
                Some(last) if last.starts_with(mark) && mark != '>' => last.push_str(text),
                _ => self.parts.push(format!("{mark}{text}")),
            }
        }
    }

    impl Outlet for Found {
        fn content(&mut self, text: &str) {
            self.add('=', text);
        }
        fn reasoning(&mut self, text: &str) {
            self.add('~', text);
        }
        fn call(&mut self, piece: CallPiece<'_>) {
            if let Some(name) = piece.name {
                let id = piece.id.map(|id| format!("#{id}")).unwrap_or_default();
                self.parts.push(format!(">{name}{id} "));
            }
            if let Some(last) = self.parts.last_mut() {
                last.push_str(piece.arguments.unwrap_or_default());
            }
            self.is_open = !piece.done;
        }
        fn retract(&mut self, _index: i64, _reason: &'static str) {
            self.parts.push("retract".to_owned());
        }
        fn warning(&mut self, code: &'static str, _message: &str, _raw: &str) {
            // A warning reports each dropped marker.
            if code != "tag_dropped" {
                self.parts.push(code.to_owned());
            }
        }
    }

    /// Returns what is found in a text that arrives in pieces of this many characters, without
    /// surrounding white space.
    fn read(dialects: &Dialects, text: &str, prefill: &str, length: usize) -> Vec<String> {
        let look = Look::among(dialects, dialects.own()[0].name).expect("the dialect's own name");
        let tools = ToolList::read(TOOLS).expect("tools");
        let mut parser = Parser::new(Rc::new(look), Some(Rc::new(tools)), Some(prefill));
        let mut found = Found::default();
        let letters: Vec<char> = text.chars().collect();
        letters
            .chunks(length)
            .for_each(|piece| parser.push(&piece.iter().collect::<String>(), &mut found));
        parser.finish(false, &mut found);
        assert!(!found.is_open, "{text}: a call is open");
        let parts = found
            .parts
            .iter()
            .map(|part| format!("{}{}", &part[..1], part[1..].trim()));
        parts.filter(|part| part.len() > 1).collect()
    }

    /// The name of each case, its fields, a text of the model, and the expected findings.
    const READ: &[(&str, &str, &str, &[&str])] = &[
        (
            "JSON between markers, text in between",
            r#""thinking": {"open": "<think>", "close": "</think>"}, "content": {"close": ["<end>", "<stop>"]},
           "tool_calls": {"open_pattern": "\\s*<call>", "close": "</call>", "repeats": true, "content": "json",
           "transform": {"type": "function", "function": "{content}"}}"#,
            "<think>Two.</think>I look.\n<call>{\"name\": \"f\", \"arguments\": {\"a\": \"</call>\"}}</call>\n<call>{\"name\": \"g\", \"arguments\": {}}</call><end>",
            &["~Two.", "=I look.", ">f {\"a\": \"</call>\"}", ">g {}"],
        ),
        (
            "keys of its own, and an id",
            r#""reasoning_content": {"open": "[T]", "close": "[/T]"}, "tool_calls": {"open": ["<call>", "<call v2>"], "close": "</call>",
           "content": "json", "transform": {"id": "{content.key}", "function": {"name": "{content.tool}", "arguments": "{content.input}"}}}"#,
            "[T]Hm[/T]<call v2>{\"key\": \"k1\", \"tool\": \"f\", \"input\": {\"n\": 1}}</call>",
            &["~Hm", ">f#k1 {\"n\": 1}"],
        ),
        (
            "an array of calls, and a framed answer",
            r#""content": {"open": "<say>\n", "close_pattern": "\\n?</say>"}, "tool_calls": {"open": "<do>", "close": "</do>", "content": "json",
           "transform_each": true, "transform": {"type": "function", "function": {"name": "{tool}", "arguments": "{input}"}}}"#,
            "<say>\nI look.\n</say><do>[\n {\"tool\": \"f\", \"input\": {\"a\": \"x\"}}, {\"tool\": \"g\", \"input\": {}}\n]</do>",
            &["=I look.", ">f {\"a\": \"x\"}", ">g {}"],
        ),
        (
            "the name in the marker, a section round all calls",
            r#""tool_calls": {"open_pattern": "(?:<\\|calls\\|>)?<\\|call\\|>(?P<name>[^<]+)<\\|args\\|>",
           "close_pattern": "<\\|end\\|>(?:<\\|done\\|>)?", "content": "json", "repeats": true,
           "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "So.<|calls|><|call|>f<|args|>{\"a\": \"<|end|>\"}<|end|><|call|>g<|args|>{}<|end|><|done|>",
            &["=So.", ">f {\"a\": \"<|end|>\"}", ">g {}"],
        ),
        (
            "an id that counts",
            r#""tool_calls": {"open_pattern": "<call>functions\\.(?P<name>\\w+):\\d+<args>", "close": "</call>", "content": "json",
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<call>functions.f:0<args>{\"a\": \"x\"}</call>",
            &[">f#functions.f:0 {\"a\": \"x\"}"],
        ),
        (
            "an id before the name",
            r#""tool_calls": {"open_pattern": "<call>(?P<key>\\w+)<name>(?P<name>\\w+)<args>", "close": "</call>", "content": "json",
           "transform": {"id": "{key}", "function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<call>k7<name>f<args>{\"a\": \"x\"}</call>",
            &[">f#k7 {\"a\": \"x\"}"],
        ),
        (
            "tagged parameters, the end tag of the name's tag unmentioned",
            r#""tool_calls": {"open_pattern": "<call>\\s*<tool=(?P<name>\\w+)>", "close": "</call>", "content": "xml-inline",
           "content_args": {"tag_pattern": "<p=(?P<key>\\w+)>\\s*(?P<value>.*?)\\s*</p>", "value_parser": {"name": "json", "args": {"allow_non_json": true}}},
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<call>\n<tool=f>\n<p=a>\n007\n</p>\n<p=n>\n7\n</p>\n</tool>\n</call>",
            &[">f {\"a\":\"007\",\"n\":7}"],
        ),
        (
            "names in attributes, the type in another",
            r#""tool_calls": {"open_pattern": "<invoke name=\"(?P<name>[^\"]+)\">", "close": "</invoke>", "content": "xml-inline",
           "content_args": {"tag_pattern": "<p name=\"(?P<key>[^\"]+)\" string=\"(?:true|false)\">(?P<value>.*?)</p>"},
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<invoke name=\"f\"><p name=\"a\" string=\"true\">x < y</p><p name=\"n\" string=\"false\">7</p></invoke>",
            &[">f {\"a\":\"x < y\",\"n\":7}"],
        ),
        (
            "keys and values in elements",
            r#""tool_calls": {"open_pattern": "<call>(?P<name>[^\\n<]+)", "close": "</call>", "content": "xml-inline",
           "content_args": {"tag_pattern": "<k>(?P<key>.*?)</k>\\s*<v>(?P<value>.*?)</v>"},
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<call>f\n<k>a</k>\n<v>x</v>\n<k>n</k><v>7</v></call><call>g</call>",
            &[">f {\"a\":\"x\",\"n\":7}", ">g {}"],
        ),
        (
            "elements that are named after their keys",
            r#""tool_calls": {"open_pattern": "<use name=\"(?P<name>\\w+)\">", "close": "</use>", "content": "xml-inline",
           "content_args": {"tag_pattern": "<(?P<key>\\w+)>\\s*(?P<value>.*?)\\s*</\\1>"},
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<use name=\"f\"><a>\nx\n</a><n>7</n></use>",
            &[">f {\"a\":\"x\",\"n\":7}"],
        ),
        (
            "quotation marks of its own",
            r#""tool_calls": {"open_pattern": "<\\|tool>do:(?P<name>\\w+)", "close": "<tool|>", "content": "json",
           "content_args": {"unquoted_keys": true, "string_delims": [["<q>", "<q>"]]},
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<|tool>do:f{a:<q>say \"}\"<q>,n:7}<tool|>",
            &[">f {\"a\":\"say \\\"}\\\"\",\"n\":7}"],
        ),
        (
            "an author before a marker that the prompt may have begun",
            r#""content": {"open_pattern": "(?:<msg>)?[^<]*<text>", "close": "<end>"},
           "tool_calls": {"open_pattern": "(?:<msg>)?[^<]*<json>", "close": "<end>", "content": "json",
           "transform": {"function": {"name": "{content.name}", "arguments": "{content.args}"}}}"#,
            "<text>I look.<end><msg>agent-1<json>{\"name\": \"f\", \"args\": {\"a\": \"x\"}}<end><msg><text>Done.<end>",
            &["=I look.", ">f {\"a\": \"x\"}", "=Done."],
        ),
        (
            "messages with headers",
            r#""thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
           "content": {"open": "<|channel|>final<|message|>", "close": ["<|end|>", "<|return|>"]},
           "tool_calls": {"open_pattern": "<\\|channel\\|>commentary to=functions\\.(?P<name>\\w+).*?<\\|message\\|>", "close": "<|call|>",
           "content": "json", "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": \"x\"}<|call|>",
            &["~Hm.", ">f {\"a\": \"x\"}"],
        ),
        (
            "messages with headers and tagged parameters",
            r#""tool_calls": {"open_pattern": " to=(?P<name>[^\\s<]+)<\\|channel\\|>analysis <\\|constrain\\|>xml<\\|message\\|>",
           "close": ["<|end|><|start|>assistant", "<|call|>"], "content": "xml-inline", "repeats": true,
           "content_args": {"tag_pattern": "<p name=\"(?P<key>[^\"]+)\">\\n(?P<value>.*?)\\n(?:</p>|(?=<p name=\"))"},
           "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}"#,
            "<|start|>assistant to=f<|channel|>analysis <|constrain|>xml<|message|><p name=\"a\">\nx\n</p><p name=\"n\">\n7\n</p><|end|><|start|>assistant to=g<|channel|>analysis <|constrain|>xml<|message|><|call|>",
            &[">f {\"a\":\"x\",\"n\":7}", ">g {}"],
        ),
    ];

    #[test]
    fn texts_are_read_as_the_description_says() {
        for (what, fields, text, want) in READ {
            let dialects = add(&described(fields)).unwrap_or_else(|why| panic!("{what}: {why}"));
            for length in [1, 2, 7, text.len()] {
                assert_eq!(
                    read(&dialects, text, "", length),
                    *want,
                    "{what}, in pieces of {length}"
                );
            }
        }
    }

    /// The calls that a prompt shows in the dialect parse back to the same calls.
    #[test]
    fn what_is_written_is_read_back() {
        let calls = [
            PromptCall {
                id: "k1",
                name: "f",
                arguments: r#"{"a":"x","n":7}"#,
            },
            PromptCall {
                id: "k2",
                name: "g",
                arguments: "{}",
            },
        ];
        for (what, fields, _, _) in READ {
            let dialects = add(&described(fields)).unwrap_or_else(|why| panic!("{what}: {why}"));
            let text = dialects.own()[0].calls(&calls);
            let found = read(&dialects, &text, "", text.len());
            let bare: Vec<String> = found
                .iter()
                .map(|part| {
                    part.replace(['"', ' '], "")
                        .replace("#k1", "")
                        .replace("#k2", "")
                })
                .collect();
            let bare: Vec<String> = bare
                .iter()
                .map(|part| {
                    part.replace("#functions.f:0", "")
                        .replace("#functions.g:1", "")
                })
                .collect();
            let bare: Vec<&str> = bare
                .iter()
                .map(|part| &part[..])
                .filter(|part| part.len() > 1)
                .collect();
            assert_eq!(bare, [">f{a:x,n:7}", ">g{}"], "{what}: {text}");
        }
    }

    #[test]
    fn the_prompt_may_open_reasoning() {
        let tools = r#""tool_calls": {"open": "<call>", "close": "</call>", "content": "json"}"#;
        let fields = format!(
            r#""thinking": {{"open_pattern": "(?:^|<think>\\s*)", "close": "</think>"}}, {tools}"#
        );
        let dialects = add(&described(&fields)).expect("no mistake");
        assert_eq!(
            read(&dialects, "Hm.</think>Yes.", "<think>", 3),
            ["~Hm.", "=Yes."]
        );
        assert_eq!(
            read(&dialects, "<think>Hm.</think>Yes.", "", 3),
            ["~Hm.", "=Yes."]
        );
        assert!(dialects.own()[0].may_begin_in_reasoning());
    }

    #[test]
    fn a_dialect_is_named_after_its_checkpoint() {
        let json =
            described(r#""tool_calls": {"open": "<call>", "close": "</call>", "content": "json"}"#);
        for (file, want) in [
            ("models/Fjord 2/tokenizer_config.json", "fjord-2"),
            ("tokenizer_config.json", "checkpoint"),
            ("fjord.json", "fjord"),
            ("x/Qwen3/tokenizer_config.json", "qwen3-checkpoint"),
            ("auto.json", "checkpoint"),
        ] {
            let mut dialects = Dialects::default();
            dialects.add(file, &json).expect(file);
            assert_eq!(dialects.own()[0].name, want, "{file}");
        }
    }

    #[test]
    fn the_end_of_a_turn_is_named_beside_the_description() {
        let fields = r#""tool_calls": {"open": "<call>", "close": "</call>", "content": "json"}"#;
        for end in [r#""<eos>""#, r#"{"content": "<eos>", "special": true}"#] {
            let json = described(fields).replacen(
                '{',
                &format!("{{\"eos_token\": {end}, \"chat_template\": \"x\", "),
                1,
            );
            assert_eq!(
                read(&add(&json).expect("no mistake"), "Yes.<eos>", "", 1),
                ["=Yes."]
            );
        }
        let bare = r#"{"start_anchor": "<bot>", "fields": {"tool_calls": {"open": "<call>", "close": "</call>", "content": "json"}}}"#;
        assert!(add(bare).is_ok(), "a description by itself");
    }

    #[test]
    fn what_the_notation_has_no_place_for_is_refused_in_one_line() {
        let field = |more: &str| {
            format!(r#""tool_calls": {{"open": "<call>", "close": "</call>", {more}}}"#)
        };
        let pattern = |open: &str, more: &str| {
            format!(
                r#""tool_calls": {{"open_pattern": "{open}", "close": "</call>", "transform": {FUNCTION}, {more}}}"#
            )
        };
        let tags = |pattern: &str| {
            format!(
                r#""tool_calls": {{"open_pattern": "<f=(?P<name>\\w+)>", "close": "</f>", "transform": {FUNCTION},
            "content": "xml-inline", "content_args": {{"tag_pattern": "{pattern}"}}}}"#
            )
        };
        let json = r#""content": "json""#;
        for (fields, want) in [
            (
                field(r#""content": "kv-lines""#),
                "tool_calls: content: arguments as 'kv-lines'; write the dialect as TOML",
            ),
            (
                field(r#""content": "yaml""#),
                "tool_calls: content: 'yaml' is unknown; expected json or xml-inline",
            ),
            (
                field(r#""content": "json", "colour": 1"#),
                "tool_calls: unknown key 'colour'; expected one of open,",
            ),
            (
                field(r#""content": "json", "open_pattern": "<c>""#),
                "tool_calls.open_pattern: 'open' is given too",
            ),
            (
                field(
                    r#""content": "json", "transform": {"name": "ping", "arguments": "{content}"}"#,
                ),
                "transform.name: a fixed text",
            ),
            (
                field(r#""content": "json", "transform": {"x": 1}"#),
                "tool_calls.transform: it gives no 'name' and 'arguments'",
            ),
            (
                field(
                    r#""content": "json", "transform": {"name": "{content.a.b}", "arguments": "{content}"}"#,
                ),
                "transform.name: a value deep inside the text",
            ),
            (
                field(
                    r#""content": "json", "transform": {"name": "{content.a}", "arguments": "{content}"}"#,
                ),
                "tool_calls: the tool's name and the arguments are in different places",
            ),
            (
                pattern(r"<f>(?!x)(?P<name>\\w+)", json),
                "open_pattern: a look at what must not follow",
            ),
            (
                pattern(r"(?i)<f>(?P<name>\\w+)", json),
                "open_pattern: flags",
            ),
            (
                pattern(r"<f>(?P<name>\\w+", json),
                "open_pattern: a '(' without its ')'",
            ),
            (
                pattern(r"<f>(?P<name>a|b)", json),
                "open_pattern: the group 'name' is more than the name",
            ),
            (
                pattern(r"<f>+(?P<name>\\w+)", json),
                "open_pattern: '>' repeats",
            ),
            (
                pattern(r"<f>\\bx(?P<name>\\w+)", json),
                "open_pattern: '\\b' cannot be expressed",
            ),
            (
                pattern(r"(?:^|<f>)(?P<name>\\w+)", json),
                "tool_calls: a call may begin without a marker",
            ),
            (
                pattern("<f>", json),
                "tool_calls: the group of the tool's name is missing",
            ),
            (
                tags("<p>(?P<value>.*?)</p>"),
                "tag_pattern: the notation cannot express the pattern of a parameter",
            ),
            (
                tags("<p=(?P<key>a|b)>(?P<value>.*?)</p>"),
                "tag_pattern: the notation cannot express the pattern of a parameter",
            ),
            (
                tags("<p=(?P<key>.*?)>(?P<value>.*?)(?:</p>|</q>)"),
                "tag_pattern: alternatives",
            ),
            (
                r#""content": {"close": "<end>"}"#.to_owned(),
                "fields: it has no 'tool_calls'",
            ),
            (
                format!("\"citations\": {{}}, {}", field(json)),
                "fields: unknown key 'citations'",
            ),
            (
                format!("\"thinking\": {{\"close\": \"</t>\"}}, {}", field(json)),
                "fields.thinking: reasoning without a marker",
            ),
            (
                format!("\"content\": {{\"content\": \"json\"}}, {}", field(json)),
                "fields.content: it is not text",
            ),
        ] {
            let why = add(&described(&fields)).map(|_| ()).expect_err(&fields);
            assert!(
                why.contains(want) && why.lines().count() == 1,
                "{fields}\n{why}\nnot {want}"
            );
            assert!(
                why.starts_with("models/Fjord 2/tokenizer_config.json line "),
                "{why}"
            );
        }
        for (json, want) in [
            ("{", "line 1: not JSON: "),
            (
                r#"{"chat_template": "x"}"#,
                "line 1: it has no response_template; expected a tokenizer_config.json that has one",
            ),
            (
                r#"{"response_schema": {"x-regex": "(.*)"}}"#,
                "line 1: it has a response_schema, which is the form before",
            ),
            (
                "{\n\"response_template\": 7}",
                "line 2: response_template: expected an object",
            ),
            (
                "{\"response_template\": {\"version\": 2, \"fields\": {}}}",
                "response_template.version: a version that is not known",
            ),
            (
                "{\n\n\"response_template\": {\"fields\": {\"tool_calls\": {\"open\": \"x\", \"close\": \"y\", \"content\": \"json\"}}}}",
                "line 3: response_template: call: 'x' is found in any text; expected a longer marker; write the dialect as TOML",
            ),
        ] {
            let why = add(json).map(|_| ()).expect_err(json);
            assert!(
                why.contains(want) && why.lines().count() == 1,
                "{json}\n{why}\nnot {want}"
            );
        }
    }

    #[test]
    fn hostile_files_are_refused_at_once() {
        let many = |n: usize, text: &str| text.repeat(n);
        let open = |pattern: &str| {
            described(&format!(
                r#""tool_calls": {{"open_pattern": "{pattern}", "close": "</c>", "content": "json"}}"#
            ))
        };
        for (json, want) in [
            (
                format!("{{{}}}", many(17 << 20, " ")),
                "the file is too long",
            ),
            (format!("{}{}", many(100_000, "{\"a\":"), "1"), "not JSON"),
            (
                open(&many(5000, "x")),
                "the string is too long; expected at most 4096 bytes",
            ),
            (
                open(&format!("<c>{}x{}", many(40, "("), many(40, ")"))),
                "more than 16 groups inside each other",
            ),
            (
                open(&format!("<c>{}", many(20, "(?:a|b)"))),
                "it has more than 16 spellings",
            ),
            (
                open(&format!("<c>{}", many(20, "a?"))),
                "it has more than 16 spellings",
            ),
            (open("<c>(?:a|b|(?:c|d|(?:e|f)*)*)*"), "a group repeats"),
            (open("<c>(a{9999}){9999}"), "'a' repeats"),
            (open("(a+)+$"), "'a' repeats"),
            (
                described(&format!(
                    r#""tool_calls": {{"open": [{}"<c>"], "close": "</c>", "content": "json"}}"#,
                    many(40, "\"<c>\",")
                )),
                "too many strings",
            ),
            (
                described(&format!(
                    r#""tool_calls": {{"open": "<{}>", "close": "</c>", "content": "json"}}"#,
                    many(300, "c")
                )),
                "a marker has more than 256 bytes",
            ),
        ] {
            let why = add(&json)
                .map(|_| ())
                .expect_err(&json[..json.len().min(80)]);
            assert!(
                why.contains(want) && why.lines().count() == 1,
                "{}\n{why}\nnot {want}",
                &json[..json.len().min(200)]
            );
        }
        // A pattern with every kind of repetition is read once and never used for matching.
        let json = open(&format!("<c>{}<d>", many(200, "(?:.|\\\\n)*?[^x]*")));
        assert_eq!(add(&json).map(|dialects| dialects.own().len()), Ok(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Any description is either rejected or converted to a dialect.
        #[test]
        fn no_description_panics(
            open in "[<>a|(){}\\[\\]?*+.\\\\sw:=!P^$⏎{name}]{0,24}",
            close in "[</c>|(){}?*\\\\s]{0,12}",
            tag in "[<p>=(?Pkeyvalu\\\\)*./\\[\\]^\"]{0,40}",
            literal in any::<bool>(),
        ) {
            let open = event::quoted(&open);
            let close = event::quoted(&close);
            let tag = event::quoted(&tag);
            let key = if literal { "open" } else { "open_pattern" };
            let field = format!(r#""tool_calls": {{"{key}": {open}, "close_pattern": {close}, "transform": {FUNCTION}"#);
            for more in [r#","content": "json"}"#.to_owned(), format!(r#","content": "xml-inline", "content_args": {{"tag_pattern": {tag}}}}}"#)] {
                let json = described(&format!("{field}{more}"));
                let toml = to_toml("x.json", &json, |_| false);
                if let (Ok(_), Ok(dialects)) = (toml, add(&json)) {
                    let text = dialects.own()[0].calls(&[PromptCall { id: "1", name: "f", arguments: r#"{"a": "x"}"# }]);
                    let _ = dialects.own()[0].example();
                    let look = Look::among(&dialects, dialects.own()[0].name).expect("the name");
                    let mut parser = Parser::new(Rc::new(look), None, None);
                    let mut found = Found::default();
                    text.split_inclusive(|_| true).for_each(|piece| parser.push(piece, &mut found));
                    parser.finish(false, &mut found);
                }
            }
        }
    }
}
