//! What a model writes in one turn, as the real APIs send it: with the ids, the counts of tokens and
//! the other members that a test does not think of.

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
    /// Chat completions of OpenAI.
    Chat,
    /// Responses of OpenAI.
    Responses,
    /// Messages of Anthropic.
    Messages,
    /// `generateContent` of Google.
    Gemini,
    /// Chat of Ollama.
    Ollama,
    /// Chat completions of Mistral.
    Mistral,
    /// Chat of Cohere, version 2.
    Cohere,
}

impl Protocol {
    /// All of them, by the names that `--api` takes.
    pub const ALL: [(&'static str, Protocol); 7] = [
        ("openai-chat", Protocol::Chat),
        ("openai-responses", Protocol::Responses),
        ("anthropic", Protocol::Messages),
        ("gemini", Protocol::Gemini),
        ("ollama", Protocol::Ollama),
        ("mistral", Protocol::Mistral),
        ("cohere", Protocol::Cohere),
    ];

    /// The protocol that a request to a model speaks, by its path; `None` for any other request.
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

    /// Whether the API sends the counts of tokens in the answer to this request: always, but for
    /// streams of chat completions, which have to be asked for them.
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
    /// A call.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

/// The tokens of a turn.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    input: u64,
    cached: u64,
    output: u64,
}

/// What a model writes in one turn, in the order in which it writes it.
///
/// It is sent as the API sends it that a request asks for: see [`Turn::answers`] and
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
    /// A turn that begins with this text.
    pub fn says(text: &str) -> Turn {
        Turn::default().then_says(text)
    }

    /// A turn that begins with a call.
    pub fn calling(id: &str, name: &str, arguments: &Value) -> Turn {
        Turn::default().calls(id, name, arguments)
    }

    /// A piece of text.
    #[must_use]
    pub fn then_says(mut self, text: &str) -> Turn {
        match self.parts.last_mut() {
            Some(Part::Text(pieces)) => pieces.push(text.to_owned()),
            _ => self.parts.push(Part::Text(vec![text.to_owned()])),
        }
        self
    }

    /// A piece of reasoning.
    #[must_use]
    pub fn thinks(mut self, text: &str) -> Turn {
        match self.parts.last_mut() {
            Some(Part::Thinking(pieces)) => pieces.push(text.to_owned()),
            _ => self.parts.push(Part::Thinking(vec![text.to_owned()])),
        }
        self
    }

    /// A call with these arguments.
    #[must_use]
    pub fn calls(mut self, id: &str, name: &str, arguments: &Value) -> Turn {
        self.parts.push(Part::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        });
        self
    }

    /// Ends for this reason, in the words of chat completions: `stop`, `tool_calls`, `length` or
    /// `content_filter`. Without it the turn ends as its content does.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Turn {
        self.finish = Some(reason.to_owned());
        self
    }

    /// The id of the answer.
    #[must_use]
    pub fn id(mut self, id: &str) -> Turn {
        id.clone_into(&mut self.id);
        self
    }

    /// The name of the model, where it is not the one that was asked for.
    #[must_use]
    pub fn model(mut self, model: &str) -> Turn {
        self.model = Some(model.to_owned());
        self
    }

    /// The tokens read, of these the ones that came from a cache, and the tokens written.
    #[must_use]
    pub fn tokens(mut self, input: u64, cached: u64, output: u64) -> Turn {
        self.tokens = Some(Tokens {
            input,
            cached,
            output,
        });
        self
    }

    /// A server that sends no counts of tokens, as older ones do.
    #[must_use]
    pub fn without_usage(mut self) -> Turn {
        self.tokens = None;
        self
    }

    /// Whether the answer has counts of tokens.
    pub(crate) fn has_usage(&self) -> bool {
        self.tokens.is_some()
    }

    /// The frames of a stream of this protocol, whose client has asked for all that there is.
    pub fn frames(&self, protocol: Protocol) -> Vec<String> {
        self.frames_with(protocol, true)
    }

    /// The body of a stream, see [`Turn::frames`].
    pub fn stream(&self, protocol: Protocol) -> String {
        self.frames(protocol).concat()
    }

    /// The body of an answer that is no stream.
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

    /// The header with the type, and the body, of the answer to this request, in its protocol.
    pub fn to(&self, request: &Request) -> (&'static str, String) {
        let protocol = Protocol::of(request).expect("a request to a model");
        let mut turn = self.clone();
        // A provider repeats the name that it was asked for.
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

    /// The whole answer to this request, which the end of the connection ends.
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

    /// The reason of the end, in the words of chat completions.
    fn reason(&self) -> &str {
        let has_calls = self.calls_only().next().is_some();
        let own = if has_calls { "tool_calls" } else { "stop" };
        self.finish.as_deref().unwrap_or(own)
    }

    /// The reason of the end in another API's words: those for an end, calls, a limit and a filter.
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

    /// The id, the name and the arguments of each call.
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

/// The arguments of a call in two pieces, as they come from a model.
fn halves(arguments: &str) -> [&str; 2] {
    let middle = (arguments.len() / 2..).find(|at| arguments.is_char_boundary(*at));
    let (first, second) = arguments.split_at(middle.unwrap_or(arguments.len()));
    [first, second]
}

/// The value of arguments, for the APIs that send them as JSON.
fn value(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}

/// A frame of Server-Sent Events without a name.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// A frame of Server-Sent Events that is named as its `type`.
fn event(value: &Value) -> String {
    format!(
        "event: {}\ndata: {value}\n\n",
        value["type"].as_str().unwrap()
    )
}
