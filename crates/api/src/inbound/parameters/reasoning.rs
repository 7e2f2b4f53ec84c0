//! Converts the amount of reasoning, which each API and each model family configures differently.
//!
//! | API | parameter | source |
//! | --- | --- | --- |
//! | openai-chat, openai-responses | `reasoning_effort`, `reasoning.effort`; models before the o-series reject it | <https://platform.openai.com/docs/guides/reasoning> |
//! | openai-chat at another server | `reasoning_effort` up to `high`, and `enable_thinking` and `thinking_budget` for the template | <https://docs.sglang.io/docs/advanced_features/thinking_budget>, <https://docs.vllm.ai/en/latest/features/reasoning_outputs/> |
//! | anthropic | `output_config.effort`, which models before Opus 4.5 and small ones before Haiku 5.5 reject, and `thinking`: `adaptive`, or of models before Opus 4.6 with a budget; how the newest are told not to think is in `anthropic/models.rs` | <https://platform.claude.com/docs/en/build-with-claude/effort>, <https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking> |
//! | gemini | `thinkingLevel` of Gemini 3, `thinkingBudget` of Gemini 2.5 | <https://ai.google.dev/gemini-api/docs/thinking>, and for the budgets of an effort <https://ai.google.dev/gemini-api/docs/openai#thinking> |
//! | ollama | `think`: a word or whether | <https://docs.ollama.com/capabilities/thinking> |
//! | cohere | `thinking` | <https://docs.cohere.com/docs/reasoning> |

use crate::Api;
use crate::anthropic::models::{DISABLED, Thinking, claude};
use crate::anthropic::request::max_tokens;
use crate::conversation::{Conversation, PastBlock};
use crate::inbound::parameters::table::{LeftOut, TargetServer, WhyDropped, put, take};
use crate::inbound::request::InboundRequest;
use serde_json::{Map, Value, json};

/// The reasoning that a client asks for.
#[derive(Debug, Default)]
struct ReasoningRequest {
    /// The parameters' names in the client's request, for the log.
    names: Vec<&'static str>,
    /// The effort: `none`, `minimal`, `low`, `medium`, `high` and above.
    effort: Option<String>,
    /// Whether the model reasons. `None` if unspecified or if the model decides (`adaptive`).
    is_on: Option<bool>,
    /// The maximum number of reasoning tokens.
    budget: Option<u64>,
    /// Whether `effort` is one of OpenAI's values.
    is_openai_word: bool,
}

/// Moves the reasoning parameters from `rest` to `out`, converted for `to`.
pub(crate) fn convert(
    from: Api,
    to: &TargetServer<'_>,
    rest: &mut Map<String, Value>,
    out: &mut Map<String, Value>,
    left_out: &mut LeftOut,
) {
    let asked = ReasoningRequest::take(from, rest, left_out);
    if asked.names.is_empty() {
        return;
    }
    match asked.members(to) {
        Ok(members) => {
            for (place, value) in members {
                // A value that the client set explicitly has priority.
                let _ = put(out, place, value);
            }
        }
        Err(why) => asked.names.iter().for_each(|name| left_out.add(why, name)),
    }
}

impl ReasoningRequest {
    /// Removes and returns the reasoning parameters in the form of `from`.
    fn take(from: Api, rest: &mut Map<String, Value>, left_out: &mut LeftOut) -> ReasoningRequest {
        let mut asked = ReasoningRequest {
            is_openai_word: from != Api::Anthropic,
            ..ReasoningRequest::default()
        };
        let place = match from {
            Api::OpenaiChat => "reasoning_effort",
            Api::OpenaiResponses => "reasoning.effort",
            Api::Anthropic => "output_config.effort",
            _ => return asked,
        };
        if let Some(Value::String(effort)) = take(rest, place) {
            asked.names.push(place);
            asked.effort = Some(effort);
        }
        if from != Api::Anthropic {
            return asked;
        }
        match take(rest, "thinking.type").as_ref().and_then(Value::as_str) {
            Some("disabled") => asked.is_on = Some(false),
            Some("enabled") => asked.is_on = Some(true),
            Some("adaptive") if asked.effort.is_none() => return asked,
            Some("adaptive") => {}
            Some(_) => {
                left_out.add(WhyDropped::Value, "thinking");
                return asked;
            }
            None => return asked,
        }
        asked.budget = take(rest, "thinking.budget_tokens")
            .as_ref()
            .and_then(Value::as_u64);
        asked.names.push("thinking");
        asked
    }

    /// Returns the members for the server; none if they would request its default.
    fn members(&self, to: &TargetServer<'_>) -> Result<Vec<(&'static str, Value)>, WhyDropped> {
        let is_model = |starts: &[&str]| {
            let name = to.model.rsplit('/').next().unwrap_or_default();
            starts.iter().any(|start| name.starts_with(start))
        };
        match to.api {
            Api::OpenaiChat if !to.is_openai() => {
                let mut members = Vec::new();
                if self.effort.is_some() && !self.is_off() {
                    members.push((
                        "reasoning_effort",
                        self.level(&["low", "medium", "high"]).into(),
                    ));
                }
                if self.is_on.is_some() || self.is_off() {
                    members.push((
                        "chat_template_kwargs.enable_thinking",
                        (!self.is_off()).into(),
                    ));
                }
                if let Some(budget) = self.budget {
                    members.push(("chat_template_kwargs.thinking_budget", budget.into()));
                }
                Ok(members)
            }
            Api::OpenaiChat | Api::OpenaiResponses => {
                if is_model(&["gpt-3", "gpt-4", "chatgpt-"]) {
                    return Err(WhyDropped::Model);
                }
                let place = if to.api == Api::OpenaiChat {
                    "reasoning_effort"
                } else {
                    "reasoning.effort"
                };
                let effort = match &self.effort {
                    Some(effort) if self.is_openai_word => effort,
                    // The lowest effort that the model supports.
                    _ if self.is_off() && is_model(&["gpt-5."]) => "none",
                    _ if self.is_off() && is_model(&["gpt-5"]) => "minimal",
                    // Older models reject the values above.
                    _ => self.level(&["low", "medium", "high"]),
                };
                Ok(vec![(place, effort.into())])
            }
            Api::Anthropic if self.is_off() => {
                Ok(match claude(to.model).map(|family| family.thinking) {
                    Some(Thinking::Unless(off)) => vec![("thinking", json!({"type": off}))],
                    Some(Thinking::Always) => vec![("output_config.effort", "low".into())],
                    _ => vec![],
                })
            }
            Api::Anthropic => {
                let mut members = Vec::new();
                let family = claude(to.model);
                if family.is_none_or(|family| family.takes_effort) {
                    let level = self.level(&["low", "medium", "high", "xhigh", "max"]);
                    members.push(("output_config.effort", level.into()));
                }
                // Without `thinking`, the effort only applies to the answer.
                let thinking = match family.map_or(Thinking::Never, |family| family.thinking) {
                    Thinking::Never => None,
                    Thinking::Budget => {
                        Some(json!({"type": "enabled", "budget_tokens": self.tokens()}))
                    }
                    // Newer models omit the text unless it is requested.
                    _ => Some(json!({"type": "adaptive", "display": "summarized"})),
                };
                members.extend(thinking.map(|thinking| ("thinking", thinking)));
                match members.is_empty() {
                    true => Err(WhyDropped::Model),
                    false => Ok(members),
                }
            }
            Api::Gemini if is_model(&["gemini-1", "gemini-2.0"]) => Err(WhyDropped::Model),
            Api::Gemini => {
                let budget = self.budget.or_else(|| (self.is_off()).then_some(0));
                Ok(vec![match budget {
                    Some(budget) => (
                        "generationConfig.thinkingConfig",
                        json!({"thinkingBudget": budget}),
                    ),
                    None if is_model(&["gemini-2.5"]) => {
                        let budget = self.tokens();
                        (
                            "generationConfig.thinkingConfig",
                            json!({"thinkingBudget": budget}),
                        )
                    }
                    None => {
                        let level = self.level(&["minimal", "low", "medium", "high"]);
                        (
                            "generationConfig.thinkingConfig",
                            json!({"thinkingLevel": level}),
                        )
                    }
                }])
            }
            Api::Ollama => Ok(vec![(
                "think",
                match &self.effort {
                    _ if self.is_off() => false.into(),
                    Some(_) => self.level(&["low", "medium", "high"]).into(),
                    None => true.into(),
                },
            )]),
            Api::Cohere => {
                let kind = if self.is_off() { "disabled" } else { "enabled" };
                Ok(vec![(
                    "thinking",
                    match self.budget {
                        Some(budget) => json!({"type": kind, "token_budget": budget}),
                        None => json!({"type": kind}),
                    },
                )])
            }
            Api::Mistral => Err(WhyDropped::Lacks),
        }
    }

    /// Returns the token budget that corresponds to the effort.
    fn tokens(&self) -> u64 {
        match self.level(&["low", "medium", "high"]) {
            "low" => LEAST_BUDGET,
            "medium" => 8192,
            _ => 24576,
        }
    }

    fn is_off(&self) -> bool {
        self.is_on == Some(false) || self.effort.as_deref() == Some("none")
    }

    /// Returns the closest effort in `known`, which is in ascending order. A budget is converted to
    /// the effort with a similar amount of reasoning.
    fn level<'k>(&self, known: &[&'k str]) -> &'k str {
        const ALL: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        let wanted = match (&self.effort, self.budget) {
            (Some(effort), _) => effort,
            (None, _) if self.is_on == Some(false) => "low",
            (None, Some(10_000..)) => "high",
            (None, Some(5_000..) | None) => "medium",
            (None, Some(_)) => "low",
        };
        let rank = |word: &str| ALL.iter().position(|other| *other == word).unwrap_or(4);
        let wanted = rank(wanted);
        // Takes the closest value, and the higher one of two.
        let nearest = known
            .iter()
            .rev()
            .min_by_key(|word| rank(word).abs_diff(wanted));
        nearest.copied().unwrap_or("high")
    }
}

/// The minimum budget that Anthropic accepts, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// Makes a request's members and `thinking` compatible with an Anthropic model, or drops
/// `thinking`. A model that reasons accepts neither a temperature nor a forced tool, and with a
/// budget a continued turn must start with signed reasoning
/// (<https://platform.claude.com/docs/en/build-with-claude/extended-thinking>).
pub(crate) fn fit_thinking(
    request: &InboundRequest,
    model: &str,
    params: &mut Vec<(String, Value)>,
    left_out: &mut LeftOut,
) {
    let family = claude(model).map_or(Thinking::Never, |family| family.thinking);
    let is_forced = request.is_tool_forced() && family.can_be_forced();
    let mut members = Map::from_iter(std::mem::take(params));
    let mut thinking = members.shift_remove("thinking");
    let is = |thinking: &Option<Value>, kind: &str| {
        thinking.as_ref().is_some_and(|asked| asked["type"] == kind)
    };
    if is_forced && !is(&thinking, DISABLED)
        || is(&thinking, "enabled") && is_turn_without_reasoning(&request.conversation)
    {
        if thinking.take().is_some() {
            left_out.add(WhyDropped::NoThinking, "thinking");
        }
        let is_on = matches!(family, Thinking::Unless(_));
        thinking = is_on.then(|| json!({"type": DISABLED}));
    }
    if is(&thinking, DISABLED)
        && let Some(effort) = members.get_mut("output_config").map(|c| &mut c["effort"])
        && (effort == "xhigh" || effort == "max")
    {
        // With a higher effort the model cannot turn reasoning off.
        *effort = "high".into();
    }
    members.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
    if !fit_budget(&mut members, max_tokens(model)) {
        left_out.add(WhyDropped::NoThinking, "thinking");
    }
    let why = match members.contains_key("thinking") {
        _ if !family.takes_sampling() => Some(WhyDropped::Model),
        true => Some(WhyDropped::Thinks),
        false => None,
    };
    let is_taken = |name: &str, value: &Value| match name {
        "temperature" => value.as_f64() == Some(1.0),
        "top_p" if family.takes_sampling() => value.as_f64().is_some_and(|p| p >= 0.95),
        "top_p" => value.as_f64() == Some(1.0),
        name => name != "top_k",
    };
    for (name, value) in members {
        match why {
            Some(why) if !is_taken(&name, &value) => left_out.add(why, &name),
            _ => params.push((name, value)),
        }
    }
}

/// Reduces the budget of `thinking` to fit into `max_tokens` (`most` by default), which includes
/// the reasoning tokens. If not even the minimum budget fits, removes `thinking` and returns false.
pub(crate) fn fit_budget(members: &mut Map<String, Value>, most: u64) -> bool {
    let asked = members.get("max_tokens").and_then(Value::as_u64);
    let room = asked.unwrap_or(most).saturating_sub(LEAST_BUDGET);
    let thinking = members.get_mut("thinking");
    let Some(budget) = thinking.and_then(|thinking| thinking.get_mut("budget_tokens")) else {
        return true;
    };
    if room < LEAST_BUDGET {
        members.shift_remove("thinking");
        return false;
    }
    *budget = budget.as_u64().unwrap_or(room).min(room).into();
    true
}

/// Whether the conversation ends with tool results in a turn that has no reasoning from Anthropic.
fn is_turn_without_reasoning(talk: &Conversation) -> bool {
    let mut turn = talk
        .messages
        .iter()
        .rev()
        .take_while(|m| m.role() != "user");
    turn.any(|message| {
        let is_signed = |block: &PastBlock<'_>| block.data(Api::Anthropic.name()).is_some();
        message.role() == "assistant" && !message.blocks().iter().any(is_signed)
    })
}
