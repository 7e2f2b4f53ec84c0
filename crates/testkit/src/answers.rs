//! The frames of a provider's answer as the real API sends them: with the members and the counts of
//! tokens that a test does not think of. Source:
//! <https://platform.openai.com/docs/api-reference/chat-streaming>, with `include_usage`.

/// A chunk of a stream of chat completions, with this delta, as JSON, and this finish reason, as JSON.
pub fn chat_chunk(delta: &str, finish: &str) -> String {
    let choice =
        format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}"#);
    chunk(&choice, "null")
}

/// The end of a stream of chat completions behind its last choice: the tokens, and the mark of the
/// end.
pub fn chat_end() -> String {
    let usage = r#"{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}"#;
    chunk("", usage) + "data: [DONE]\n\n"
}

fn chunk(choice: &str, usage: &str) -> String {
    format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"service_tier\":\"default\",\"system_fingerprint\":null,\"choices\":[{choice}],\"usage\":{usage}}}\n\n"
    )
}
