//! Requests of clients, as `fixtures/requests` has them: each body beside what is read from it.
//! `UPDATE=1` writes that anew.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolpipe_api::{Api, Conversation, InboundRequest, Message, TargetServer, inbound};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests")
}

/// The bodies of `api`, by their paths.
fn bodies(api: Api) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join(api.name())).unwrap();
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    paths
}

const APIS: [Api; 3] = [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic];

/// What is read from a body: the lines for a pipeline, and what the lines do not have.
fn shown(api: Api, request: &InboundRequest) -> String {
    let mut out = request.lines(api, None);
    for custom in &request.custom_tools {
        writeln!(out, "# custom: {custom}").unwrap();
    }
    for tool in &request.namespaced_tools {
        writeln!(
            out,
            "# namespace: {} is {} of {}",
            tool.full_name, tool.name, tool.namespace
        )
        .unwrap();
    }
    for tool in &request.provider_tools {
        writeln!(out, "# provider: {tool}").unwrap();
    }
    if request.include_usage {
        writeln!(out, "# include_usage").unwrap();
    }
    for reference in &request.references {
        writeln!(
            out,
            "# reference: {} is {:?} {}",
            reference.member, reference.kind, reference.id
        )
        .unwrap();
    }
    for note in &request.notes {
        writeln!(out, "# note: {note}").unwrap();
    }
    for note in &request.foreign_notes {
        writeln!(out, "# note for other APIs: {note}").unwrap();
    }
    if let Err(missing) = request.check(api, None) {
        writeln!(out, "# of a command: {missing}").unwrap();
    }
    out
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn each_body_is_read_as_recorded() {
    let mut wrong = Vec::new();
    for api in APIS {
        let paths = bodies(api);
        assert!(paths.len() > 3, "{}", api.name());
        for path in paths {
            let body = std::fs::read(&path).unwrap();
            let found = match inbound(api, &body) {
                Ok(request) => shown(api, &request),
                Err(e) => format!("# refused: {e}\n"),
            };
            let want = path.with_extension("want");
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&want, &found).unwrap();
            } else if std::fs::read_to_string(&want).unwrap_or_default() != found {
                wrong.push(format!("{}:\n{found}", name(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What each API gets of `params`, of a client that speaks `from`: a line for each, and the names
/// of what is left out.
fn mapped(from: Api, params: &serde_json::Map<String, serde_json::Value>) -> String {
    let mut out = String::new();
    let request = InboundRequest {
        params: params.clone(),
        tools: Some(Arc::default()),
        ..InboundRequest::default()
    };
    let models = |api| match api {
        Api::OpenaiChat | Api::OpenaiResponses => "gpt-5",
        Api::Anthropic => "claude-opus-4-6",
        Api::Gemini => "gemini-3-pro",
        _ => "m",
    };
    let own = Api::ALL.map(|api| TargetServer {
        api,
        url: api.base_url(),
        model: models(api),
    });
    let other = TargetServer {
        api: Api::OpenaiChat,
        url: "http://localhost:8080/v1",
        model: "m",
    };
    for target in own.into_iter().chain([other]) {
        let to = target.api;
        let (members, left_out) = request.parameters_for(from, &target);
        let members: serde_json::Map<_, _> = members.into_iter().collect();
        if from == to {
            assert_eq!(
                (&members, left_out.as_slice()),
                (params, &[][..]),
                "the same API gets all"
            );
            continue;
        }
        let name = if target.url == other.url {
            "another openai-chat"
        } else {
            to.name()
        };
        writeln!(out, "  {name}: {}", serde_json::Value::from(members)).unwrap();
        left_out
            .iter()
            .for_each(|note| writeln!(out, "    {note}").unwrap());
    }
    out
}

#[test]
fn each_api_gets_what_it_knows() {
    for api in APIS {
        let path = root()
            .join("parameters")
            .join(format!("{}.ndjson", api.name()));
        let mut found = String::new();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let params = serde_json::from_str(line).unwrap();
            write!(found, "{line}\n{}", mapped(api, &params)).unwrap();
        }
        let want = path.with_extension("want");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&want, &found).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&want).unwrap(),
            found,
            "{}",
            api.name()
        );
    }
}

#[test]
fn tokens_are_estimated_from_everything_that_a_model_reads() {
    let count = |body: serde_json::Value| {
        inbound(Api::Anthropic, body.to_string().as_bytes())
            .unwrap()
            .estimated_tokens()
    };
    let body = |content: serde_json::Value| serde_json::json!({"messages": [{"role": "user", "content": content}]});
    let plain = count(body("x".repeat(700).into()));
    assert_eq!(plain, 205);
    let image = serde_json::json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(100_000)}}]);
    assert_eq!(count(body(image)), 1605);
    let mut with_tools = body("x".repeat(700).into());
    with_tools["tools"] = serde_json::json!([{"name": "f", "description": "y".repeat(700), "input_schema": {"type": "object"}}]);
    assert!(count(with_tools.clone()) > 400);
    let result = serde_json::json!([{"type": "tool_result", "tool_use_id": "a", "content": "z".repeat(700)}]);
    assert!(count(body(result)) > 200);
    with_tools["system"] = "s".repeat(700).into();
    assert!(count(with_tools.clone()) > 600);
    with_tools["system"] = serde_json::json!([{"type": "text", "text": "s".repeat(700)}]);
    assert!(count(with_tools) > 600);
    // The examples of https://platform.claude.com/docs/en/build-with-claude/token-counting, and
    // what the page says that they have.
    let hello = serde_json::json!({"model": "claude-sonnet-4-5", "system": "You are a scientist",
            "messages": [{"role": "user", "content": "Hello, Claude"}]});
    let weather = serde_json::json!({"model": "claude-sonnet-4-5", "tools": [{"name": "get_weather",
            "description": "Get the current weather in a given location", "input_schema": {"type": "object",
                "properties": {"location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}},
                "required": ["location"]}}],
            "messages": [{"role": "user", "content": "What's the weather like in San Francisco?"}]});
    assert_eq!(
        (count(hello), count(weather)),
        (20, 441),
        "the page has 14 and 403"
    );
}

/// A client that has no state sends its history again, perhaps through another API: what the
/// service kept of it is found at its beginning.
#[test]
fn what_a_session_kept_is_the_beginning_of_what_its_client_sends_next() {
    let mut seen = 0;
    for api in APIS {
        for path in bodies(api) {
            let Ok(asked) = inbound(api, &std::fs::read(&path).unwrap()) else {
                continue;
            };
            let talk = &asked.conversation;
            let lines = asked.session_lines(api, None, 0);
            let (kept, problems) = Conversation::read(&lines);
            assert!(problems.is_empty(), "{}", name(&path));
            let (_, place) = kept.common_beginning(talk);
            let is_counted = |message: &&Message| {
                !matches!(message.role(), "system" | "developer")
                    && (message.role() != "assistant"
                        || !message.text().is_empty()
                        || !message.calls().is_empty())
            };
            let last = talk
                .messages
                .iter()
                .rposition(|message| is_counted(&message));
            assert_eq!(place, last.map_or(0, |last| last + 1), "{}", name(&path));
            seen += place;
            // With one more message only that one is new.
            let mut next = talk.clone();
            next.push_user("And then?");
            assert_eq!(kept.common_beginning(&next).1, place, "{}", name(&path));
        }
    }
    assert!(seen > 40, "{seen}");
}
