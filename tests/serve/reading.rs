//! What a client understands of an answer, whatever the API it came in, and what the answer breaks
//! of that API's rules.

use serde_json::Value;

/// An answer as a client reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// The answer's own id.
    pub id: String,
    pub model: String,
    pub choices: Vec<Choice>,
    pub usage: Option<Usage>,
    pub ending: Ending,
    /// Whether the upstream took a call back, of which a client may have a part already.
    pub has_withdrawn: bool,
    /// The ids of the calls of the service, with their places among the steps, where results come
    /// apart.
    pub service: Vec<(String, usize)>,
    /// Each rule of the API that is broken.
    pub wrong: Vec<String>,
}

/// One choice of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    pub number: u64,
    pub reasoning: String,
    pub text: String,
    pub refusal: String,
    /// Text and refusals in their order, for an API that has one kind of text.
    pub said: String,
    pub calls: Vec<Call>,
    /// The calls that the service ran, in the order in which they began.
    pub steps: Vec<Step>,
    /// The types of its parts in order, where the API has an order.
    pub order: Vec<String>,
    pub finish: Option<Finish>,
}

impl Choice {
    /// Whether its last call is not complete.
    pub(crate) fn is_cut(&self) -> bool {
        self.calls.iter().any(|call| !call.is_finished)
    }
}

/// One call of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
    /// Whether a client of this API would take it for complete, and run it.
    pub is_finished: bool,
}

/// A call that the service ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub name: String,
    /// A value.
    pub arguments: Value,
    /// What came of it, and whether that is an error; `None` without a result.
    pub result: Option<(String, bool)>,
}

impl Call {
    /// The arguments as a value, so that white space and escapes do not count.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.arguments)
            .unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }
}

/// Why a choice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    ToolCalls,
    Length,
    Filter,
}

/// How an answer ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Ending {
    /// Without an end.
    #[default]
    Open,
    /// With the end mark of its API.
    Clean,
    /// With an error, here its sentence.
    Failed(String),
}

/// Counts of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub input: u64,
    pub output: u64,
    pub total: u64,
    pub cached: u64,
    pub reasoning: u64,
}

impl Reading {
    /// The choice with this number.
    pub(crate) fn choice(&mut self, number: u64) -> &mut Choice {
        let at = self.choices.partition_point(|c| c.number < number);
        if self.choices.get(at).is_none_or(|c| c.number != number) {
            self.choices.insert(
                at,
                Choice {
                    number,
                    ..Choice::default()
                },
            );
        }
        &mut self.choices[at]
    }

    /// Notes a broken rule unless `holds`.
    pub(crate) fn rule(&mut self, holds: bool, what: impl AsRef<str>) {
        if !holds {
            self.wrong.push(what.as_ref().to_owned());
        }
    }

    /// The rules that hold for every API: ids of calls are distinct and not empty, names are not
    /// empty, finished calls have an object, and the finish reason fits the content.
    pub(crate) fn check(&mut self) {
        let mut wrong = Vec::new();
        for choice in &self.choices {
            let mut rule = |holds: bool, what: String| (!holds).then(|| wrong.push(what));
            for (at, call) in choice.calls.iter().enumerate() {
                rule(
                    !call.id.is_empty() && !call.name.is_empty(),
                    format!("call {at} has no id or no name"),
                );
                rule(
                    choice.calls[..at].iter().all(|c| c.id != call.id),
                    format!("two calls have the id {:?}", call.id),
                );
                rule(
                    !call.is_finished || call.value().is_object(),
                    format!("finished call without an object: {call:?}"),
                );
            }
            let cut = matches!(choice.finish, Some(Finish::Length | Finish::Filter));
            let finished = choice.calls.iter().filter(|c| c.is_finished).count();
            rule(
                choice.finish.is_none() || cut || finished == choice.calls.len(),
                "a cut call, but no cut".to_owned(),
            );
            let fits = match choice.finish {
                Some(Finish::ToolCalls) => finished > 0,
                Some(Finish::Stop) => choice.calls.is_empty(),
                _ => true,
            };
            rule(
                fits,
                format!(
                    "the finish reason {:?} beside {} calls",
                    choice.finish,
                    choice.calls.len()
                ),
            );
        }
        self.wrong.extend(wrong);
    }
}

/// The string member of an object, empty without it.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The number at a path, in the counts of tokens.
pub(crate) fn count(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter()
        .try_fold(value, |value, key| value.get(key))?
        .as_u64()
}

/// Whether a value holds null anywhere.
pub(crate) fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}
