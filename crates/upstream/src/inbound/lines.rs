//! A request as lines of the protocol, for the standard input of a pipeline, and back.

use super::request::InboundRequest;
use crate::Api;
use event::payload::{self, Payload};
use event::{Json, Object};
use serde_json::{Map, Value};

impl InboundRequest {
    /// The `request` event, and a `message` event for each message: lines with a line feed each. `api` is the one that the client speaks.
    pub fn lines(&self, api: Api) -> String {
        let mut out = Vec::new();
        let tools = self.tools.as_ref().map(|tools| tools.openai(|_| true));
        let params = object(&self.params);
        let request = payload::Request {
            api: Some(api.name().into()),
            model: self.model.as_deref().map(Into::into),
            tools: tools.as_deref().map(Json::of),
            tool_choice: self.tool_choice.as_deref().map(Into::into),
            params: Some(Json::of(&params)),
            streams: Some(self.streams),
        };
        push(&mut out, &request.into());
        for message in &self.conversation.messages {
            let message = object(message.fields());
            push(&mut out, &payload::Message { message: Json::of(&message) }.into());
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

fn push(out: &mut Vec<u8>, payload: &Payload<'_>) {
    event::payload::line(out, payload, None, 0, None);
    out.push(b'\n');
}

/// An object as JSON on one line, with its control characters escaped.
fn object(members: &Map<String, Value>) -> String {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    for (key, value) in members {
        object.minified(key, &value.to_string());
    }
    object.close();
    String::from_utf8(out).unwrap_or_default()
}
