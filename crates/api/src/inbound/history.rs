//! A request that goes on with a conversation that the service keeps.

use crate::conversation::{Conversation, Message};
use crate::inbound::draft::{message, text};
use crate::inbound::request::{InboundRequest, ReferenceKind};
use crate::members::GetText;
use crate::request::options::is_system;
use json::{ToolEntry, ToolList};
use serde_json::Value;
use std::sync::Arc;

/// The members of a request that are about what the service keeps. None of them goes upstream in a
/// request that has the history itself.
pub(crate) const OWN: [&str; 3] = ["previous_response_id", "conversation", "background"];

impl InboundRequest {
    /// Whether the client wants that the answer is kept (`store` of OpenAI Responses and of chat
    /// completions); `None` without a word of it.
    pub fn store(&self) -> Option<bool> {
        self.params.get("store").and_then(Value::as_bool)
    }

    /// Whether the answer is made in the background (`background` of OpenAI Responses).
    pub fn background(&self) -> bool {
        self.params
            .get("background")
            .is_some_and(|background| background == true)
    }

    /// The id of the answer that the request follows (OpenAI Responses).
    pub fn previous_response_id(&self) -> Option<&str> {
        let id = self.params.text_of("previous_response_id");
        id.filter(|id| !id.is_empty())
    }

    /// The id of the conversation that the request belongs to (OpenAI Responses), which may be a
    /// text or the member `id` of an object.
    pub fn conversation_id(&self) -> Option<&str> {
        let conversation = self.params.get("conversation")?;
        let id = conversation
            .as_str()
            .or_else(|| conversation.text_of("id"))?;
        (!id.is_empty()).then_some(id)
    }

    /// Takes out what the request says of what the service keeps: it does not go upstream.
    pub fn keep_here(&mut self) {
        self.params.retain(|name, _| !OWN.contains(&name.as_str()));
    }

    /// Offers these tools to the model beside those of the client, which keep their names. No
    /// upstream gets the request as the client wrote it.
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

    /// Puts `history` before the messages of the request. The system prompts at the beginning of
    /// both become one message, in which a text that both have stands once. What the request said
    /// of the history (`previous_response_id`, `conversation`, `background`) does not go upstream,
    /// and the references that it made are resolved. No upstream gets the request as the client
    /// wrote it.
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
