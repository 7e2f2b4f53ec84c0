//! Converts setting values between APIs.

use crate::Api;
use serde_json::{Value, json};

/// Keeps the value unchanged.
#[expect(clippy::unnecessary_wraps, reason = "a column of the table")]
pub(crate) fn same(_: Api, _: Api, value: Value) -> Option<Value> {
    Some(value)
}

/// Accepts a non-negative integer. Ollama and others use -1 for "no limit", which other APIs
/// reject.
pub(crate) fn count(_: Api, _: Api, value: Value) -> Option<Value> {
    value.as_u64().map(|_| value)
}

/// Accepts a number.
pub(crate) fn number(_: Api, _: Api, value: Value) -> Option<Value> {
    value.as_f64().map(|_| value)
}

/// Limits a temperature to 1 for Anthropic and Cohere. The other APIs allow up to 2.
pub(crate) fn temperature(_: Api, to: Api, value: Value) -> Option<Value> {
    let is_too_hot = matches!(to, Api::Anthropic | Api::Cohere) && value.as_f64()? > 1.0;
    value
        .as_f64()
        .map(|_| if is_too_hot { 1.into() } else { value })
}

/// Accepts a string.
pub(crate) fn word(_: Api, _: Api, value: Value) -> Option<Value> {
    value.as_str().map(|_| value.clone())
}

/// Accepts an object.
pub(crate) fn object(_: Api, _: Api, value: Value) -> Option<Value> {
    value.is_object().then_some(value)
}

/// Accepts the id of the client's user. OpenAI rejects ids of more than 64 characters
/// (<https://github.com/maximhq/bifrost/pull/1000>), and Claude Code sends longer ones.
pub(crate) fn user(_: Api, to: Api, value: Value) -> Option<Value> {
    let has_room = to == Api::Anthropic || value.as_str()?.chars().count() <= 64;
    (has_room && value.is_string()).then_some(value)
}

/// Accepts a service tier, except Anthropic's, whose values have other meanings.
pub(crate) fn tier(from: Api, _: Api, value: Value) -> Option<Value> {
    (from != Api::Anthropic && value.is_string()).then_some(value)
}

/// Converts stop sequences to a list. Anthropic rejects sequences of only white space.
pub(crate) fn stops(_: Api, to: Api, value: Value) -> Option<Value> {
    let list = if value.is_string() {
        vec![value]
    } else {
        value.as_array()?.clone()
    };
    let is_usable = |stop: &Value| {
        stop.as_str()
            .is_some_and(|text| to != Api::Anthropic || !text.trim().is_empty())
    };
    let list: Vec<Value> = list.into_iter().filter(is_usable).collect();
    (!list.is_empty()).then(|| list.into())
}

/// Converts whether the model may call several tools at once. Anthropic's member is negated.
pub(crate) fn parallel(from: Api, _: Api, value: Value) -> Option<Value> {
    let value = value.as_bool()?;
    Some(
        if from == Api::Anthropic {
            !value
        } else {
            value
        }
        .into(),
    )
}

/// Returns the members of a response format that `to` does not support.
pub(crate) fn lost_of_format(from: Api, to: Api, value: &Value) -> Vec<&'static str> {
    let described = if from == Api::OpenaiChat {
        value.get("json_schema")
    } else {
        Some(value)
    };
    let has = |name: &&&str| {
        described
            .and_then(|described| described.get(**name))
            .is_some_and(|value| !value.is_null())
    };
    let has_all = matches!(to, Api::OpenaiChat | Api::OpenaiResponses | Api::Mistral);
    let names: &[&str] = if has_all {
        &[]
    } else {
        &["strict", "description"]
    };
    names.iter().filter(has).copied().collect()
}

/// Converts a response format: any JSON object, or JSON that matches a schema.
pub(crate) fn format(from: Api, to: Api, value: Value) -> Option<Value> {
    let kind = value.get("type")?.as_str()?;
    let described = if from == Api::OpenaiChat {
        value.get("json_schema")
    } else {
        Some(&value)
    };
    let schema = described
        .and_then(|described| described.get("schema"))
        .filter(|schema| schema.is_object());
    if !matches!(
        (kind, schema),
        ("json_object", _) | ("json_schema", Some(_))
    ) {
        return None;
    }
    let schema = schema.filter(|_| kind == "json_schema");
    let Some(schema) = schema else {
        return match to {
            Api::OpenaiChat | Api::OpenaiResponses | Api::Mistral | Api::Cohere => {
                Some(json!({"type": "json_object"}))
            }
            Api::Gemini => Some(json!({"responseMimeType": "application/json"})),
            Api::Ollama => Some("json".into()),
            // Anthropic supports JSON only with a schema.
            Api::Anthropic => None,
        };
    };
    let mut named = json!({"name": "answer"});
    for key in ["name", "description", "strict"] {
        if let Some(value) = described
            .and_then(|described| described.get(key))
            .filter(|value| !value.is_null())
        {
            named[key] = value.clone();
        }
    }
    named["schema"] = schema.clone();
    Some(match to {
        Api::OpenaiChat | Api::Mistral => json!({"type": "json_schema", "json_schema": named}),
        Api::OpenaiResponses => {
            let mut out = json!({"type": "json_schema"});
            if let (Some(out), Value::Object(named)) = (out.as_object_mut(), named) {
                out.extend(named);
            }
            out
        }
        Api::Anthropic => json!({"type": "json_schema", "schema": schema}),
        Api::Gemini => {
            json!({"responseMimeType": "application/json", "responseJsonSchema": schema})
        }
        Api::Ollama => schema.clone(),
        Api::Cohere => json!({"type": "json_object", "schema": schema}),
    })
}
