//! Writes calls as the models of a dialect do: from the same parts that calls are parsed by, each
//! with its first spelling.

use crate::dialect::{
    ArgumentStyle, CallKeys, CallPart, CallShape, Dialect, ExpressionForm, Form, NameForm,
    ParamForm, ParamPiece, Section, StartTag, TagStyle,
};
use crate::params::element_name;
use event::{Raw, quoted};
use quick_xml::escape::escape;
use serde_json::{Map, Value};
use std::fmt::Display;

/// A call of an earlier turn.
#[derive(Clone, Copy, Debug)]
pub struct PromptCall<'a> {
    /// The call's id; empty if the call has no id.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments as the text of a JSON object.
    pub arguments: &'a str,
}

impl Dialect {
    /// Returns the text of one message's calls.
    pub(crate) fn write(&self, calls: &[PromptCall<'_>]) -> String {
        if !self.framing.messages {
            return self
                .forms
                .first()
                .map(|form| form.write(calls))
                .unwrap_or_default();
        }
        // The prompt ends with the first message's role, so only later messages include the role.
        let form = self.forms.first();
        if let Some(form) = form.filter(|form| form.body().is_some()) {
            return form.write_messages(calls);
        }
        let body = |call: &PromptCall<'_>| match form {
            Some(form) => format!(
                " to={}<|message|>{}",
                call.name,
                form.write(std::slice::from_ref(call))
            ),
            None => {
                let arguments = arguments(call);
                format!(
                    "<|channel|>commentary to=functions.{} <|constrain|>json<|message|>{arguments}<|call|>",
                    call.name
                )
            }
        };
        let between = if form.is_some() {
            "<|eom|><|start|>assistant"
        } else {
            "<|start|>assistant"
        };
        calls.iter().map(body).collect::<Vec<_>>().join(between)
    }
}

impl Form {
    /// Returns the text of calls in messages with headers. The separator between two messages ends
    /// the first, so only the last message has its own end marker.
    fn write_messages(&self, calls: &[PromptCall<'_>]) -> String {
        let end = match self.call.last() {
            Some(CallPart::Mark([end, ..])) => *end,
            _ => "",
        };
        let units: Vec<String> = (0..calls.len())
            .map(|n| self.unit(&calls[n..=n], n))
            .collect();
        let bodies: Vec<&str> = units
            .iter()
            .map(|unit| unit.strip_suffix(end).unwrap_or(unit))
            .collect();
        bodies.join(self.between) + if units.is_empty() { "" } else { end }
    }

    /// Returns the text of consecutive calls in this form.
    pub(crate) fn write(&self, calls: &[PromptCall<'_>]) -> String {
        if calls.is_empty() {
            return String::new();
        }
        let units: Vec<String> = if self.holds_several() {
            vec![self.unit(calls, 0)]
        } else {
            (0..calls.len())
                .map(|n| self.unit(&calls[n..=n], n))
                .collect()
        };
        match &self.section {
            Some(section) => section.write(&units),
            None => units.join(self.between),
        }
    }

    /// Whether one unit of the form contains all calls of a message.
    pub(crate) fn holds_several(&self) -> bool {
        self.call.iter().any(|part| match part {
            CallPart::Calls(keys) => keys.shape != CallShape::Object,
            CallPart::Expression(form) => form.list || !form.separators.is_empty(),
            _ => false,
        })
    }

    /// Returns one unit: one call, or all calls if the form allows several in a unit. The first
    /// call has number `n`.
    fn unit(&self, calls: &[PromptCall<'_>], n: usize) -> String {
        self.call.iter().map(|part| part.write(calls, n)).collect()
    }
}

impl Section {
    fn write(&self, units: &[String]) -> String {
        let open = self.open.first().unwrap_or(&"");
        let close = self.close.first().unwrap_or(&"");
        format!(
            "{open}{}{}{}{close}",
            self.inside,
            units.join(self.between),
            self.inside
        )
    }
}

impl CallPart {
    fn write(&self, calls: &[PromptCall<'_>], n: usize) -> String {
        let Some(call) = calls.first() else {
            return String::new();
        };
        match self {
            CallPart::Mark(marks) | CallPart::Maybe { marks, write: true } => {
                marks.first().copied().unwrap_or_default().to_owned()
            }
            CallPart::Maybe { write: false, .. } | CallPart::Count | CallPart::Author { .. } => {
                String::new()
            }
            CallPart::Space(space) => (*space).to_owned(),
            CallPart::Name { header, .. } => header.write(call, n),
            CallPart::Id { .. } => call.id.to_owned(),
            CallPart::Tag(tag) => tag.write(call.name, n),
            CallPart::Arguments | CallPart::Free(_) => arguments(call).to_owned(),
            CallPart::Calls(keys) => keys.write(calls),
            CallPart::Params(form) => match serde_json::from_str(arguments(call)) {
                Ok(members) => {
                    let mut out = String::new();
                    form.write(&members, &mut out);
                    out
                }
                // Arguments that are not an object are written unchanged: the parser also accepts
                // JSON in place of parameters.
                Err(_) => arguments(call).to_owned(),
            },
            CallPart::Expression(form) => form.write(calls),
        }
    }
}

impl NameForm {
    fn write(self, call: &PromptCall<'_>, n: usize) -> String {
        match self {
            NameForm::Bare => call.name.to_owned(),
            NameForm::Counted if is_counted(call.id, call.name) => call.id.to_owned(),
            NameForm::Counted => format!("functions.{}:{n}", call.name),
        }
    }
}

/// Whether an id already is a header of the form `functions.NAME:COUNTER`.
fn is_counted(id: &str, name: &str) -> bool {
    let count = id
        .strip_prefix("functions.")
        .and_then(|rest| rest.strip_prefix(name))
        .and_then(|rest| rest.strip_prefix(':'));
    count.is_some_and(|count| !count.is_empty() && count.bytes().all(|c| c.is_ascii_digit()))
}

impl StartTag {
    fn write(&self, name: &str, n: usize) -> String {
        let open = self.open.first().unwrap_or(&"");
        let rest = self.rest.replace("{n}", &(n + 1).to_string());
        format!(
            "{open} {}=\"{}\"{rest}{}",
            self.name,
            escape(name),
            self.end
        )
    }
}

impl CallKeys {
    fn write(&self, calls: &[PromptCall<'_>]) -> String {
        let several: Vec<String> = calls
            .iter()
            .enumerate()
            .map(|(n, call)| self.object(call, n))
            .collect();
        match self.shape {
            CallShape::Object => several.concat(),
            CallShape::Array | CallShape::Single | CallShape::PythonArray => {
                format!("[{}]", several.join(", "))
            }
        }
    }

    fn object(&self, call: &PromptCall<'_>, n: usize) -> String {
        let arguments = arguments(call);
        let notation = match self.shape {
            CallShape::PythonArray => ValueNotation::Python('\''),
            _ => ValueNotation::Json,
        };
        let text = |text: &str| notation.string(text);
        let key = |keys: &[&str]| text(keys.first().unwrap_or(&""));
        let name = text(call.name);
        let id = match call.id {
            _ if !self.write_id => String::new(),
            "" => format!("{}: \"{n}\", ", key(self.id)),
            id => format!("{}: {}, ", key(self.id), text(id)),
        };
        let arguments = match self.shape {
            CallShape::Single => return format!("{{{name}: {arguments}}}"),
            CallShape::PythonArray => {
                let value = Raw::parse(arguments).ok();
                value.map_or_else(|| "None".to_owned(), |value| notation.write(value))
            }
            CallShape::Object | CallShape::Array => arguments.to_owned(),
        };
        format!(
            "{{{id}{}: {name}, {}: {arguments}}}",
            key(self.name),
            key(self.arguments)
        )
    }
}

/// Returns the text of a call's arguments; an empty object if there are none.
fn arguments<'a>(call: &PromptCall<'a>) -> &'a str {
    match call.arguments.trim() {
        "" => "{}",
        arguments => arguments,
    }
}

/// The notation in which values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueNotation {
    /// JSON with a space after each comma and colon, as in the models' own templates.
    Json,
    /// Python, with strings enclosed in two of this quotation mark.
    Python(char),
    /// Gemma's notation, with strings enclosed in two of this delimiter.
    Gemma(&'static str),
}

impl ValueNotation {
    /// Returns a value in this notation. Numbers keep their digits.
    pub(crate) fn write(self, value: Raw<'_>) -> String {
        let between = self.between();
        if value.is_object() {
            let members = value.entries().map(|(key, value)| self.member(&key, value));
            return format!("{{{}}}", join(members, between));
        }
        if value.is_array() {
            let items = value.items().map(|item| self.write(item));
            return format!("[{}]", join(items, between));
        }
        match (self, value.text()) {
            (ValueNotation::Python(_), "null") => "None".to_owned(),
            (ValueNotation::Python(_), "true") => "True".to_owned(),
            (ValueNotation::Python(_), "false") => "False".to_owned(),
            (_, text) => value
                .str()
                .map_or_else(|| text.to_owned(), |s| self.string(&s)),
        }
    }

    /// Returns the text between two values.
    fn between(self) -> &'static str {
        match self {
            ValueNotation::Gemma(_) => ",",
            _ => ", ",
        }
    }

    /// Returns a member of an object.
    fn member(self, key: &str, value: Raw<'_>) -> String {
        let value = self.write(value);
        match self {
            ValueNotation::Gemma(_) => {
                let own = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
                let is_bare = !key.is_empty() && key.len() <= 128 && key.chars().all(own);
                let key = if is_bare {
                    key.to_owned()
                } else {
                    self.string(key)
                };
                format!("{key}:{value}")
            }
            _ => format!("{}: {value}", self.string(key)),
        }
    }

    /// Returns a string. Python uses the same escapes as JSON.
    fn string(self, text: &str) -> String {
        let json = quoted(text);
        match self {
            ValueNotation::Python('\'') => {
                let inside = json[1..json.len() - 1].replace("\\\"", "\"");
                format!("'{}'", inside.replace('\'', "\\'"))
            }
            ValueNotation::Gemma(quote) if text.contains(quote) => json.replace('<', "\\u003c"),
            ValueNotation::Gemma(quote) => format!("{quote}{text}{quote}"),
            _ => json,
        }
    }
}

// Writes the parameters of a call as the models of a dialect do.

impl ParamForm {
    /// Appends the parameters of one call.
    pub(crate) fn write(&self, arguments: &Map<String, Value>, out: &mut String) {
        for (name, value) in arguments {
            for piece in self.written {
                match (*piece, self.style) {
                    (ParamPiece::Text(text), _) => out.push_str(text),
                    (ParamPiece::Slot("name"), TagStyle::Attribute { .. }) => {
                        out.push_str(&escape(name))
                    }
                    (ParamPiece::Slot("name"), _) => out.push_str(name),
                    (ParamPiece::Slot("type"), _) => out.push_str(kind(value)),
                    (ParamPiece::Slot("is_string"), _) => {
                        out.push_str(if value.is_string() { "true" } else { "false" })
                    }
                    (ParamPiece::Slot(_), TagStyle::Element { prefix }) => {
                        self.elements(prefix, value, out)
                    }
                    (ParamPiece::Slot(_), _) => self.text(value, out),
                }
            }
        }
    }

    fn text(&self, value: &Value, out: &mut String) {
        match value {
            Value::String(text) if self.is_xml => out.push_str(&escape(text)),
            Value::String(text) => out.push_str(text),
            other => out.push_str(&other.to_string()),
        }
    }

    /// Appends objects and arrays as elements. An object with a key that cannot be an element name
    /// is written as JSON.
    fn elements(&self, prefix: &str, value: &Value, out: &mut String) {
        let mut element = |name: &str, value: &Value| {
            out.extend([prefix, "<", name, ">"]);
            self.elements(prefix, value, out);
            out.extend([prefix, "</", name, ">"]);
        };
        match value {
            Value::Object(members)
                if members
                    .keys()
                    .all(|key| !key.is_empty() && element_name(key) == key) =>
            {
                members
                    .iter()
                    .for_each(|(name, value)| element(name, value));
            }
            Value::Array(items) => items.iter().for_each(|item| element("item", item)),
            _ => self.text(value, out),
        }
    }
}

/// Returns the name of a value's JSON type.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

// Calls as expressions, as a model would write them.

impl ExpressionForm {
    /// Returns the text of calls. Arguments that are not a JSON object are omitted. The text parses
    /// back to the same calls, with every digit of numbers: an argument whose name is not a Python
    /// identifier is written as `**{"a b": 1}`, and a string that contains Gemma's delimiter as a
    /// JSON string with `\u003c` for `<`.
    pub(crate) fn write(&self, calls: &[PromptCall<'_>]) -> String {
        let (open, between, close) = match (self.list, self.separators.first()) {
            (true, _) => ("[", ", ".to_owned(), "]"),
            (false, separator) => ("", separator.unwrap_or(&'\n').to_string(), ""),
        };
        format!(
            "{open}{}{close}",
            join(calls.iter().map(|call| self.call(call)), &between)
        )
    }

    fn call(&self, call: &PromptCall<'_>) -> String {
        let arguments = Raw::parse(call.arguments.trim()).ok();
        let members = arguments.iter().flat_map(|a| a.entries());
        let (arguments, close) = match self.arguments {
            ArgumentStyle::Python => (
                join(members.map(|(key, value)| argument(&key, value)), ", "),
                ')',
            ),
            ArgumentStyle::Gemma { quote } => {
                let notation = ValueNotation::Gemma(quote);
                let members = members.map(|(key, value)| notation.member(&key, value));
                (join(members, notation.between()), '}')
            }
        };
        format!(
            "{}{}{}{arguments}{close}",
            self.prefix, call.name, self.open
        )
    }
}

fn join(parts: impl Iterator<Item = impl Display>, between: &str) -> String {
    let mut out = String::new();
    for (n, part) in parts.enumerate() {
        out.push_str(if n > 0 { between } else { "" });
        out.push_str(&part.to_string());
    }
    out
}

/// Returns an argument of a Python call.
fn argument(key: &str, value: Raw<'_>) -> String {
    let value = ValueNotation::Python('"').write(value);
    let own = |c: char| c.is_alphanumeric() || c == '_';
    let name = key.len() <= 128
        && key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key.chars().all(own);
    if name {
        format!("{key}={value}")
    } else {
        format!("**{{{}: {value}}}", quoted(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: [PromptCall<'static>; 2] = [
        PromptCall {
            id: "x1",
            name: "f",
            arguments: r#"{"a": 1}"#,
        },
        PromptCall {
            id: "x2",
            name: "g",
            arguments: "",
        },
    ];

    fn written(name: &str) -> String {
        Dialect::named(name)
            .expect("a dialect of the table")
            .write(&CALLS)
    }

    #[test]
    fn json_with_the_name_inside() {
        let tag = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
        for name in ["hermes", "granite4", "ernie45"] {
            assert_eq!(written(name), tag, "{name}");
        }
        let array = r#"[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]"#;
        for (name, open, close) in [
            ("mistral-v3-json-array", "[TOOL_CALLS] ", ""),
            ("granite3", "<|tool_call|>", ""),
            ("jamba", "<tool_calls>", "</tool_calls>"),
            ("hunyuan-a13b", "<tool_calls>", "</tool_calls>"),
            ("apriel", "<tool_calls>", "</tool_calls>"),
            ("nemotron-toolcall", "<TOOLCALL>", "</TOOLCALL>"),
            ("phi4-mini", "functools", ""),
            ("firefunction-v2", "functools", ""),
            ("xlam", "", ""),
        ] {
            assert_eq!(written(name), format!("{open}{array}{close}"), "{name}");
        }
        for (name, open, close, key, between) in [
            (
                "lmstudio",
                "[TOOL_REQUEST]",
                "[END_TOOL_REQUEST]",
                "arguments",
                "\n",
            ),
            (
                "longcat",
                "<longcat_tool_call>",
                "</longcat_tool_call>",
                "arguments",
                "\n",
            ),
            ("granite-20b-fc", "<function_call> ", "", "arguments", "\n"),
            (
                "internlm2",
                "<|action_start|> <|plugin|>\n",
                "<|action_end|>",
                "parameters",
                "\n",
            ),
            ("llama3-json", "", "", "parameters", "; "),
            (
                "inkling",
                "<|message_model|><|content_invoke_tool_json|>",
                "<|end_message|>",
                "args",
                "",
            ),
            (
                "gigachat3",
                "<|message_sep|>\n\nfunction call<|role_sep|>\n",
                "",
                "arguments",
                "",
            ),
            ("fenced-json", "```json\n", "\n```", "arguments", "\n"),
        ] {
            let want = [("f", "{\"a\": 1}"), ("g", "{}")]
                .map(|(f, a)| format!("{open}{{\"name\": \"{f}\", \"{key}\": {a}}}{close}"));
            assert_eq!(written(name), want.join(between), "{name}");
        }
    }

    #[test]
    fn json_and_elements_in_lines() {
        for (name, want) in [
            (
                "minimax-m1",
                "<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n{\"name\": \"g\", \"arguments\": {}}\n</tool_calls>",
            ),
            (
                "longcat2",
                "<longcat_tool_call>f\n<longcat_arg_key>a</longcat_arg_key>\n<longcat_arg_value>1</longcat_arg_value>\n</longcat_tool_call>\n\
             <longcat_tool_call>g\n</longcat_tool_call>",
            ),
        ] {
            assert_eq!(written(name), want, "{name}");
        }
    }

    #[test]
    fn other_json() {
        for (name, want) in [
            (
                "sarashina",
                "[{'name': 'f', 'arguments': {'a': 1}}, {'name': 'g', 'arguments': {}}]",
            ),
            (
                "apertus",
                r#"<|tools_prefix|>[{"f": {"a": 1}}, {"g": {}}]<|tools_suffix|>"#,
            ),
            (
                "cohere-command",
                "<|START_ACTION|>\n[{\"tool_call_id\": \"x1\", \"tool_name\": \"f\", \"parameters\": {\"a\": 1}}, \
             {\"tool_call_id\": \"x2\", \"tool_name\": \"g\", \"parameters\": {}}]\n<|END_ACTION|>",
            ),
            (
                "cohere-r-plus",
                "Action:\n```json\n[{\"tool_name\": \"f\", \"parameters\": {\"a\": 1}}, \
             {\"tool_name\": \"g\", \"parameters\": {}}]\n```",
            ),
        ] {
            assert_eq!(written(name), want, "{name}");
        }
    }

    #[test]
    fn names_in_headers() {
        for (name, want) in [
            (
                "mistral-v11-args",
                r#"[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}"#,
            ),
            (
                "mistral-v13-compact",
                r#"[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}"#,
            ),
            (
                "deepseek-v3",
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n\
             <｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            ),
            (
                "deepseek-v31",
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>\
             <｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            ),
            (
                "kimi-k2",
                "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>\
             <|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            ),
            (
                "functionary-v3.1",
                r#"<function=f>{"a": 1}</function><function=g>{}</function>"#,
            ),
            ("functionary-v3.2", ">>>f\n{\"a\": 1}>>>g\n{}"),
            (
                "harmony",
                "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>\
             <|start|>assistant<|channel|>commentary to=functions.g <|constrain|>json<|message|>{}<|call|>",
            ),
            (
                "solar-open",
                "<|tool_calls|><|tool_call:begin|>x1<|tool_call:name|>f<|tool_call:args|>{\"a\": 1}<|tool_call:end|>\
             <|tool_call:begin|>x2<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|><|calls|>",
            ),
            (
                "beam",
                " to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name=\"a\">\n1\n</rfl:parameter><|end|>\
             <|start|>assistant to=g<|channel|>analysis <|constrain|>xml<|message|><|call|>",
            ),
            (
                "tool-name-tag",
                "<tool name=\"f\">{\"a\": 1}</tool>\n<tool name=\"g\">{}</tool>",
            ),
            (
                "react",
                "Action: f\nAction Input: {\"a\": 1}\nAction: g\nAction Input: {}",
            ),
            (
                "qwen-agent",
                "✿FUNCTION✿: f\n✿ARGS✿: {\"a\": 1}\n✿FUNCTION✿: g\n✿ARGS✿: {}",
            ),
            (
                "langchain-xml",
                "<tool>f</tool><tool_input>{\"a\": 1}</tool_input>\n<tool>g</tool><tool_input>{}</tool_input>",
            ),
        ] {
            assert_eq!(written(name), want, "{name}");
        }
        assert_eq!(written("deepseek-r1"), written("deepseek-v3"));
    }

    #[test]
    fn expressions() {
        for (name, want) in [
            ("pythonic", "[f(a=1), g()]"),
            (
                "llama4-pythonic",
                "<|python_start|>[f(a=1), g()]<|python_end|>",
            ),
            ("lfm2", "<|tool_call_start|>[f(a=1), g()]<|tool_call_end|>"),
            (
                "olmo3-pythonic",
                "<function_calls>\nf(a=1)\ng()\n</function_calls>",
            ),
            ("tool-code", "```tool_code\nf(a=1)\ng()\n```"),
            (
                "functiongemma",
                "<start_function_call>call:f{a:1}<end_function_call><start_function_call>call:g{}<end_function_call>",
            ),
            (
                "gemma4",
                "<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{}<tool_call|>",
            ),
        ] {
            assert_eq!(written(name), want, "{name}");
        }
    }

    #[test]
    fn an_id_that_counts_already_is_kept() {
        let call = PromptCall {
            id: "functions.f:7",
            ..CALLS[0]
        };
        let text = Dialect::named("kimi-k2")
            .expect("a dialect of the table")
            .write(&[call]);
        assert!(text.contains("functions.f:7<"), "{text}");
    }

    #[test]
    fn no_digit_is_lost() {
        let call = PromptCall {
            arguments: r#"{"a": 12345678901234567890123, "b": 1.10, "c": -0}"#,
            ..CALLS[0]
        };
        for dialect in Dialect::all() {
            let text = dialect.write(&[call]);
            for number in ["12345678901234567890123", "1.10", "-0"] {
                assert!(text.contains(number), "{}: {text}", dialect.name);
            }
        }
    }
}
