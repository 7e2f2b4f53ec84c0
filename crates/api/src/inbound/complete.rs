//! Checks that a request's conversation is complete.

use crate::Api;
use crate::inbound::draft::quoted;
use crate::inbound::request::{InboundError, InboundRequest, Reference};
use crate::request::result_without_call;

impl InboundRequest {
    /// Checks that the conversation is complete for the server that answers the request: that it
    /// has the data behind each reference, and that each tool result has a matching call before it.
    /// `from` is the API that the client speaks. `to` is the API and URL of the provider that
    /// answers; `None` for a command.
    ///
    /// # Errors
    /// Returns what is missing.
    pub fn check(&self, from: Api, to: Option<(Api, &str)>) -> Result<(), InboundError> {
        let own = to.filter(|(api, _)| *api == from).map(|(_, url)| url);
        let is_unknown =
            |reference: &&Reference| own.is_none_or(|url| !reference.may_be_known(url));
        if let Some(unknown) = self.references.iter().find(is_unknown) {
            return Err(InboundError::NotFound {
                member: unknown.member.clone(),
                code: unknown.kind.code(),
                why: format!(
                    "{} cannot be found: {}",
                    quoted(&unknown.id),
                    unknown.kind.missing()
                ),
            });
        }
        if !self.references.is_empty() {
            // The matching call may be in the data that the provider stores.
            return Ok(());
        }
        let is_verbatim =
            own.is_some() && from != Api::OpenaiChat && self.conversation.verbatim.is_some();
        let Some(id) = result_without_call(&self.conversation, is_verbatim) else {
            return Ok(());
        };
        let member = if from == Api::OpenaiResponses {
            "input"
        } else {
            "messages"
        };
        let why = self
            .notes
            .iter()
            .find(|note| note.starts_with(member) && note.contains("call"));
        Err(InboundError::Member {
            member: member.to_owned(),
            why: format!(
                "the result of the call {} has no such call before it; send the whole \
                 conversation, with the answer that made the call{}",
                quoted(id),
                why.map(|note| format!("; {note}")).unwrap_or_default()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Api, InboundError, inbound};

    const OPENAI: &str = "https://api.openai.com/v1/responses";
    const CLAUDE: &str = "https://api.anthropic.com/v1/messages";
    const LOCAL: &str = "http://127.0.0.1:8080/v1/messages";

    /// Returns the member that an error names, with the error code if there is one, or "ok" without
    /// error.
    fn checked(from: Api, to: Option<(Api, &str)>, body: &str) -> String {
        match inbound(from, body.as_bytes()).and_then(|request| request.check(from, to)) {
            Ok(()) => "ok".to_owned(),
            Err(InboundError::Member { member, .. }) => member,
            Err(InboundError::NotFound { member, code, .. }) => format!("{member} {code}"),
            Err(other) => other.to_string(),
        }
    }

    #[test]
    fn what_is_referred_to_reaches_its_provider_or_is_an_error() {
        use Api::{Anthropic, OpenaiChat, OpenaiResponses};
        let answer = "previous_response_id previous_response_not_found";
        for (body, want) in [
            (
                r#"{"previous_response_id":"resp_1","input":"and then?"}"#,
                answer,
            ),
            (r#"{"previous_response_id":"resp_1"}"#, answer),
            (
                r#"{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c","output":"1"}]}"#,
                answer,
            ),
            (
                r#"{"conversation":{"id":"conv_1"},"input":"x"}"#,
                "conversation conversation_not_found",
            ),
            (
                r#"{"conversation":"conv_1","input":"x"}"#,
                "conversation conversation_not_found",
            ),
            (r#"{"prompt":{"id":"pmpt_1"}}"#, "prompt prompt_not_found"),
            (
                r#"{"input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_1"}]}"#,
                "input[1] previous_response_not_found",
            ),
            (
                r#"{"input":[{"id":"msg_1"}],"instructions":"x"}"#,
                "input[0] previous_response_not_found",
            ),
        ] {
            for to in [Some((OpenaiChat, OPENAI)), Some((Anthropic, CLAUDE)), None] {
                assert_eq!(checked(OpenaiResponses, to, body), want, "{body}");
            }
            assert_eq!(
                checked(OpenaiResponses, Some((OpenaiResponses, OPENAI)), body),
                "ok",
                "{body}"
            );
        }
        let body = r#"{"max_tokens":9,"thread":{"type":"continue","previous_message_id":"msg_1"},
            "messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"1"}]}]}"#;
        for to in [Some((OpenaiChat, OPENAI)), Some((Anthropic, LOCAL)), None] {
            assert_eq!(checked(Anthropic, to, body), "thread thread_not_found");
        }
        assert_eq!(checked(Anthropic, Some((Anthropic, CLAUDE)), body), "ok");
        let paused = r#"{"max_tokens":9,"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[]}"#;
        assert_eq!(checked(Anthropic, Some((Anthropic, CLAUDE)), paused), "ok");
        let created = r#"{"max_tokens":9,"thread":{"type":"create"},"messages":[{"role":"user","content":"x"}]}"#;
        assert_eq!(
            checked(Anthropic, Some((OpenaiChat, OPENAI)), created),
            "ok"
        );
    }

    #[test]
    fn a_result_without_its_call_is_an_error_on_every_front() {
        use Api::{Anthropic, OpenaiChat, OpenaiResponses};
        let call = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        let result = r#"{"role":"tool","tool_call_id":"a","content":"1"}"#;
        let user = r#"{"role":"user","content":"x"}"#;
        let chat = |messages: &[&str]| format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        for (from, body, want) in [
            (OpenaiChat, chat(&[user, call, result]), "ok"),
            (OpenaiChat, chat(&[user, call, user, result]), "ok"),
            (OpenaiChat, chat(&[user, call]), "ok"),
            (OpenaiChat, chat(&[result]), "messages"),
            (OpenaiChat, chat(&[user, result, call]), "messages"),
            (OpenaiChat, chat(&[user, call, &result.replace("\"a\"", "\"b\"")]), "messages"),
            (OpenaiChat, chat(&[user, call, &result.replace("\"a\"", "\"\"")]), "ok"),
            (OpenaiChat, chat(&[user, &call.replace("\"f\"", "\"\""), result]), "messages"),
            (
                Anthropic,
                r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#.to_owned(),
                "messages",
            ),
            (
                OpenaiResponses,
                r#"{"input":[{"type":"function_call_output","call_id":"a","output":"1"}]}"#.to_owned(),
                "input",
            ),
        ] {
            for to in [Some((OpenaiChat, OPENAI)), Some((Anthropic, LOCAL)), Some((from, LOCAL)), None] {
                assert_eq!(checked(from, to, &body), want, "{body} {to:?}");
            }
        }
        // A provider of the client's own API receives the items unchanged.
        let item = |kind: &str, id: &str| {
            format!(r#"{{"type":"{kind}","call_id":"{id}","name":"f","output":"1"}}"#)
        };
        let answer = r#"{"role":"assistant","content":"hm"}"#.to_owned();
        let items = [
            item("function_call", "a"),
            item("function_call", "b"),
            item("function_call_output", "a"),
            answer,
        ];
        let body = format!(
            r#"{{"input":[{},{}]}}"#,
            items.join(","),
            item("function_call_output", "b")
        );
        assert_eq!(
            checked(OpenaiResponses, Some((OpenaiResponses, LOCAL)), &body),
            "ok"
        );
        assert_eq!(
            checked(OpenaiResponses, Some((OpenaiChat, LOCAL)), &body),
            "input"
        );
    }

    #[test]
    fn a_model_is_never_asked_an_empty_conversation() {
        for (api, body, want) in [
            (Api::OpenaiChat, r#"{"messages":[]}"#, "messages"),
            (
                Api::OpenaiChat,
                r#"{"messages":[{"role":"user"}]}"#,
                "messages",
            ),
            (
                Api::OpenaiChat,
                r#"{"messages":[{"role":"system","content":"x"}]}"#,
                "ok",
            ),
            (
                Api::Anthropic,
                r#"{"system":"x","messages":[]}"#,
                "messages",
            ),
            (
                Api::Anthropic,
                r#"{"system":"x","messages":[{"role":"user","content":[]}]}"#,
                "messages",
            ),
            (Api::OpenaiResponses, r#"{"instructions":"x"}"#, "input"),
            (
                Api::OpenaiResponses,
                r#"{"instructions":"x","input":[{"type":"web_search_call"}]}"#,
                "input",
            ),
            (
                Api::OpenaiResponses,
                r#"{"input":[{"role":"developer","content":"x"}]}"#,
                "ok",
            ),
        ] {
            assert_eq!(checked(api, Some((api, LOCAL)), body), want, "{body}");
        }
    }
}
