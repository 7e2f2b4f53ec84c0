//! Converts a request to protocol lines, for a pipeline's standard input, and back.

use crate::Api;
use crate::conversation::Message;
use crate::inbound::draft;
use crate::inbound::draft::{InboundNotes, message};
use crate::inbound::history::OWN;
use crate::inbound::request::{InboundRequest, Instructions};
use crate::request::options::is_system;
use event::payload::{self, Payload};
use event::{Json, Raw};
use serde_json::{Map, Value};
use std::borrow::Cow;

impl InboundRequest {
    /// Returns a `request` event and a `message` event for each message, one per line. `api` is the
    /// API that the client speaks; `model`, if set, replaces the model in the request.
    pub fn lines(&self, api: Api, model: Option<&str>) -> String {
        let request = self.request_line(api, model, &[]);
        String::from_utf8(request).unwrap_or_default() + &message_lines(&self.conversation.messages)
    }

    /// Returns the lines that a session stores for the request: the `request` event, and a
    /// `message` event for each message from index `first` on, because the session already has the
    /// earlier ones. Messages that apply to this request only are marked `"once":true` and are
    /// always written. These are the `instructions` of OpenAI Responses, and, for the other APIs,
    /// all system messages, because their clients send the system prompt with every request. Call
    /// this before [`InboundRequest::continue_from`].
    pub fn session_lines(&self, api: Api, model: Option<&str>, first: usize) -> String {
        let mut out = self.request_line(api, model, &OWN);
        let Instructions {
            text,
            others,
            messages,
        } = &self.instructions;
        let prompts = usize::from(!text.is_empty() || !others.is_empty());
        let is_responses = api == Api::OpenaiResponses;
        if is_responses {
            // Both texts are part of one system message at the start of the conversation.
            for (words, is_once) in [(text, true), (others, false)] {
                if !words.is_empty() && (is_once || first == 0) {
                    let prompt = message("system", vec![draft::text(words)]);
                    message_line(&mut out, &prompt, is_once);
                }
            }
        }
        let talk = self.conversation.messages.iter().enumerate();
        for (place, message) in talk.skip(if is_responses { prompts } else { 0 }) {
            let is_once = if is_responses {
                place < prompts + messages
            } else {
                is_system(message.role())
            };
            if is_once || place >= first {
                message_line(&mut out, message, is_once);
            }
        }
        String::from_utf8(out).unwrap_or_default()
    }

    /// Returns the `request` event as a line, without the members of `params` listed in `without`.
    fn request_line(&self, api: Api, model: Option<&str>, without: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        let tools = self.tools.as_ref().map(|tools| tools.openai(|_| true));
        let mut params = self.params.clone();
        params.retain(|name, _| !without.contains(&name.as_str()));
        let params = (!params.is_empty()).then(|| object(&params));
        let request = payload::Request {
            api: Some(api.name().into()),
            model: model.or(self.model.as_deref()).map(Into::into),
            tools: tools.as_deref().map(Json::of),
            tool_choice: self.tool_choice.as_deref().map(Into::into),
            params: params.as_deref().map(Json::of),
            streams: Some(self.streams),
        };
        push(&mut out, &request.into());
        out
    }
}

/// Returns a `message` event for each message, one per line.
pub fn message_lines(messages: &[Message]) -> String {
    let mut out = Vec::new();
    for message in messages {
        message_line(&mut out, message, false);
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a `message` event and a line feed.
fn message_line(out: &mut Vec<u8>, message: &Message, is_once: bool) {
    let fields = object(message.fields());
    let payload = payload::Message {
        message: Json::of(&fields),
        once: is_once,
    };
    push(out, &payload.into());
}

/// Parses a `request` event: the API that the client speaks, and the request's settings. The
/// messages are on other lines. Unusable values are left out with a note, because a program in
/// between may have changed the line. Returns `None` if `line` is not a `request` event.
pub fn request_event(line: &str) -> Option<(Api, InboundRequest)> {
    let event = Raw::parse(line)
        .ok()
        .filter(|event| event.get_str("type").is_some_and(|kind| kind == "request"))?;
    let value = |key: &str| {
        event
            .get(key)
            .and_then(|value| serde_json::from_str::<Value>(value.text()).ok())
    };
    let text = |key: &str| event.get_str(key).filter(|text| !text.is_empty());
    let mut notes = InboundNotes::default();
    let api = text("api").and_then(|name| {
        let api = Api::from_name(&name);
        if api.is_none() {
            notes.add("api: not known, so params are those of openai-chat");
        }
        api
    });
    let mut request = InboundRequest {
        model: text("model").map(Cow::into_owned),
        streams: event.get("streams").and_then(Raw::bool).unwrap_or_default(),
        ..InboundRequest::default()
    };
    request.set_tools(
        value("tools").as_ref(),
        value("tool_choice").as_ref(),
        &mut notes,
    );
    match value("params") {
        Some(Value::Object(params)) => request.params = params,
        None | Some(Value::Null) => {}
        Some(_) => notes.add("params: not an object, it is left out"),
    }
    let (notes, foreign) = notes.into_lists();
    request.notes = [notes, foreign].concat();
    Some((api.unwrap_or(Api::OpenaiChat), request))
}

fn push(out: &mut Vec<u8>, payload: &Payload<'_>) {
    event::payload::line(out, payload, None, 0, None);
    out.push(b'\n');
}

/// Serializes an object as JSON on one line, with control characters escaped.
fn object(members: &Map<String, Value>) -> String {
    event::object(|object| {
        for (key, value) in members {
            object.minified(key, &value.to_string());
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::{Api, inbound};

    /// Returns the messages in a session's lines, with `*` before those marked `once`.
    fn kept(api: Api, body: &str, first: usize) -> Vec<String> {
        let asked = inbound(api, body.as_bytes()).unwrap();
        let lines = asked.session_lines(api, Some("m"), first);
        let mut lines = lines.lines().map(|line| event::Raw::parse(line).unwrap());
        let request = lines.next().unwrap();
        assert_eq!(request.get_str("type").unwrap(), "request");
        let shown = lines.map(|line| {
            let message = line.get("message").unwrap();
            let once = line.get("once").map_or("", |_| "*");
            let content = message.get_str("content").unwrap_or_default();
            format!("{once}{} {content}", message.get_str("role").unwrap())
        });
        shown.collect()
    }

    #[test]
    fn a_session_keeps_new_messages_and_marks_what_holds_once() {
        let body = r#"{"instructions":"A","input":[{"role":"developer","content":"B"},{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}"#;
        let all = ["*system A", "system B", "user x", "assistant y", "user z"];
        assert_eq!(kept(Api::OpenaiResponses, body, 0), all);
        assert_eq!(kept(Api::OpenaiResponses, body, 3), [all[0], all[4]]);
        let body = r#"{"instructions":[{"role":"developer","content":"A"},{"role":"user","content":"B"}],"input":"x"}"#;
        assert_eq!(
            kept(Api::OpenaiResponses, body, 2),
            ["*system A", "*user B", "user x"]
        );
        assert_eq!(
            kept(Api::OpenaiResponses, r#"{"input":"x"}"#, 0),
            ["user x"]
        );
        let body = r#"{"messages":[{"role":"system","content":"A"},{"role":"user","content":"x"},{"role":"developer","content":"B"},{"role":"user","content":"y"}]}"#;
        assert_eq!(
            kept(Api::OpenaiChat, body, 3),
            ["*system A", "*developer B", "user y"]
        );
        let body = r#"{"system":"A","messages":[{"role":"user","content":"x"}]}"#;
        assert_eq!(kept(Api::Anthropic, body, 0), ["*system A", "user x"]);
    }
}
