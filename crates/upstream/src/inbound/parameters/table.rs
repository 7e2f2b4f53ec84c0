//! What each API calls a setting of a request.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat/create>, <https://platform.openai.com/docs/api-reference/responses/create>,
//! <https://platform.claude.com/docs/en/api/messages>, <https://ai.google.dev/api/generate-content#generationconfig>,
//! <https://docs.ollama.com/api/chat>, <https://docs.mistral.ai/api>, <https://docs.cohere.com/reference/chat>.

use super::convert;
use crate::Api;
use serde_json::Value;

/// One setting.
pub(super) struct Row {
    /// Its places in the APIs, in the order of [`Api::ALL`]: a name, or two with a dot between them. A client may write each of several, with a
    /// bar between them; the first is written to an upstream. With `<` before them they are only read. Empty: the API does not have it.
    pub places: [&'static str; Api::ALL.len()],
    /// The value for the second API; `None` if it cannot have it.
    pub convert: fn(Api, Api, Value) -> Option<Value>,
}

impl Row {
    fn place(&self, api: Api) -> &'static str {
        let at = Api::ALL.iter().position(|other| *other == api).unwrap_or_default();
        self.places[at]
    }

    /// The places where a client of `api` may have written it.
    pub(super) fn readable(&self, api: Api) -> impl Iterator<Item = &'static str> {
        let places = self.place(api);
        places.strip_prefix('<').unwrap_or(places).split('|').filter(|place| !place.is_empty())
    }

    /// The place where an upstream of `api` wants it.
    pub(super) fn writable(&self, api: Api) -> Option<&'static str> {
        let places = Some(self.place(api)).filter(|places| !places.starts_with('<'))?;
        places.split('|').next().filter(|place| !place.is_empty())
    }

    /// Whether this value asks for what is the case without it.
    pub(super) fn asks_for_nothing(place: &str, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(value) => NOT_FALSE.contains(&place) == *value,
            Value::Number(number) => place == "n" && number.as_u64() == Some(1),
            Value::String(word) => {
                matches!((place, word.as_str()), ("truncation", "disabled") | ("service_tier", "auto" | "default"))
            }
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => {
                members.is_empty() || members.get("type").is_some_and(|kind| kind == "text" || kind == "disabled")
            }
        }
    }
}

/// Members that are true unless a client says otherwise.
const NOT_FALSE: [&str; 1] = ["parallel_tool_calls"];

/// The settings. Those that a server without them rejects go only where they are sure to be known: `store`, `service_tier` and the like from
/// chat completions to Responses, but not to the many servers that speak chat completions
/// (<https://github.com/fanenr/chatbot/issues/21>). The effort of reasoning stays within OpenAI's APIs: elsewhere only some models take it.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // openai-chat, openai-responses, anthropic, gemini, ollama, mistral, cohere
    Row { places: ["max_completion_tokens|max_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens", "options.num_predict", "max_tokens", "max_tokens"], convert: convert::count },
    Row { places: ["temperature", "temperature", "temperature", "generationConfig.temperature", "options.temperature", "temperature", "temperature"], convert: convert::temperature },
    Row { places: ["top_p", "top_p", "top_p", "generationConfig.topP", "options.top_p", "top_p", "p"], convert: convert::number },
    Row { places: ["<top_k", "", "top_k", "generationConfig.topK", "options.top_k", "", "k"], convert: convert::count },
    Row { places: ["<min_p", "", "", "", "options.min_p", "", ""], convert: convert::number },
    Row { places: ["stop", "", "stop_sequences", "generationConfig.stopSequences", "options.stop", "stop", "stop_sequences"], convert: convert::stops },
    Row { places: ["seed", "", "", "generationConfig.seed", "options.seed", "random_seed", "seed"], convert: convert::count },
    Row { places: ["frequency_penalty", "", "", "generationConfig.frequencyPenalty", "options.frequency_penalty", "frequency_penalty", "frequency_penalty"], convert: convert::number },
    Row { places: ["presence_penalty", "", "", "generationConfig.presencePenalty", "options.presence_penalty", "presence_penalty", "presence_penalty"], convert: convert::number },
    Row { places: ["n", "", "", "", "", "n", ""], convert: convert::count },
    Row { places: ["parallel_tool_calls", "parallel_tool_calls", "<tool_choice.disable_parallel_tool_use", "", "", "parallel_tool_calls", ""], convert: convert::parallel },
    Row { places: ["reasoning_effort", "reasoning.effort", "", "", "", "", ""], convert: convert::word },
    Row { places: ["response_format", "text.format", "output_config.format|output_format", "generationConfig.*", "format", "response_format", "response_format"], convert: convert::format },
    Row { places: ["<verbosity", "text.verbosity", "", "", "", "", ""], convert: convert::word },
    Row { places: ["<metadata", "metadata", "", "", "", "", ""], convert: convert::same },
    Row { places: ["<user", "user", "", "", "", "", ""], convert: convert::word },
    Row { places: ["<safety_identifier", "safety_identifier", "", "", "", "", ""], convert: convert::word },
    Row { places: ["<prompt_cache_key", "prompt_cache_key", "", "", "", "", ""], convert: convert::word },
    Row { places: ["<prompt_cache_retention", "prompt_cache_retention", "", "", "", "", ""], convert: convert::word },
    Row { places: ["<service_tier", "service_tier", "", "", "", "", ""], convert: convert::word },
    Row { places: ["<store", "store", "", "", "", "", ""], convert: convert::same },
];
