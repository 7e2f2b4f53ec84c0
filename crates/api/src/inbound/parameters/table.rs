//! What each API calls a setting of a request.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat/create>,
//! <https://platform.openai.com/docs/api-reference/responses/create>,
//! <https://platform.claude.com/docs/en/api/messages>,
//! <https://ai.google.dev/api/generate-content#generationconfig>,
//! <https://docs.ollama.com/api/chat>, <https://docs.mistral.ai/api>,
//! <https://docs.cohere.com/reference/chat>.

use super::convert;
use super::left_out::Why;
use super::target::Target;
use crate::Api;
use serde_json::Value;

/// One setting.
pub(super) struct Row {
    /// Its places in the APIs, in the order of [`Api::ALL`]: a name, or two with a dot between
    /// them. A client may write each of several, with a bar between them; the first is written to
    /// an upstream. With `<` before them they are only read: clients send them, since servers of
    /// the API beside the provider's own take them. With `+` before them they are written to such
    /// servers alone, with `=` to OpenAI's own server alone, with `!` to none, since the decoder
    /// does not read what is answered. Empty: the API does not have it.
    pub places: [&'static str; Api::ALL.len()],
    /// The value for the second API; `None` if it cannot have it.
    pub convert: fn(Api, Api, Value) -> Option<Value>,
}

impl Row {
    fn place(&self, api: Api) -> &'static str {
        let at = Api::ALL
            .iter()
            .position(|other| *other == api)
            .unwrap_or_default();
        self.places[at]
    }

    /// The places where a client of `api` may have written it.
    pub(super) fn readable(&self, api: Api) -> impl Iterator<Item = &'static str> {
        self.place(api)
            .trim_start_matches(['<', '+', '=', '!'])
            .split('|')
            .filter(|place| !place.is_empty())
    }

    /// The place where `to` wants it, or why it has none.
    pub(super) fn writable(&self, to: &Target<'_>) -> Result<&'static str, Why> {
        let places = self.place(to.api);
        match places.chars().next() {
            None | Some('<') => return Err(Why::Lacks),
            Some('!') => return Err(Why::Unread),
            Some('+') if to.is_openai() => return Err(Why::NotOpenai),
            Some('=') if !to.is_openai() => return Err(Why::OnlyOpenai),
            Some(_) => {}
        }
        Ok(places
            .trim_start_matches(['+', '='])
            .split('|')
            .next()
            .unwrap_or_default())
    }

    /// Whether this value asks for what is the case without it.
    pub(super) fn asks_for_nothing(place: &str, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(value) => NOT_FALSE.contains(&place) == *value,
            Value::Number(number) => place == "n" && number.as_u64() == Some(1),
            Value::String(word) => {
                matches!(
                    (place, word.as_str()),
                    ("truncation", "disabled") | ("service_tier", "auto" | "default")
                )
            }
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => {
                members.is_empty()
                    || members
                        .get("type")
                        .is_some_and(|kind| kind == "text" || kind == "disabled")
            }
        }
    }
}

/// Members that are true unless a client says otherwise.
const NOT_FALSE: [&str; 1] = ["parallel_tool_calls"];

/// The settings, but for how much the model thinks (`reasoning.rs`). `store`, `service_tier` and
/// the like go to OpenAI's own server alone: of the many others that speak chat completions some
/// reject them (<https://github.com/fanenr/chatbot/issues/21>).
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // openai-chat, openai-responses, anthropic, gemini, ollama, mistral, cohere
    Row { places: ["max_completion_tokens|max_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens", "options.num_predict", "max_tokens", "max_tokens"], convert: convert::count },
    Row { places: ["temperature", "temperature", "temperature", "generationConfig.temperature", "options.temperature", "temperature", "temperature"], convert: convert::temperature },
    Row { places: ["top_p", "top_p", "top_p", "generationConfig.topP", "options.top_p", "top_p", "p"], convert: convert::number },
    Row { places: ["+top_k", "<top_k", "top_k", "generationConfig.topK", "options.top_k", "", "k"], convert: convert::count },
    Row { places: ["+min_p", "<min_p", "<min_p", "", "options.min_p", "", ""], convert: convert::number },
    Row { places: ["+repetition_penalty", "<repetition_penalty", "<repetition_penalty", "", "options.repeat_penalty", "", ""], convert: convert::number },
    Row { places: ["+chat_template_kwargs", "<chat_template_kwargs", "<chat_template_kwargs", "", "", "", ""], convert: convert::object },
    Row { places: ["stop", "<stop", "stop_sequences|stop", "generationConfig.stopSequences", "options.stop", "stop", "stop_sequences"], convert: convert::stops },
    Row { places: ["seed", "<seed", "<seed", "generationConfig.seed", "options.seed", "random_seed", "seed"], convert: convert::count },
    Row { places: ["frequency_penalty", "<frequency_penalty", "<frequency_penalty", "generationConfig.frequencyPenalty", "options.frequency_penalty", "frequency_penalty", "frequency_penalty"], convert: convert::number },
    Row { places: ["presence_penalty", "<presence_penalty", "<presence_penalty", "generationConfig.presencePenalty", "options.presence_penalty", "presence_penalty", "presence_penalty"], convert: convert::number },
    Row { places: ["n", "", "", "", "", "n", ""], convert: convert::count },
    Row { places: ["parallel_tool_calls", "parallel_tool_calls", "<tool_choice.disable_parallel_tool_use", "", "", "parallel_tool_calls", ""], convert: convert::parallel },
    Row { places: ["response_format", "text.format", "output_config.format|output_format", "generationConfig.*", "format", "response_format", "response_format"], convert: convert::format },
    Row { places: ["verbosity", "text.verbosity", "", "", "", "", ""], convert: convert::word },
    Row { places: ["logprobs", "include.logprobs", "", "!", "logprobs", "", "!"], convert: convert::same },
    Row { places: ["top_logprobs", "top_logprobs", "", "!", "top_logprobs", "", "!"], convert: convert::count },
    Row { places: ["logit_bias", "<logit_bias", "", "", "", "", ""], convert: convert::object },
    Row { places: ["metadata", "metadata", "", "", "", "", ""], convert: convert::object },
    Row { places: ["user", "user", "metadata.user_id", "", "", "", ""], convert: convert::user },
    Row { places: ["=safety_identifier", "safety_identifier", "", "", "", "", ""], convert: convert::word },
    Row { places: ["prompt_cache_key", "prompt_cache_key", "", "", "", "", ""], convert: convert::word },
    Row { places: ["=prompt_cache_retention", "prompt_cache_retention", "", "", "", "", ""], convert: convert::word },
    Row { places: ["=prompt_cache_options", "prompt_cache_options", "", "", "", "", ""], convert: convert::object },
    Row { places: ["=moderation", "moderation", "", "", "", "", ""], convert: convert::object },
    Row { places: ["=service_tier", "service_tier", "<service_tier", "", "", "", ""], convert: convert::tier },
    Row { places: ["=store", "store", "", "", "", "", ""], convert: convert::same },
];
