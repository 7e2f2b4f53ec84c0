//! What a command reads: the request, and the log.

use crate::asked::Asked;
use event::payload::{self, Message, Request};
use event::{Json, Payload};
use serde_json::Value;

/// The lines of a command's standard input: the `request` event, and a `message` event for each message. `model` takes the place of the
/// model that the client names.
pub fn input(asked: &Asked, model: Option<&str>) -> Vec<u8> {
    let request = &asked.request;
    let tools = request.tools.as_ref().map(|tools| tools.openai(|_| true));
    let params = (!request.params.is_empty()).then(|| Value::Object(request.params.clone()).to_string());
    let mut lines = Vec::new();
    put(
        Request {
            api: Some(asked.api.name().into()),
            model: model.or(request.model.as_deref()).map(Into::into),
            tools: tools.as_deref().map(Json::of),
            tool_choice: request.tool_choice.as_ref().map(Into::into),
            params: params.as_deref().map(Json::of),
            streams: Some(request.streams),
        },
        &mut lines,
    );
    for message in &request.conversation.messages {
        let json = Value::Object(message.fields().clone()).to_string();
        put(Message { message: Json::of(&json) }, &mut lines);
    }
    lines
}

fn put<'p>(payload: impl Into<Payload<'p>>, lines: &mut Vec<u8>) {
    payload::line(lines, &payload.into(), None, 0, None);
    lines.push(b'\n');
}
