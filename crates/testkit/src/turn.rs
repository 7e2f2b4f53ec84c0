//! A model's output in one turn, as the real APIs send it: with ids, token counts and the other
//! members that a test does not set.

mod chat;
mod cohere;
mod gemini;
mod messages;
mod ollama;
mod responses;

pub use chat::{chat_chunk, chat_end};

use crate::request::{JSON, Request, SSE};
use serde_json::Value;

/// The protocol of a provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's chat.
    Ollama,
    /// Mistral's chat completions.
    Mistral,
    /// Cohere's chat, version 2.
    Cohere,
}

impl Protocol {
    /// All protocols, with the names that `--api` accepts.
    pub const ALL: [(&'static str, Protocol); 7] = [
        ("openai-chat", Protocol::Chat),
        ("openai-responses", Protocol::Responses),
        ("anthropic", Protocol::Messages),
        ("gemini", Protocol::Gemini),
        ("ollama", Protocol::Ollama),
        ("mistral", Protocol::Mistral),
        ("cohere", Protocol::Cohere),
    ];

    /// Returns the protocol of a request to a model, by its path; `None` for any other request.
    pub fn of(request: &Request) -> Option<Protocol> {
        let path = request.path().split('?').next().unwrap_or_default();
        if request.method() != "POST" || !request.body.is_object() {
            return None;
        }
        let ends = [
            ("/chat/completions", Protocol::Chat),
            ("/responses", Protocol::Responses),
            ("/messages", Protocol::Messages),
            (":streamGenerateContent", Protocol::Gemini),
            (":generateContent", Protocol::Gemini),
            ("/api/chat", Protocol::Ollama),
            ("/v2/chat", Protocol::Cohere),
        ];
        let found = ends.into_iter().find(|(end, _)| path.ends_with(end))?.1;
        let names_model = found == Protocol::Gemini || request.body.get("model").is_some();
        names_model.then_some(found)
    }

    /// Whether the request asks for a stream.
    pub fn streams(self, request: &Request) -> bool {
        match self {
            Protocol::Gemini => request.path().contains(":streamGenerateContent"),
            Protocol::Ollama => request.body["stream"] != false,
            _ => request.body["stream"] == true,
        }
    }

    /// Whether the API sends token counts in the response to this request. All do, except that
    /// streams of Chat Completions send them only if the request asks for them.
    pub fn sends_usage(self, request: &Request) -> bool {
        self != Protocol::Chat
            || !self.streams(request)
            || request.body["stream_options"]["include_usage"] == true
    }

    fn content_type(self, streams: bool) -> &'static str {
        match self {
            _ if !streams => JSON,
            Protocol::Ollama => "content-type: application/x-ndjson\r\n",
            _ => SSE,
        }
    }
}

#[derive(Clone, Debug)]
enum Part {
    /// Text, in the pieces in which it is sent.
    Text(Vec<String>),
    /// Reasoning, in the pieces in which it is sent.
    Thinking(Vec<String>),
    /// A tool call.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

/// The token counts of a turn.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    input: u64,
    cached: u64,
    output: u64,
}

/// A model's output in one turn, in order.
///
/// It is sent in the format of the API that the request uses: see [`Turn::answers`] and
/// [`crate::Step::Answers`].
#[derive(Clone, Debug)]
pub struct Turn {
    parts: Vec<Part>,
    finish: Option<String>,
    id: String,
    model: Option<String>,
    tokens: Option<Tokens>,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn {
            parts: vec![],
            finish: None,
            id: "c1".to_owned(),
            model: None,
            tokens: Some(Tokens {
                input: 9,
                cached: 0,
                output: 3,
            }),
        }
    }
}

impl Turn {
    /// Creates a turn that begins with this text.
    pub fn says(text: &str) -> Turn {
        Turn::default().then_says(text)
    }

    /// Creates a turn that begins with a call.
    pub fn calling(id: &str, name: &str, arguments: &Value) -> Turn {
        Turn::default().calls(id, name, arguments)
    }

    /// Adds a piece of text.
    #[must_use]
    pub fn then_says(mut self, text: &str) -> Turn {
        match self.parts.last_mut() {
            Some(Part::Text(pieces)) => pieces.push(text.to_owned()),
            _ => self.parts.push(Part::Text(vec![text.to_owned()])),
        }
        self
    }

    /// Adds a piece of reasoning.
    #[must_use]
    pub fn thinks(mut self, text: &str) -> Turn {
        match self.parts.last_mut() {
            Some(Part::Thinking(pieces)) => pieces.push(text.to_owned()),
            _ => self.parts.push(Part::Thinking(vec![text.to_owned()])),
        }
        self
    }

    /// Adds a call with these arguments.
    #[must_use]
    pub fn calls(mut self, id: &str, name: &str, arguments: &Value) -> Turn {
        self.parts.push(Part::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        });
        self
    }

    /// Sets the finish reason, in the words of Chat Completions: `stop`, `tool_calls`, `length` or
    /// `content_filter`. By default the turn ends with `tool_calls` if it has calls, otherwise with
    /// `stop`.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Turn {
        self.finish = Some(reason.to_owned());
        self
    }

    /// Sets the id of the response.
    #[must_use]
    pub fn id(mut self, id: &str) -> Turn {
        id.clone_into(&mut self.id);
        self
    }

    /// Sets the name of the model; the default is the requested model.
    #[must_use]
    pub fn model(mut self, model: &str) -> Turn {
        self.model = Some(model.to_owned());
        self
    }

    /// Sets the token counts: input tokens, those of them read from a cache, and output tokens.
    #[must_use]
    pub fn tokens(mut self, input: u64, cached: u64, output: u64) -> Turn {
        self.tokens = Some(Tokens {
            input,
            cached,
            output,
        });
        self
    }

    /// Removes the token counts, as in responses of older servers.
    #[must_use]
    pub fn without_usage(mut self) -> Turn {
        self.tokens = None;
        self
    }

    /// Whether the response has token counts.
    pub(crate) fn has_usage(&self) -> bool {
        self.tokens.is_some()
    }

    /// Returns the frames of a stream of this protocol, with token counts.
    pub fn frames(&self, protocol: Protocol) -> Vec<String> {
        self.frames_with(protocol, true)
    }

    /// Returns the body of a stream, see [`Turn::frames`].
    pub fn stream(&self, protocol: Protocol) -> String {
        self.frames(protocol).concat()
    }

    /// Returns the body of a response that is not streamed.
    pub fn whole(&self, protocol: Protocol) -> String {
        let whole = match protocol {
            Protocol::Chat | Protocol::Mistral => chat::whole(self),
            Protocol::Responses => responses::whole(self),
            Protocol::Messages => messages::whole(self),
            Protocol::Gemini => gemini::whole(self),
            Protocol::Ollama => ollama::whole(self),
            Protocol::Cohere => cohere::whole(self),
        };
        whole.to_string()
    }

    /// Returns the `content-type` header and the body of the response to this request, in its
    /// protocol.
    pub fn to(&self, request: &Request) -> (&'static str, String) {
        let protocol = Protocol::of(request).expect("a request to a model");
        let mut turn = self.clone();
        // Providers repeat the requested name.
        let asked = request.body["model"].as_str().map(str::to_owned);
        turn.model = turn.model.or(asked);
        let streams = protocol.streams(request);
        let body = if streams {
            turn.frames_with(protocol, protocol.sends_usage(request))
                .concat()
        } else {
            turn.whole(protocol)
        };
        (protocol.content_type(streams), body)
    }

    /// Returns the whole response to this request; closing the connection ends it.
    pub fn answers(&self, request: &Request) -> Vec<u8> {
        let (content_type, body) = self.to(request);
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{content_type}\r\n{body}").into_bytes()
    }

    fn frames_with(&self, protocol: Protocol, sends_usage: bool) -> Vec<String> {
        match protocol {
            Protocol::Chat => chat::frames(self, sends_usage),
            Protocol::Mistral => chat::frames_of_mistral(self),
            Protocol::Responses => responses::frames(self),
            Protocol::Messages => messages::frames(self),
            Protocol::Gemini => gemini::frames(self),
            Protocol::Ollama => ollama::frames(self),
            Protocol::Cohere => cohere::frames(self),
        }
    }

    fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or("m")
    }

    /// Returns the finish reason, in the words of Chat Completions.
    fn reason(&self) -> &str {
        let has_calls = self.calls_only().next().is_some();
        let own = if has_calls { "tool_calls" } else { "stop" };
        self.finish.as_deref().unwrap_or(own)
    }

    /// Returns the finish reason in another API's words, which are given for a normal end, calls,
    /// the length limit and a filter.
    fn reason_as(&self, [stop, calls, length, filter]: [&'static str; 4]) -> &'static str {
        match self.reason() {
            "tool_calls" => calls,
            "length" => length,
            "content_filter" => filter,
            _ => stop,
        }
    }

    fn text(&self) -> String {
        let pieces = self.parts.iter().flat_map(|part| match part {
            Part::Text(pieces) => pieces.as_slice(),
            _ => &[],
        });
        pieces.cloned().collect()
    }

    fn thinking(&self) -> String {
        let pieces = self.parts.iter().flat_map(|part| match part {
            Part::Thinking(pieces) => pieces.as_slice(),
            _ => &[],
        });
        pieces.cloned().collect()
    }

    /// Returns the id, the name and the arguments of each call.
    fn calls_only(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call {
                id,
                name,
                arguments,
            } => Some((&**id, &**name, &**arguments)),
            _ => None,
        })
    }
}

/// Splits the arguments of a call into two pieces, as a model streams them.
fn halves(arguments: &str) -> [&str; 2] {
    let middle = (arguments.len() / 2..).find(|at| arguments.is_char_boundary(*at));
    let (first, second) = arguments.split_at(middle.unwrap_or(arguments.len()));
    [first, second]
}

/// Parses arguments, for the APIs that send them as JSON.
fn value(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}

/// Returns an unnamed Server-Sent Events frame.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// Returns a Server-Sent Events frame named after its `type`.
fn event(value: &Value) -> String {
    format!(
        "event: {}\ndata: {value}\n\n",
        value["type"].as_str().unwrap()
    )
}
