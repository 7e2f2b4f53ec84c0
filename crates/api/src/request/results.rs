//! Converts tool results to plain text, for APIs whose tool messages can only contain text.
//!
//! OpenAI rejects images in tool messages ("Image URLs are only allowed for messages with role
//! 'user'", <https://github.com/OpenHands/OpenHands/issues/7700>), and many compatible servers
//! reject any list of parts there. Images and files are therefore moved into a user message after
//! the turn's last result.

use crate::conversation::{Conversation, Message, called};
use crate::members::Put;
use serde_json::{Map, Value, json};

/// The content of a result that has no text.
const ELSEWHERE: &str = "The result is in the next message.";

/// Converts every tool message to text. `talk` must have passed the history gate.
pub(crate) fn with_text_results(talk: Conversation) -> Conversation {
    let mut out: Vec<Message> = Vec::with_capacity(talk.messages.len());
    let mut media = Vec::new();
    for mut message in talk.messages {
        if message.role() == "tool" {
            let name = called(&out, message.tool_call_id())
                .or_else(|| message.get_str("name"))
                .map(str::to_owned);
            media.extend(split(&mut message, name.as_deref()));
        } else if !media.is_empty() {
            // Some models' chat templates reject two user messages in a row.
            if message.role() == "user" {
                media.extend(parts(message.fields_mut().shift_remove("content")));
                message
                    .fields_mut()
                    .put("content", std::mem::take(&mut media));
            } else {
                out.push(said(std::mem::take(&mut media)));
            }
        }
        out.push(message);
    }
    if !media.is_empty() {
        out.push(said(media));
    }
    Conversation::of(out)
}

/// Keeps only the text in a result of the tool `name`. Returns the other parts, preceded by a text
/// part that names the tool.
fn split(result: &mut Message, name: Option<&str>) -> Vec<Value> {
    let Some(parts) = result.content().and_then(Value::as_array) else {
        return Vec::new();
    };
    let text = |part: &Value| {
        part.as_str()
            .or_else(|| part.get("text")?.as_str())
            .map(str::to_owned)
    };
    let texts: Vec<String> = parts.iter().filter_map(text).collect();
    let mut media: Vec<Value> = parts
        .iter()
        .filter(|part| text(part).is_none())
        .cloned()
        .collect();
    let content = if texts.is_empty() && !media.is_empty() {
        ELSEWHERE.to_owned()
    } else {
        texts.join("\n")
    };
    result.fields_mut().put("content", content);
    if !media.is_empty() {
        let name = name.unwrap_or("a tool");
        let id = result.tool_call_id();
        media.insert(
            0,
            json!({"type": "text", "text": format!("From the result of {name} ({id}):")}),
        );
    }
    media
}

/// Converts message content to a list of parts.
fn parts(content: Option<Value>) -> Vec<Value> {
    match content {
        Some(Value::Array(parts)) => parts,
        Some(Value::String(text)) if !text.is_empty() => {
            vec![json!({"type": "text", "text": text})]
        }
        _ => Vec::new(),
    }
}

/// Creates a user message from these parts.
fn said(parts: Vec<Value>) -> Message {
    let mut fields = Map::new();
    fields.put("role", "user");
    fields.put("content", parts);
    Message::new(fields)
}

#[cfg(test)]
mod tests {
    use crate::support;
    use crate::{Api, RequestOptions, inbound, request};
    use serde_json::{Value, json};

    /// The messages of a request to `to` that a client of `from` causes by `body`.
    fn messages(from: Api, to: Api, body: &Value) -> Value {
        let read = inbound(from, body.to_string().as_bytes()).expect("a request");
        assert_eq!(read.notes, Vec::<String>::new());
        let sent = request(to, &read.conversation, &RequestOptions::default()).expect("a request");
        serde_json::from_str::<Value>(&sent.body).expect("JSON")["messages"].take()
    }

    fn image() -> Value {
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})
    }

    #[test]
    fn an_image_that_a_tool_of_claude_code_read_goes_up_in_a_message_of_the_user() {
        let png = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
        let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
        let text = |text: &str| json!({"type": "text", "text": text});
        let call =
            |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let body = |last: &[Value]| {
            let mut answers = vec![
                result("a", json!([png])),
                result("b", json!([text("40 x 40"), png, text("end")])),
                result("c", json!([text("one"), text("two")])),
                result("d", json!("three")),
                result("e", json!([])),
            ];
            answers.extend_from_slice(last);
            let calls = [
                call("a", "read"),
                call("b", "shot"),
                call("c", "list"),
                call("d", "list"),
                call("e", "touch"),
            ];
            json!({"model": "m", "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": calls},
                {"role": "user", "content": answers},
                {"role": "assistant", "content": "Fine."},
                {"role": "user", "content": "Bye."},
            ]})
        };
        let sent = messages(Api::Anthropic, Api::OpenaiChat, &body(&[]));
        let of_tools: Vec<&Value> = (2..7).map(|at| &sent[at]["content"]).collect();
        assert_eq!(
            of_tools,
            [super::ELSEWHERE, "40 x 40\nend", "one\ntwo", "three", ""]
        );
        let labelled = [
            text("From the result of read (a):"),
            image(),
            text("From the result of shot (b):"),
            image(),
        ];
        assert_eq!(sent[7], json!({"role": "user", "content": labelled}));
        assert_eq!(
            (&sent[8]["role"], &sent[9]["content"], &sent[10]),
            (&json!("assistant"), &json!("Bye."), &Value::Null)
        );
        // Claude Code may write a text behind the results: the user speaks once.
        let sent = messages(
            Api::Anthropic,
            Api::OpenaiChat,
            &body(&[text("Which colour?")]),
        );
        let content = sent[7]["content"].as_array().expect("parts");
        assert_eq!(
            (content.len(), &content[4], &sent[8]["role"]),
            (5, &text("Which colour?"), &json!("assistant"))
        );
        // Mistral has an answer between a result and the user.
        let sent = messages(Api::Anthropic, Api::Mistral, &body(&[]));
        assert_eq!(
            (&sent[2]["content"], &sent[4]["content"]),
            (&json!(super::ELSEWHERE), &json!("one\ntwo"))
        );
        assert_eq!(
            (&sent[7]["role"], &sent[8]["role"], &sent[8]["content"][1]),
            (&json!("assistant"), &json!("user"), &image())
        );
    }

    #[test]
    fn an_image_at_the_end_of_a_responses_request_follows_it() {
        let body = json!({"model": "m", "input": [
            {"type": "function_call", "call_id": "a", "name": "view", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": [
                {"type": "input_text", "text": "here"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
            ]},
        ]});
        let sent = messages(Api::OpenaiResponses, Api::OpenaiChat, &body);
        assert_eq!(
            sent[1],
            json!({"role": "tool", "tool_call_id": "a", "content": "here"})
        );
        assert_eq!(
            (&sent[2]["role"], &sent[2]["content"][1]),
            (&json!("user"), &image())
        );
        assert_eq!(sent[2]["content"][2]["file"]["filename"], "a.pdf");
        assert_eq!(sent[3], Value::Null);
    }

    #[test]
    fn a_chat_client_knows_what_its_server_takes() {
        let body = json!({"model": "m", "messages": [
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}, image()]},
        ]});
        assert_eq!(
            messages(Api::OpenaiChat, Api::OpenaiChat, &body),
            body["messages"]
        );
    }

    #[test]
    fn a_log_gets_texts_for_openai_and_keeps_its_parts_where_results_have_them() {
        let talk = json!([
            {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}, image()]},
        ]);
        let talk: String = talk
            .as_array()
            .expect("messages")
            .iter()
            .map(Value::to_string)
            .collect();
        let body = |api| support::body(api, &RequestOptions::default(), "null", &talk);
        for api in [Api::OpenaiChat, Api::Mistral, Api::Cohere] {
            assert_eq!(body(api)["messages"][1]["content"], "x", "{}", api.name());
        }
        assert_eq!(body(Api::Ollama)["messages"][1]["images"], json!(["AAAA"]));
        assert_eq!(
            body(Api::OpenaiResponses)["input"][1]["output"][1]["type"],
            "input_image"
        );
        assert_eq!(
            body(Api::Anthropic)["messages"][1]["content"][0]["content"][1]["type"],
            "image"
        );
    }
}
