//! A request as lines of the protocol, for the standard input of a pipeline, and back.

use crate::Api;
use crate::inbound::draft::InboundNotes;
use crate::inbound::request::InboundRequest;
use event::payload::{self, Payload};
use event::{Json, Raw};
use serde_json::{Map, Value};
use std::borrow::Cow;

impl InboundRequest {
    /// The `request` event, and a `message` event for each message: lines with a line feed each.
    /// `api` is the one that the client speaks; `model` takes the place of the model that it names.
    pub fn lines(&self, api: Api, model: Option<&str>) -> String {
        let mut out = Vec::new();
        let tools = self.tools.as_ref().map(|tools| tools.openai(|_| true));
        let params = (!self.params.is_empty()).then(|| object(&self.params));
        let request = payload::Request {
            api: Some(api.name().into()),
            model: model.or(self.model.as_deref()).map(Into::into),
            tools: tools.as_deref().map(Json::of),
            tool_choice: self.tool_choice.as_deref().map(Into::into),
            params: params.as_deref().map(Json::of),
            streams: Some(self.streams),
        };
        push(&mut out, &request.into());
        for message in &self.conversation.messages {
            let message = object(message.fields());
            push(
                &mut out,
                &payload::Message {
                    message: Json::of(&message),
                    ..payload::Message::default()
                }
                .into(),
            );
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

/// A `request` event: the API that the client speaks, and what it asks for. The messages are other
/// lines. What cannot be used is left out with a note, since a line may have been changed on its
/// way. `None` for a line that is not such an event.
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

/// An object as JSON on one line, with its control characters escaped.
fn object(members: &Map<String, Value>) -> String {
    event::object(|object| {
        for (key, value) in members {
            object.minified(key, &value.to_string());
        }
    })
}
