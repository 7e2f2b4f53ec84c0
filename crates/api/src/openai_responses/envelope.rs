//! Writes the response object, with every member that Open Responses requires.

use crate::answer::details;
use crate::answer::details::DetailMembers;
use crate::answer::failure::{FailedAnswer, OPENAI};
use crate::answer::step::RunningStatus;
use crate::answer::step::{AnswerOptions, Clock, ReportedUsage};
use event::{Object, Raw};

/// The state of a response.
pub(crate) enum ResponseOutcome<'a> {
    Queued,
    InProgress,
    Completed(ReportedUsage),
    /// Contains the reason.
    Incomplete(&'static str, ReportedUsage),
    Failed(&'a FailedAnswer),
    Cancelled,
}

impl From<RunningStatus> for ResponseOutcome<'_> {
    fn from(status: RunningStatus) -> Self {
        match status {
            RunningStatus::Queued => ResponseOutcome::Queued,
            RunningStatus::InProgress => ResponseOutcome::InProgress,
        }
    }
}

impl<'a> From<&'a FailedAnswer> for ResponseOutcome<'a> {
    fn from(failure: &'a FailedAnswer) -> Self {
        if failure.is_cancelled() {
            ResponseOutcome::Cancelled
        } else {
            ResponseOutcome::Failed(failure)
        }
    }
}

impl ResponseOutcome<'_> {
    /// Returns the name of the event that contains the response. There is no event for a cancelled
    /// response: openai-python and openai-node only know `response.cancelled` as a webhook, and
    /// openai-node throws an exception for it. The AI SDK treats a `response.failed` without an
    /// error as the end of the response.
    pub(crate) fn event(&self) -> &'static str {
        match self {
            ResponseOutcome::Queued => "response.queued",
            ResponseOutcome::InProgress => "response.in_progress",
            ResponseOutcome::Completed(_) => "response.completed",
            ResponseOutcome::Incomplete(..) => "response.incomplete",
            ResponseOutcome::Failed(_) | ResponseOutcome::Cancelled => "response.failed",
        }
    }

    fn status(&self) -> &'static str {
        match self {
            ResponseOutcome::Cancelled => "cancelled",
            other => other.event().trim_start_matches("response."),
        }
    }
}

/// The members that are the same in every event with the response.
pub(crate) struct ResponseEnvelope {
    /// The response's id without a prefix, from which item ids are derived.
    pub id: String,
    /// The response id that the provider assigned.
    own_id: Option<String>,
    clock: Option<Clock>,
    created: u64,
    model: String,
    /// Members that repeat the request: JSON, separated by commas.
    echo: String,
    /// The member `store`, as JSON, for a response whose id the provider assigned.
    store: String,
    is_stored: bool,
    is_background: bool,
    conversation: Option<String>,
    /// Members of the provider's response, which override the repeated ones.
    pub members: DetailMembers,
    /// The provider's own token counts.
    pub counts: DetailMembers,
}

/// Members that repeat the request, with their defaults. The default also replaces a client's
/// `null` where `null` is not allowed. Open Responses requires a number or string for some members
/// that are optional in OpenAI's own schema.
const ECHO: [(&str, &str); 20] = [
    ("previous_response_id", "null"),
    ("instructions", "null"),
    ("tools", "[]"),
    ("tool_choice", "\"auto\""),
    ("truncation", "\"disabled\""),
    ("parallel_tool_calls", "true"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("top_p", "1"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("top_logprobs", "0"),
    ("temperature", "1"),
    ("reasoning", "null"),
    ("user", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("service_tier", "\"default\""),
    ("metadata", "{}"),
    ("safety_identifier", "null"),
    ("prompt_cache_key", "null"),
];

impl ResponseEnvelope {
    pub(crate) fn new(options: &AnswerOptions) -> ResponseEnvelope {
        let echo = event::object(|o| {
            for (name, default) in ECHO {
                let sent = options.echo.iter().find(|(key, _)| key == name);
                let sent = sent
                    .and_then(|(_, json)| Raw::parse(json).ok())
                    .filter(|value| !value.is_null());
                match sent {
                    Some(value) => member(o, name, value),
                    None => _ = o.raw(name, default),
                }
            }
        });
        let echo = echo[1..echo.len() - 1].to_owned();
        let store = options
            .echo
            .iter()
            .find(|(name, json)| name == "store" && json != "null");
        ResponseEnvelope {
            store: store.map_or("true", |(_, json)| json).to_owned(),
            id: options.id.clone(),
            own_id: options.provider_id.clone(),
            clock: options.clock.clone(),
            is_stored: options.is_stored,
            is_background: options.is_background,
            conversation: options.conversation.clone(),
            created: options.created,
            model: options.model.clone(),
            echo,
            members: DetailMembers::new(),
            counts: DetailMembers::new(),
        }
    }

    /// Sets the response id that the provider assigned.
    pub(crate) fn set_id(&mut self, id: &str) {
        self.own_id = Some(id.to_owned());
    }

    /// Sets the model's name, unless `model` is empty.
    pub(crate) fn set_model(&mut self, model: &str) {
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
    }

    /// Returns the members about the response's storage, as JSON. If the provider assigned the id,
    /// it may have stored the response.
    fn own(&self) -> String {
        event::object(|o| {
            match self.own_id {
                _ if self.is_stored => o.bool("store", true),
                Some(_) => o.raw("store", &self.store),
                None => o.bool("store", false),
            };
            o.bool("background", self.is_background);
            if let Some(id) = &self.conversation {
                o.object("conversation", |o| _ = o.str("id", id));
            }
        })
    }

    /// Appends the response. `output` contains its items, separated by commas.
    pub(crate) fn write(&self, outcome: &ResponseOutcome<'_>, output: &[u8], out: &mut Vec<u8>) {
        let mut o = Object::open(out);
        let made = || format!("resp_{}", self.id);
        o.str("id", &self.own_id.clone().unwrap_or_else(made))
            .str("object", "response");
        o.int("created_at", self.created)
            .str("status", outcome.status());
        match self
            .clock
            .as_ref()
            .filter(|_| matches!(outcome, ResponseOutcome::Completed(_)))
        {
            Some(clock) => o.int("completed_at", clock.now()),
            None => o.raw("completed_at", "null"),
        };
        o.str("model", &self.model)
            .raw("output", &format!("[{}]", String::from_utf8_lossy(output)));
        match outcome {
            ResponseOutcome::Failed(failure) => o.object("error", |o| {
                o.str("code", &code(failure))
                    .str("message", &failure.message);
            }),
            _ => o.raw("error", "null"),
        };
        match outcome {
            ResponseOutcome::Incomplete(reason, _) => {
                o.object("incomplete_details", |o| _ = o.str("reason", reason))
            }
            _ => o.raw("incomplete_details", "null"),
        };
        match outcome {
            ResponseOutcome::Completed(usage) | ResponseOutcome::Incomplete(_, usage) => o.raw(
                "usage",
                &details::counts(&self.counts, |o| counts(o, usage)),
            ),
            _ => o.raw("usage", "null"),
        };
        o.close();
        out.pop();
        out.push(b',');
        let own = self.own();
        let echo = format!("{{{},{}", self.echo, &own[1..]);
        if self.members.is_empty() {
            out.extend_from_slice(&echo.as_bytes()[1..]);
        } else {
            let mut echo = details::members(echo.as_bytes());
            let mut members = self.members.clone();
            if self.is_stored {
                members.retain(|name, _| !OWN.contains(&name.as_str()));
            }
            merge_over(&mut echo, &members);
            out.extend_from_slice(&serde_json::Value::from(echo).to_string().as_bytes()[1..]);
        }
    }
}

/// The members about a response's storage. For a response stored here, the provider's values do not
/// concern the client.
const OWN: [&str; 4] = [
    "store",
    "background",
    "conversation",
    "previous_response_id",
];

/// Inserts members, replacing those with the same name.
fn merge_over(into: &mut DetailMembers, members: &DetailMembers) {
    into.extend(
        members
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
}

/// Returns the `error.code` of a failed response. Codex retries unless it knows the code
/// (`codex-api/src/sse/responses.rs`).
fn code(failure: &FailedAnswer) -> std::borrow::Cow<'_, str> {
    let code = match (failure.code.as_str(), failure.status) {
        ("context_overflow", _) => "context_length_exceeded",
        // The server was stopped during the response. The official clients accept any code.
        ("interrupted", _) => "interrupted",
        (_, 402) => "insufficient_quota",
        _ if failure.is_quota() => "insufficient_quota",
        (_, 400 | 413 | 422) => "invalid_prompt",
        (_, status) => match failure.provider_text(OPENAI, "code") {
            Some(code) => return code.into(),
            None if status == 429 => "rate_limit_exceeded",
            None => "server_error",
        },
    };
    code.into()
}

/// Writes all five counts: Codex drops the end of a response if one is missing.
fn counts(o: &mut Object<'_>, usage: &ReportedUsage) {
    o.int("input_tokens", usage.input)
        .object("input_tokens_details", |o| usage.cache(o));
    o.int("output_tokens", usage.output);
    o.object("output_tokens_details", |o| {
        _ = o.int("reasoning_tokens", usage.reasoning)
    });
    o.int("total_tokens", usage.total);
}

/// Writes a member as the client sent it, plus the inner members that are optional in a request but
/// required in a response.
fn member(o: &mut Object<'_>, name: &str, value: Raw<'_>) {
    match name {
        "tools" if value.is_array() => {
            o.array(name, |a| {
                for tool in value.items() {
                    let is_function = tool.get_str("type").is_some_and(|t| t == "function");
                    let wanted: &[_] = if is_function {
                        &["description", "parameters", "strict"]
                    } else {
                        &[]
                    };
                    a.object(|o| completed(o, tool, wanted, "null"));
                }
            });
        }
        "text" if value.is_object() => {
            o.object(name, |o| {
                completed(o, value, &["format"], r#"{"type":"text"}"#)
            });
        }
        "reasoning" if value.is_object() => {
            o.object(name, |o| {
                completed(o, value, &["effort", "summary"], "null")
            });
        }
        _ => _ = o.minified(name, value.text()),
    }
}

/// Copies the members of `value`, and adds missing members of `wanted` with the value `default`.
fn completed(o: &mut Object<'_>, value: Raw<'_>, wanted: &[&str], default: &str) {
    for (key, value) in value.entries() {
        o.minified(&key, value.text());
    }
    for key in wanted.iter().filter(|key| value.get(key).is_none()) {
        o.raw(key, default);
    }
}
