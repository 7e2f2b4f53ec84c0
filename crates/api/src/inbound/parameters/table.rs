//! The name of each request setting in each API.
//!
//! Sources: <https://platform.openai.com/docs/api-reference/chat/create>,
//! <https://platform.openai.com/docs/api-reference/responses/create>,
//! <https://platform.claude.com/docs/en/api/messages>,
//! <https://ai.google.dev/api/generate-content#generationconfig>,
//! <https://docs.ollama.com/api/chat>, <https://docs.mistral.ai/api>,
//! <https://docs.cohere.com/reference/chat>.

use crate::Api;
use crate::inbound::parameters::convert;
use serde_json::{Map, Value, json};

/// One setting.
pub(crate) struct SettingRow {
    /// The setting's path in each API, in the order of [`Api::ALL`]: a name, or two names with a
    /// dot between them. Empty if the API does not have the setting. Alternatives are separated by
    /// `|`: all of them are read, and the first is written. A prefix limits the path's use:
    ///
    /// - `<`: only read, because clients send it for third-party servers of the API.
    /// - `+`: only written to third-party servers.
    /// - `=`: only written to OpenAI's own server.
    /// - `!`: never written, because the decoder does not read the result.
    pub places: [&'static str; Api::ALL.len()],
    /// Converts the value from the first API to the second. `None` if the second cannot represent
    /// it.
    pub convert: fn(Api, Api, Value) -> Option<Value>,
}

impl SettingRow {
    fn place(&self, api: Api) -> &'static str {
        let at = Api::ALL
            .iter()
            .position(|other| *other == api)
            .unwrap_or_default();
        self.places[at]
    }

    /// Returns the paths at which a client of `api` may set it.
    pub(crate) fn readable(&self, api: Api) -> impl Iterator<Item = &'static str> {
        self.place(api)
            .trim_start_matches(['<', '+', '=', '!'])
            .split('|')
            .filter(|place| !place.is_empty())
    }

    /// Returns the path at which to write it for `to`, or why it must be dropped.
    pub(crate) fn writable(&self, to: &TargetServer<'_>) -> Result<&'static str, WhyDropped> {
        let places = self.place(to.api);
        match places.chars().next() {
            None | Some('<') => return Err(WhyDropped::Lacks),
            Some('!') => return Err(WhyDropped::Unread),
            Some('+') if to.is_openai() => return Err(WhyDropped::NotOpenai),
            Some('=') if !to.is_openai() => return Err(WhyDropped::OnlyOpenai),
            Some(_) => {}
        }
        Ok(places
            .trim_start_matches(['+', '='])
            .split('|')
            .next()
            .unwrap_or_default())
    }

    /// Whether `value` only asks for the default behaviour.
    pub(crate) fn asks_for_nothing(place: &str, value: &Value) -> bool {
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

/// Members that default to true.
const NOT_FALSE: [&str; 1] = ["parallel_tool_calls"];

/// All settings except the reasoning effort (`reasoning.rs`). `store`, `service_tier` and similar
/// settings are only sent to OpenAI's own server, because some other Chat Completions servers
/// reject them (<https://github.com/fanenr/chatbot/issues/21>).
#[rustfmt::skip]
pub(crate) const ROWS: &[SettingRow] = &[
    // openai-chat, openai-responses, anthropic, gemini, ollama, mistral, cohere
    SettingRow { places: ["max_completion_tokens|max_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens", "options.num_predict", "max_tokens", "max_tokens"], convert: convert::count },
    SettingRow { places: ["temperature", "temperature", "temperature", "generationConfig.temperature", "options.temperature", "temperature", "temperature"], convert: convert::temperature },
    SettingRow { places: ["top_p", "top_p", "top_p", "generationConfig.topP", "options.top_p", "top_p", "p"], convert: convert::number },
    SettingRow { places: ["+top_k", "<top_k", "top_k", "generationConfig.topK", "options.top_k", "", "k"], convert: convert::count },
    SettingRow { places: ["+min_p", "<min_p", "<min_p", "", "options.min_p", "", ""], convert: convert::number },
    SettingRow { places: ["+repetition_penalty", "<repetition_penalty", "<repetition_penalty", "", "options.repeat_penalty", "", ""], convert: convert::number },
    SettingRow { places: ["+chat_template_kwargs", "<chat_template_kwargs", "<chat_template_kwargs", "", "", "", ""], convert: convert::object },
    SettingRow { places: ["stop", "<stop", "stop_sequences|stop", "generationConfig.stopSequences", "options.stop", "stop", "stop_sequences"], convert: convert::stops },
    SettingRow { places: ["seed", "<seed", "<seed", "generationConfig.seed", "options.seed", "random_seed", "seed"], convert: convert::count },
    SettingRow { places: ["frequency_penalty", "<frequency_penalty", "<frequency_penalty", "generationConfig.frequencyPenalty", "options.frequency_penalty", "frequency_penalty", "frequency_penalty"], convert: convert::number },
    SettingRow { places: ["presence_penalty", "<presence_penalty", "<presence_penalty", "generationConfig.presencePenalty", "options.presence_penalty", "presence_penalty", "presence_penalty"], convert: convert::number },
    SettingRow { places: ["n", "", "", "", "", "n", ""], convert: convert::count },
    SettingRow { places: ["parallel_tool_calls", "parallel_tool_calls", "<tool_choice.disable_parallel_tool_use", "", "", "parallel_tool_calls", ""], convert: convert::parallel },
    SettingRow { places: ["response_format", "text.format", "output_config.format|output_format", "generationConfig.*", "format", "response_format", "response_format"], convert: convert::format },
    SettingRow { places: ["verbosity", "text.verbosity", "", "", "", "", ""], convert: convert::word },
    SettingRow { places: ["logprobs", "include.logprobs", "", "!", "logprobs", "", "!"], convert: convert::same },
    SettingRow { places: ["top_logprobs", "top_logprobs", "", "!", "top_logprobs", "", "!"], convert: convert::count },
    SettingRow { places: ["logit_bias", "<logit_bias", "", "", "", "", ""], convert: convert::object },
    SettingRow { places: ["metadata", "metadata", "", "", "", "", ""], convert: convert::object },
    SettingRow { places: ["user", "user", "metadata.user_id", "", "", "", ""], convert: convert::user },
    SettingRow { places: ["=safety_identifier", "safety_identifier", "", "", "", "", ""], convert: convert::word },
    SettingRow { places: ["prompt_cache_key", "prompt_cache_key", "", "", "", "", ""], convert: convert::word },
    SettingRow { places: ["=prompt_cache_retention", "prompt_cache_retention", "", "", "", "", ""], convert: convert::word },
    SettingRow { places: ["=prompt_cache_options", "prompt_cache_options", "", "", "", "", ""], convert: convert::object },
    SettingRow { places: ["<cache_control", "<cache_control", "cache_control", "", "", "", ""], convert: convert::object },
    SettingRow { places: ["=moderation", "moderation", "", "", "", "", ""], convert: convert::object },
    SettingRow { places: ["=service_tier", "service_tier", "<service_tier", "", "", "", ""], convert: convert::tier },
    SettingRow { places: ["=store", "store", "", "", "", "", ""], convert: convert::same },
];

/// The server that a request is sent to.
#[derive(Clone, Copy, Debug)]
pub struct TargetServer<'a> {
    /// The API that the server speaks.
    pub api: Api,
    /// The server's URL.
    pub url: &'a str,
    /// The requested model; "" if unknown.
    pub model: &'a str,
}

impl TargetServer<'_> {
    /// Whether the URL is OpenAI's own, or that of OpenAI's models on Azure
    /// (`NAME.openai.azure.com`). Any other Chat Completions server is assumed to ignore unknown
    /// parameters, as vLLM, llama.cpp and SGLang do.
    pub(crate) fn is_openai(&self) -> bool {
        let url = self.url;
        let authority = url
            .split_once("://")
            .map_or(url, |(_, rest)| rest)
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default();
        let host = authority
            .rsplit('@')
            .next()
            .unwrap_or_default()
            .split(':')
            .next()
            .unwrap_or_default();
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        ["openai.com", "azure.com"].iter().any(|domain| {
            host.strip_suffix(domain)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }
}

/// Why a parameter was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyDropped {
    /// The API has no such parameter.
    Lacks,
    /// OpenAI's own server rejects it; other Chat Completions servers accept it.
    NotOpenai,
    /// Only OpenAI's own server is known to accept it; Groq and others reject unknown parameters.
    OnlyOpenai,
    /// The API does not support this value.
    Value,
    /// The API supports it, but the decoder cannot read the result.
    Unread,
    /// Another parameter in the request has the same meaning.
    Twice,
    /// The requested model does not support it.
    Model,
    /// Models that reason do not support it.
    Thinks,
    /// It conflicts with the rest of the request.
    NoThinking,
}

impl WhyDropped {
    const ALL: [WhyDropped; 9] = [
        WhyDropped::Lacks,
        WhyDropped::NotOpenai,
        WhyDropped::OnlyOpenai,
        WhyDropped::Value,
        WhyDropped::Unread,
        WhyDropped::Twice,
        WhyDropped::Model,
        WhyDropped::Thinks,
        WhyDropped::NoThinking,
    ];

    /// Returns the end of the sentence "left out, since".
    pub(super) fn text(self, api: Api) -> String {
        let api = api.name();
        match self {
            WhyDropped::Lacks => format!("{api} has no such parameter"),
            WhyDropped::NotOpenai => "OpenAI's own server rejects the parameter".to_owned(),
            WhyDropped::OnlyOpenai => "other servers than OpenAI's reject the parameter".to_owned(),
            WhyDropped::Value => format!("{api} cannot have this value of it"),
            WhyDropped::Unread => format!("what {api} answers to it is not read"),
            WhyDropped::Twice => "another parameter says the same".to_owned(),
            WhyDropped::Model => "the model does not take it".to_owned(),
            WhyDropped::Thinks => "a model that thinks does not take it".to_owned(),
            WhyDropped::NoThinking => format!(
                "{api} does not take it with a forced tool, few max_tokens, or calls without their reasoning"
            ),
        }
    }
}

/// The dropped parameters and the reasons.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(Vec<(WhyDropped, String)>);

impl LeftOut {
    pub(super) fn add(&mut self, why: WhyDropped, name: &str) {
        self.0.push((why, name.to_owned()));
    }

    /// Removes a parameter that was handled in another way.
    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(_, other)| other != name);
    }

    /// Returns one sentence per reason.
    pub(super) fn sentences(&self, api: Api) -> Vec<String> {
        let names = |why| {
            self.0
                .iter()
                .filter(move |(other, _)| *other == why)
                .map(|(_, name)| name.as_str())
        };
        let sentence = |why: WhyDropped| {
            let names: Vec<&str> = names(why).collect();
            (!names.is_empty())
                .then(|| format!("left out, since {}: {}", why.text(api), names.join(", ")))
        };
        WhyDropped::ALL.into_iter().filter_map(sentence).collect()
    }
}

/// Removes and returns the value at `place`: a name, or two names with a dot between them. Also
/// removes an object that becomes empty.
pub(crate) fn take(members: &mut Map<String, Value>, place: &str) -> Option<Value> {
    let Some((first, second)) = place.split_once('.') else {
        return members.shift_remove(place);
    };
    let inner = members.get_mut(first)?.as_object_mut()?;
    let value = inner.shift_remove(second);
    if inner.is_empty() {
        members.shift_remove(first);
    }
    value
}

/// Inserts a value at `place`. Returns `None` if a value is already there.
pub(crate) fn put(members: &mut Map<String, Value>, place: &str, value: Value) -> Option<()> {
    let (inner, name) = match place.split_once('.') {
        Some((first, second)) => (
            members
                .entry(first)
                .or_insert_with(|| json!({}))
                .as_object_mut()?,
            second,
        ),
        None => (members, place),
    };
    if inner.contains_key(name) {
        return None;
    }
    match (name, value) {
        // One member of the client's request becomes several.
        ("*", Value::Object(several)) => inner.extend(several),
        (name, value) => _ = inner.insert(name.to_owned(), value),
    }
    Some(())
}
