//! Calls as the models of a dialect write them: the same parts that they are read by, each with its
//! first spelling.

#[cfg(test)]
mod tests;

use crate::dialect::{CallKeys, CallPart, CallShape, Dialect, Form, NameForm, Section, StartTag};
use crate::turn::PromptCall;
use serde_json::Value;

impl Dialect {
    /// The text of the calls of one message.
    pub(crate) fn write(&self, calls: &[PromptCall<'_>]) -> String {
        if !self.framing.messages {
            return self
                .forms
                .first()
                .map(|form| form.write(calls))
                .unwrap_or_default();
        }
        // The prompt ends with the first message's role, so only the others have it here.
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
    /// The text of calls in messages with headers. What is between two ends the first, so that only
    /// the last has its own end.
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

    /// The text of calls in this form, which follow each other.
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

    /// Whether one unit of the form holds all calls of a message.
    pub(crate) fn holds_several(&self) -> bool {
        self.call.iter().any(|part| match part {
            CallPart::Calls(keys) => keys.shape != CallShape::Object,
            CallPart::Expression(form) => form.list || !form.separators.is_empty(),
            _ => false,
        })
    }

    /// One unit: one call, or all of them where the form holds several. The first of them is number
    /// `n`.
    fn unit(&self, calls: &[PromptCall<'_>], n: usize) -> String {
        self.call.iter().map(|part| part.write(calls, n)).collect()
    }
}

impl Section {
    fn write(&self, units: &[String]) -> String {
        let (open, close) = (
            self.open.first().unwrap_or(&""),
            self.close.first().unwrap_or(&""),
        );
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
                // Arguments that are not an object stay as they are: JSON is read in the place of
                // parameters too.
                Err(_) => arguments(call).to_owned(),
            },
            CallPart::Expression(form) => form.write(calls),
        }
    }
}

impl NameForm {
    fn write(self, call: &PromptCall<'_>, n: usize) -> String {
        match self {
            NameForm::Name => call.name.to_owned(),
            NameForm::Counted if is_counted(call.id, call.name) => call.id.to_owned(),
            NameForm::Counted => format!("functions.{}:{n}", call.name),
        }
    }
}

/// Whether an id is already a header that counts: `functions.NAME:COUNTER`.
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
            quick_xml::escape::escape(name),
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
            CallShape::Array | CallShape::Single | CallShape::Python => {
                format!("[{}]", several.join(", "))
            }
        }
    }

    fn object(&self, call: &PromptCall<'_>, n: usize) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let arguments = arguments(call);
        let key = |keys: &[&str]| text(keys.first().unwrap_or(&""));
        match self.shape {
            CallShape::Single => format!("{{{}: {arguments}}}", text(call.name)),
            CallShape::Python => {
                let (name, key) = (python(&Value::from(call.name)), |keys: &[&str]| {
                    key(keys).replace('"', "'")
                });
                let value: Value = serde_json::from_str(arguments).unwrap_or_default();
                format!(
                    "{{{}: {name}, {}: {}}}",
                    key(self.name),
                    key(self.arguments),
                    python(&value)
                )
            }
            CallShape::Object | CallShape::Array => {
                let id = match call.id {
                    _ if !self.write_id => String::new(),
                    "" => format!("{}: \"{n}\", ", key(self.id)),
                    id => format!("{}: {}, ", key(self.id), text(id)),
                };
                format!(
                    "{{{id}{}: {}, {}: {arguments}}}",
                    key(self.name),
                    text(call.name),
                    key(self.arguments)
                )
            }
        }
    }
}

/// The text of a call's arguments; a call without any has an empty object.
fn arguments<'a>(call: &PromptCall<'a>) -> &'a str {
    match call.arguments.trim() {
        "" => "{}",
        arguments => arguments,
    }
}

/// A value as Python writes it; numbers keep their digits.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let json = Value::from(&text[..]).to_string();
            format!(
                "'{}'",
                json[1..json.len() - 1]
                    .replace("\\\"", "\"")
                    .replace('\'', "\\'")
            )
        }
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(python).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(k, v)| format!("{}: {}", python(&Value::from(&k[..])), python(v)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}
