//! What a client asks for besides messages and tools, in the words of another API.

mod convert;
mod table;

use super::request::InboundRequest;
use crate::Api;
use serde_json::{Map, Value, json};
use table::{ROWS, Row};

/// The members of a request to `to` that mean what `params`, of a client that speaks `from`, ask for. The same API gets all of them; another gets
/// those that it knows, under its own names. Also returns the names of those that were left out, but for those that ask for what is the case
/// anyway. [`InboundRequest::parameters_for`] does the same for a whole request, and knows more.
pub fn parameters_for(from: Api, to: Api, params: &Map<String, Value>) -> (Vec<(String, Value)>, Vec<String>) {
    if from == to {
        return (params.iter().map(|(k, v)| (k.clone(), v.clone())).collect(), Vec::new());
    }
    let mut rest = params.clone();
    let mut out = Map::new();
    let mut left_out = Vec::new();
    for row in ROWS {
        for place in row.readable(from) {
            let Some(value) = take(&mut rest, place) else { continue };
            if Row::asks_for_nothing(place, &value) {
                continue;
            }
            let written = row.writable(to).and_then(|to_place| {
                let value = (row.convert)(from, to, value)?;
                put(&mut out, to_place, value)
            });
            if written.is_none() {
                left_out.push(place.to_owned());
            }
        }
    }
    // The choice itself is not among the parameters, see `InboundRequest::tool_choice`.
    rest.shift_remove("tool_choice");
    for (name, value) in rest {
        match value {
            Value::Object(members) if row_has_parts_of(from, &name) => {
                let parts = members.into_iter().map(|(part, value)| (format!("{name}.{part}"), value));
                left_out
                    .extend(parts.filter(|(name, value)| !Row::asks_for_nothing(name, value)).map(|(name, _)| name));
            }
            value if Row::asks_for_nothing(&name, &value) => {}
            _ => left_out.push(name),
        }
    }
    (out.into_iter().collect(), left_out)
}

/// Whether a row of the table has a part of the member `name`.
fn row_has_parts_of(api: Api, name: &str) -> bool {
    ROWS.iter()
        .flat_map(|row| row.readable(api))
        .any(|place| place.split_once('.').is_some_and(|(first, _)| first == name))
}

/// Takes the value at `place`, a name or two with a dot between them. An object that is empty then goes too.
fn take(members: &mut Map<String, Value>, place: &str) -> Option<Value> {
    let Some((first, second)) = place.split_once('.') else { return members.shift_remove(place) };
    let inner = members.get_mut(first)?.as_object_mut()?;
    let value = inner.shift_remove(second);
    if inner.is_empty() {
        members.shift_remove(first);
    }
    value
}

/// Puts a value at `place`, unless one is there.
fn put(members: &mut Map<String, Value>, place: &str, value: Value) -> Option<()> {
    let (inner, name) = match place.split_once('.') {
        Some((first, second)) => (members.entry(first).or_insert_with(|| json!({})).as_object_mut()?, second),
        None => (members, place),
    };
    if inner.contains_key(name) {
        return None;
    }
    match (name, value) {
        // One member of the client's becomes several.
        ("*", Value::Object(several)) => inner.extend(several),
        (name, value) => _ = inner.insert(name.to_owned(), value),
    }
    Some(())
}

/// Whether an address is OpenAI's own, or OpenAI's models at Azure's (`NAME.openai.azure.com`).
fn is_openai(url: &str) -> bool {
    let authority =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    ["openai.com", "azure.com"]
        .iter()
        .any(|domain| host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.')))
}

impl InboundRequest {
    /// The members of a request to `to`, which is served at `url`, that mean what this one, of a client that speaks `from`, asks for besides
    /// messages and tools, and the names of those that were left out.
    pub fn parameters_for(&self, from: Api, to: Api, url: &str) -> (Vec<(String, Value)>, Vec<String>) {
        let (mut params, mut left_out) = parameters_for(from, to, &self.params);
        if to == Api::OpenaiChat && from != to && !is_openai(url) {
            // Many other servers ignore the name that OpenAI's newer models require.
            for (name, _) in params.iter_mut().filter(|(name, _)| name == "max_completion_tokens") {
                *name = "max_tokens".to_owned();
            }
        }
        if from != to && self.tools.is_none() {
            params.retain(|(name, _)| name != "parallel_tool_calls");
        }
        let is_serial = self.params.get("parallel_tool_calls").and_then(Value::as_bool) == Some(false);
        if to == Api::Anthropic && from != to && is_serial {
            left_out.retain(|name| name != "parallel_tool_calls");
            if self.tools.is_some() {
                // https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use, "Parallel tool use"
                let mut choice = match self.tool_choice.as_deref() {
                    None | Some("auto") => json!({"type": "auto"}),
                    Some("none") => return (params, left_out),
                    Some("required") => json!({"type": "any"}),
                    Some(name) => json!({"type": "tool", "name": name}),
                };
                choice["disable_parallel_tool_use"] = true.into();
                params.push(("tool_choice".to_owned(), choice));
            }
        }
        (params, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openai_gets_its_own_name_of_the_most_tokens() {
        let name = |from: Api, member: &str, url: &str| {
            let params = Map::from_iter([(member.to_owned(), json!(9)), ("temperature".to_owned(), json!(0.5))]);
            let request = InboundRequest { params, ..InboundRequest::default() };
            let (params, left_out) = request.parameters_for(from, Api::OpenaiChat, url);
            assert_eq!((params.len(), &params[0].1, left_out), (2, &json!(9), vec![]), "{url}");
            params[0].0.clone()
        };
        for (from, member) in [(Api::Anthropic, "max_tokens"), (Api::OpenaiResponses, "max_output_tokens")] {
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
        // A chat client knows the name that its server takes.
        for member in ["max_tokens", "max_completion_tokens"] {
            for url in [Api::OpenaiChat.base_url(), "http://127.0.0.1:8080/v1"] {
                assert_eq!(name(Api::OpenaiChat, member, url), member);
            }
        }
    }
}
