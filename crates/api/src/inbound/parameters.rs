//! Converts a request's parameters, apart from messages and tools, to another API.

mod convert;
mod reasoning;
mod table;

use crate::Api;
use crate::anthropic::models::claude;
use crate::inbound::draft::{InboundNotes, quoted};
use crate::inbound::parameters::table::{LeftOut, ROWS, SettingRow, WhyDropped, put, take};
use crate::inbound::request::InboundRequest;
use serde_json::{Map, Value, json};

pub use crate::inbound::parameters::table::TargetServer;

/// Converts `params` from the API `from` to members of a request to `to`. If both speak the same
/// API, all members are copied. Otherwise the parameters that `to` supports are renamed and
/// converted. Parameters that are dropped are added to `left_out`, unless they ask for the default.
fn members_for(
    from: Api,
    to: &TargetServer<'_>,
    params: &Map<String, Value>,
    left_out: &mut LeftOut,
) -> Vec<(String, Value)> {
    if from == to.api {
        return params.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    }
    let mut rest = params.clone();
    let mut out = Map::new();
    read_include(from, &mut rest);
    for row in ROWS {
        for place in row.readable(from) {
            let Some(value) = take(&mut rest, place) else {
                continue;
            };
            if SettingRow::asks_for_nothing(place, &value) {
                continue;
            }
            if place == "response_format" || place == "text.format" {
                for name in convert::lost_of_format(from, to.api, &value) {
                    left_out.add(WhyDropped::Lacks, &format!("{place}.{name}"));
                }
            }
            let written = row.writable(to).and_then(|to_place| {
                let value = (row.convert)(from, to.api, value).ok_or(WhyDropped::Value)?;
                put(&mut out, to_place, value).ok_or(WhyDropped::Twice)
            });
            if let Err(why) = written {
                left_out.add(why, place);
            }
        }
    }
    reasoning::convert(from, to, &mut rest, &mut out, left_out);
    write_include(to.api, &mut out);
    // `tool_choice` is not one of the parameters; see `InboundRequest::tool_choice`.
    rest.shift_remove("tool_choice");
    for (name, value) in rest {
        match value {
            Value::Object(members) if row_has_parts_of(from, &name) => {
                for (part, value) in members {
                    let name = format!("{name}.{part}");
                    if !SettingRow::asks_for_nothing(&name, &value) {
                        left_out.add(WhyDropped::Lacks, &name);
                    }
                }
            }
            value if SettingRow::asks_for_nothing(&name, &value) => {}
            _ => left_out.add(WhyDropped::Lacks, &name),
        }
    }
    out.into_iter().collect()
}

/// Converts `settings`, which use the names of Chat Completions, to members of a request to `to`.
/// Also returns one sentence for each setting that is left out.
pub fn settings_for(
    settings: &Map<String, Value>,
    to: &TargetServer<'_>,
) -> (Vec<(String, Value)>, Vec<String>) {
    let mut left_out = vec![];
    let mut out = Map::new();
    for (name, value) in settings {
        let row = ROWS
            .iter()
            .find(|row| row.readable(Api::OpenaiChat).any(|place| place == name));
        let place = row.map_or(Err(WhyDropped::Lacks), |row| {
            let value = (row.convert)(Api::OpenaiChat, to.api, value.clone());
            Ok((row.writable(to)?, value.ok_or(WhyDropped::Value)?))
        });
        let put = place.and_then(|(place, value)| {
            put(&mut out, name_at(place, to), value).ok_or(WhyDropped::Twice)
        });
        if let Err(why) = put {
            left_out.push(format!("{name}: {}", why.text(to.api)));
        }
    }
    (out.into_iter().collect(), left_out)
}

/// Returns the paths of the token limit in a request to `api`.
fn token_limits(api: Api) -> impl Iterator<Item = &'static str> {
    let mut rows = ROWS.iter();
    let row = rows.find(|row| {
        row.readable(Api::OpenaiChat)
            .any(|place| place == "max_tokens")
    });
    row.into_iter().flat_map(move |row| row.readable(api))
}

/// Returns the token limit in `params` of a request to `to`, the greatest if there are several. A
/// limit under a name that the server may ignore does not count.
pub fn most_tokens(to: &TargetServer<'_>, params: &[(String, Value)]) -> Option<u64> {
    let limit = |place: &str| {
        let mut names = place.split('.');
        let first = names.next()?;
        let (_, value) = params.iter().find(|(name, _)| name == first)?;
        names
            .try_fold(value, |value, name| value.get(name))?
            .as_u64()
    };
    let places = token_limits(to.api).filter(|place| name_at(place, to) == *place);
    places.filter_map(limit).max()
}

/// Removes a token limit above `most` from `params` of a request to `api`. Also returns whether a
/// limit of at most `most` remains.
pub fn with_at_most(
    api: Api,
    params: Vec<(String, Value)>,
    most: u64,
) -> (Vec<(String, Value)>, bool) {
    let mut params = Map::from_iter(params);
    let mut is_left = false;
    let is_less = |asked: &Value| asked.as_u64().is_some_and(|asked| asked <= most);
    for place in token_limits(api) {
        if let Some(asked) = take(&mut params, place).filter(is_less) {
            is_left |= put(&mut params, place, asked).is_some();
        }
    }
    (params.into_iter().collect(), is_left)
}

/// Reduces the reasoning budget in `params` so that it fits into their token limit.
pub fn with_fitted_budget(api: Api, params: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut params = Map::from_iter(params);
    if api == Api::Anthropic {
        reasoning::fit_budget(&mut params, u64::MAX);
    }
    params.into_iter().collect()
}

/// Returns the member's name at `to`. OpenAI's newer models require `max_completion_tokens`, which
/// many other Chat Completions servers ignore.
fn name_at<'n>(name: &'n str, to: &TargetServer<'_>) -> &'n str {
    match name {
        "max_completion_tokens" if to.api == Api::OpenaiChat && !to.is_openai() => "max_tokens",
        name => name,
    }
}

/// Removes all members that are not Chat Completions settings. A web page may add any member to its
/// body, and providers reject unknown members. Also removes `n`, because a stream shows a single
/// answer, and `metadata`, because it belongs to the page.
pub(crate) fn keep_settings(params: &mut Map<String, Value>, notes: &mut InboundNotes) {
    let is_setting = |name: &str| {
        let mut places = ROWS.iter().flat_map(|row| row.readable(Api::OpenaiChat));
        name == "reasoning_effort" || places.any(|place| place == name)
    };
    params.retain(|name, _| {
        let is_kept = is_setting(name) && !["n", "metadata"].contains(&name.as_str());
        if !is_kept {
            notes.add(format!("{} is left out", quoted(name)));
        }
        is_kept
    });
}

/// Whether the table has a row for a part of the member `name`.
fn row_has_parts_of(api: Api, name: &str) -> bool {
    ROWS.iter()
        .flat_map(|row| row.readable(api))
        .chain(["reasoning.effort", "thinking.type"])
        .any(|place| {
            place
                .split_once('.')
                .is_some_and(|(first, _)| first == name)
        })
}

impl InboundRequest {
    /// Converts this request's parameters, apart from messages and tools, from the API `from` to
    /// members of a request to `to`. Also returns one sentence for each reason why parameters were
    /// left out.
    pub fn parameters_for(
        &self,
        from: Api,
        to: &TargetServer<'_>,
    ) -> (Vec<(String, Value)>, Vec<String>) {
        let mut left_out = LeftOut::default();
        let mut params = members_for(from, to, &self.params, &mut left_out);
        if from == to.api {
            return (params, Vec::new());
        }
        if to.api == Api::Anthropic {
            reasoning::fit_thinking(self, to.model, &mut params, &mut left_out);
        }
        for (name, _) in &mut params {
            *name = name_at(name, to).to_owned();
        }
        if self.tools.is_none() {
            params.retain(|(name, _)| name != "parallel_tool_calls");
        }
        let is_serial = self
            .params
            .get("parallel_tool_calls")
            .and_then(Value::as_bool)
            == Some(false);
        if to.api == Api::Anthropic {
            let is_free = self.is_tool_forced()
                && claude(to.model).is_some_and(|family| !family.thinking.can_be_forced());
            if is_free {
                let choice = "tool_choice (the model may answer without a call)";
                left_out.add(WhyDropped::Model, choice);
            }
            if is_serial {
                left_out.remove("parallel_tool_calls");
            }
            if (is_free || is_serial)
                && let (Some(_), Some(mut choice)) = (&self.tools, self.anthropic_choice(is_free))
            {
                if is_serial {
                    choice["disable_parallel_tool_use"] = true.into();
                }
                params.push(("tool_choice".to_owned(), choice));
            }
        }
        // The Ollama API has no tool choice; `ollama.rs` only approximates it.
        if to.api == Api::Ollama && self.tools.is_some() {
            match self.tool_choice.as_deref() {
                None | Some("auto" | "none") => {}
                Some("required") => left_out.add(
                    WhyDropped::Lacks,
                    "tool_choice (the model may answer without a call)",
                ),
                Some(_) => left_out.add(
                    WhyDropped::Lacks,
                    "tool_choice (the model gets the chosen tool alone, and need not call it)",
                ),
            }
        }
        (params, left_out.sentences(to.api))
    }

    /// Whether the model is required to call a tool.
    pub(crate) fn is_tool_forced(&self) -> bool {
        self.tools.is_some() && !matches!(self.tool_choice.as_deref(), None | Some("auto" | "none"))
    }

    /// Returns the tool choice in Anthropic's form, or `None` for `none`. `is_free` means that the
    /// model does not support a forced choice, so it gets `auto`. Source:
    /// <https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use>,
    /// "Parallel tool use".
    fn anthropic_choice(&self, is_free: bool) -> Option<Value> {
        match self.tool_choice.as_deref() {
            None | Some("auto") => Some(json!({"type": "auto"})),
            Some("none") => None,
            Some(_) if is_free => Some(json!({"type": "auto"})),
            Some("required") => Some(json!({"type": "any"})),
            Some(name) => Some(json!({"type": "tool", "name": name})),
        }
    }
}

/// The `include` value that requests log probabilities.
const LOGPROBS: &str = "message.output_text.logprobs";

/// Converts the `include` list to an object. Log probabilities become its member `logprobs`, which
/// the table handles; other values become `include.VALUE`.
pub(crate) fn read_include(from: Api, params: &mut Map<String, Value>) {
    if from != Api::OpenaiResponses {
        return;
    }
    // In Chat Completions `top_logprobs` has no effect without `logprobs`.
    let mut members = Map::new();
    if params
        .get("top_logprobs")
        .and_then(Value::as_u64)
        .is_some_and(|count| count > 0)
    {
        members.insert("logprobs".to_owned(), true.into());
    }
    if let Some(Value::Array(words)) = params.get("include") {
        for word in words.iter().filter_map(Value::as_str) {
            members.insert(
                if word == LOGPROBS { "logprobs" } else { word }.to_owned(),
                true.into(),
            );
        }
    }
    if !members.is_empty() {
        params.insert("include".to_owned(), members.into());
    }
}

/// Converts the `include` object back to a list.
pub(crate) fn write_include(to: Api, members: &mut Map<String, Value>) {
    if to == Api::OpenaiResponses && members.shift_remove("include").is_some() {
        members.insert("include".to_owned(), json!([LOGPROBS]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openai_gets_its_own_name_of_the_most_tokens() {
        let name = |from: Api, member: &str, url: &str| {
            let params = Map::from_iter([
                (member.to_owned(), json!(9)),
                ("temperature".to_owned(), json!(0.5)),
            ]);
            let request = InboundRequest {
                params,
                ..InboundRequest::default()
            };
            let (params, left_out) = request.parameters_for(
                from,
                &TargetServer {
                    api: Api::OpenaiChat,
                    url,
                    model: "m",
                },
            );
            assert_eq!(
                (params.len(), &params[0].1, left_out),
                (2, &json!(9), vec![]),
                "{url}"
            );
            params[0].0.clone()
        };
        for (from, member) in [
            (Api::Anthropic, "max_tokens"),
            (Api::OpenaiResponses, "max_output_tokens"),
        ] {
            for url in [
                Api::OpenaiChat.base_url(),
                "https://eu.api.openai.com/v1",
                "https://me.openai.azure.com/openai/v1?api-version=1",
                "https://key@API.OpenAI.com.:443/v1",
            ] {
                assert_eq!(name(from, member, url), "max_completion_tokens", "{url}");
            }
            for url in [
                "http://127.0.0.1:8080/v1",
                "http://[::1]:8080/v1",
                "https://api.openai.com.example/v1",
                "https://notopenai.com/v1",
                "https://example.com/api.openai.com",
                "https://api.openai.com@example.com/v1",
                "",
            ] {
                assert_eq!(name(from, member, url), "max_tokens", "{url}");
            }
        }
        // A Chat Completions client uses the name that its own server supports.
        for member in ["max_tokens", "max_completion_tokens"] {
            for url in [Api::OpenaiChat.base_url(), "http://127.0.0.1:8080/v1"] {
                assert_eq!(name(Api::OpenaiChat, member, url), member);
            }
        }
    }

    #[test]
    fn a_model_or_an_api_that_cannot_have_it_is_the_reason_of_the_note() {
        let note = |from: Api, to: Api, model: &str, body: Value| {
            let mut body = body;
            body["messages"] = json!([{"role": "user", "content": "x"}]);
            body["tools"] = json!([{"type": "function", "name": "f", "function": {"name": "f"}, "input_schema": {}}]);
            let request = crate::inbound(from, body.to_string().as_bytes()).unwrap();
            let target = TargetServer {
                api: to,
                url: to.base_url(),
                model,
            };
            [
                request.parameters_for(from, &target).1,
                request.conversation.notes_for(to.name()),
            ]
            .concat()
            .join("; ")
        };
        let effort = json!({"output_config": {"effort": "high"}});
        for (to, model, want) in [
            (
                Api::OpenaiChat,
                "gpt-4o",
                "left out, since the model does not take it: output_config.effort",
            ),
            (
                Api::OpenaiResponses,
                "gpt-4.1",
                "left out, since the model does not take it: output_config.effort",
            ),
            (
                Api::Gemini,
                "gemini-2.0-flash",
                "left out, since the model does not take it: output_config.effort",
            ),
            (Api::OpenaiChat, "o3", ""),
        ] {
            assert_eq!(
                note(Api::Anthropic, to, model, effort.clone()),
                want,
                "{model}"
            );
        }
        let low = json!({"reasoning_effort": "low"});
        let want = "left out, since the model does not take it: reasoning_effort";
        assert_eq!(
            note(Api::OpenaiChat, Api::Anthropic, "claude-3-5-haiku", low),
            want
        );
        let forced = json!({"tool_choice": "required", "temperature": 0});
        assert_eq!(
            note(Api::OpenaiChat, Api::Anthropic, "claude-opus-5-5", forced),
            "left out, since the model does not take it: temperature, tool_choice (the model may answer without a call)"
        );
        let choice = |choice: Value| {
            note(
                Api::OpenaiChat,
                Api::Ollama,
                "m",
                json!({"tool_choice": choice}),
            )
        };
        assert_eq!(choice("auto".into()), "");
        assert!(
            choice("required".into())
                .ends_with("tool_choice (the model may answer without a call)")
        );
        assert!(
            choice(json!({"type": "function", "function": {"name": "f"}}))
                .contains("need not call it")
        );
    }

    #[test]
    fn what_is_lost_of_the_history_is_noted_for_other_apis_alone() {
        let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
        let result =
            json!({"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": true});
        let messages = json!([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]);
        let body = json!({"messages": messages}).to_string();
        let notes = |to: Api| {
            crate::inbound(Api::Anthropic, body.as_bytes())
                .unwrap()
                .conversation
                .notes_for(to.name())
        };
        assert_eq!(
            notes(Api::OpenaiChat),
            [
                "left out, since openai-chat has no such member of a result: is_error (1 of the results)"
            ]
        );
        assert_eq!(notes(Api::Anthropic), Vec::<String>::new());
        let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"a\":"}});
        let body = json!({"messages": [{"role": "assistant", "tool_calls": [call]}]}).to_string();
        let notes = crate::inbound(Api::OpenaiChat, body.as_bytes())
            .unwrap()
            .conversation
            .notes_for(Api::OpenaiChat.name());
        assert!(
            notes[0].starts_with("the arguments of a call in the history are not a JSON object"),
            "{notes:?}"
        );
    }
}
