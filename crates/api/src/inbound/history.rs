//! Requests that continue a conversation stored by the service.

use crate::conversation::{Conversation, Message};
use crate::inbound::draft::{message, text};
use crate::inbound::request::{InboundRequest, ReferenceKind};
use crate::members::GetText;
use crate::request::options::is_system;
use json::{ToolEntry, ToolList};
use serde_json::Value;
use std::sync::Arc;

/// Body members that concern the service's own storage. They are not forwarded in a request that
/// already contains the history.
pub(crate) const OWN: [&str; 3] = ["previous_response_id", "conversation", "background"];

impl InboundRequest {
    /// Whether the client asked us to store the answer (`store` of OpenAI Responses and Chat
    /// Completions); `None` if the member is absent.
    pub fn store(&self) -> Option<bool> {
        self.params.get("store").and_then(Value::as_bool)
    }

    /// Whether the client asked for a background response (`background` of OpenAI Responses).
    pub fn background(&self) -> bool {
        self.params
            .get("background")
            .is_some_and(|background| background == true)
    }

    /// Returns the id of the answer that the request continues (OpenAI Responses); `None` if the
    /// client names none.
    pub fn previous_response_id(&self) -> Option<&str> {
        let id = self.params.text_of("previous_response_id");
        id.filter(|id| !id.is_empty())
    }

    /// Returns the id of the conversation that the request belongs to (OpenAI Responses); `None` if
    /// the client names none. The member may be a string or an object with an `id`.
    pub fn conversation_id(&self) -> Option<&str> {
        let conversation = self.params.get("conversation")?;
        let id = conversation
            .as_str()
            .or_else(|| conversation.text_of("id"))?;
        (!id.is_empty()).then_some(id)
    }

    /// Removes the members that concern the service's storage, so that they are not forwarded.
    pub fn keep_here(&mut self) {
        self.params.retain(|name, _| !OWN.contains(&name.as_str()));
    }

    /// Adds `own` to the tools offered to the model. The client's tools keep their names and win
    /// over tools of the same name. Drops the client's own JSON, so that every upstream receives
    /// the converted request.
    pub fn offer(&mut self, own: &ToolList) {
        let clients = self.tools.as_deref();
        let is_free = |entry: &ToolEntry| clients.is_none_or(|tools| !tools.knows(&entry.name));
        let first = clients.map(|tools| tools.openai(|_| true));
        let lists = [first.as_deref().unwrap_or("[]"), &own.openai(is_free)].map(|list| {
            list.trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned()
        });
        let entries: Vec<String> = lists.into_iter().filter(|list| !list.is_empty()).collect();
        if let Ok(all) = ToolList::read_valid(&format!("[{}]", entries.join(",")))
            && all.iter().next().is_some()
        {
            self.tools = Some(Arc::new(all));
        }
        self.conversation.verbatim = None;
    }

    /// Inserts `history` before the request's messages. The system prompts at the start of both are
    /// merged into one message, without duplicates. Removes `previous_response_id`, `conversation`
    /// and `background`, since the references are now resolved, and drops the client's own JSON, so
    /// that every upstream receives the converted request.
    pub fn continue_from(&mut self, history: Conversation) {
        let own = std::mem::take(&mut self.conversation.messages);
        let is_prompt = |message: &Message| is_system(message.role());
        let split = |messages: Vec<Message>| {
            let first = messages.iter().take_while(|m| is_prompt(m)).count();
            let mut prompts = messages;
            let rest = prompts.split_off(first);
            (prompts, rest)
        };
        let (mut prompts, mut messages) = split(history.messages);
        let (more, rest) = split(own);
        for prompt in more {
            if prompts.iter().all(|other| other.text() != prompt.text()) {
                prompts.push(prompt);
            }
        }
        messages.extend(rest);
        if prompts.len() > 1 {
            let texts: Vec<String> = prompts.iter().map(Message::text).collect();
            prompts = vec![message("system", vec![text(&texts.join("\n\n"))])];
        }
        prompts.append(&mut messages);
        self.conversation.messages = prompts;
        self.drop_verbatim();
        self.keep_here();
        self.references.retain(|reference| {
            !matches!(
                reference.kind,
                ReferenceKind::Answer | ReferenceKind::Conversation
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::conversation::Conversation;
    use crate::{Api, RequestOptions, inbound, request};
    use serde_json::{Value, json};

    const HISTORY: &str = concat!(
        r#"{"role":"system","content":"Rules."}"#,
        "\n",
        r#"{"role":"user","content":"Hi"}"#,
        "\n",
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
    );

    #[test]
    fn a_request_goes_on_with_a_history_and_sends_all_of_it() {
        let body = r#"{"model":"m","store":true,"background":true,"previous_response_id":"resp_1","conversation":{"id":"conv_1"},"temperature":0,
            "instructions":"Be brief.","input":[{"type":"function_call_output","call_id":"c","output":"1"},{"role":"user","content":"And?"}]}"#;
        let mut asked = inbound(Api::OpenaiResponses, body.as_bytes()).unwrap();
        assert_eq!(
            (
                asked.store(),
                asked.background(),
                asked.previous_response_id(),
                asked.conversation_id()
            ),
            (Some(true), true, Some("resp_1"), Some("conv_1"))
        );
        asked.check(Api::OpenaiResponses, None).unwrap_err();
        let (history, _) = Conversation::read(HISTORY);
        asked.continue_from(history);
        let url = "http://127.0.0.1/v1/responses";
        for to in [None, Some((Api::OpenaiResponses, url))] {
            asked.check(Api::OpenaiResponses, to).unwrap();
        }
        assert_eq!(
            serde_json::to_string(&asked.params).unwrap(),
            r#"{"store":true,"temperature":0}"#
        );
        let options = RequestOptions {
            model: "m".into(),
            ..RequestOptions::default()
        };
        let made = request(Api::OpenaiResponses, &asked.conversation, &options).unwrap();
        let made: Value = serde_json::from_str(&made.body).unwrap();
        assert_eq!(made["instructions"], "Rules.\n\nBe brief.");
        assert_eq!(
            made["input"],
            json!([
                {"type": "message", "role": "user", "content": "Hi"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "1"},
                {"type": "message", "role": "user", "content": "And?"},
            ])
        );
        let made = request(Api::OpenaiChat, &asked.conversation, &options).unwrap();
        let made: Value = serde_json::from_str(&made.body).unwrap();
        let roles: Vec<_> = made["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    }

    #[test]
    fn the_calls_of_a_history_are_checked_and_its_prompt_is_not_repeated() {
        let answered = |body: &str| {
            let mut asked = inbound(Api::OpenaiChat, body.as_bytes()).unwrap();
            let (history, _) = Conversation::read(HISTORY);
            asked.continue_from(history);
            asked
        };
        let asked = answered(
            r#"{"messages":[{"role":"system","content":"Rules."},{"role":"tool","tool_call_id":"c","content":"1"}]}"#,
        );
        asked.check(Api::OpenaiChat, None).unwrap();
        assert_eq!(asked.conversation.messages[0].text(), "Rules.");
        let other = answered(r#"{"messages":[{"role":"tool","tool_call_id":"d","content":"1"}]}"#);
        other.check(Api::OpenaiChat, None).unwrap_err();
    }

    #[test]
    fn a_conversation_may_be_a_text() {
        for (body, want) in [
            (r#"{"input":"x","conversation":"conv_1"}"#, Some("conv_1")),
            (r#"{"input":"x","conversation":{"id":""}}"#, None),
            (r#"{"input":"x","conversation":7}"#, None),
            (r#"{"input":"x"}"#, None),
        ] {
            let asked = inbound(Api::OpenaiResponses, body.as_bytes()).unwrap();
            assert_eq!(asked.conversation_id(), want, "{body}");
            assert_eq!((asked.store(), asked.background()), (None, false));
        }
    }
}
