//! What users report of proxies between a model and a client: each folder of `fixtures/serve` is a
//! case, named after the row of the list of bugs that it belongs to.
//!
//! `about.md` says what broke and what a client needs. `upstream.API.EXT` is what the upstream
//! sends, and `request.API.json` what the client asks, both optional; `tools.json` are the tools of
//! a request that is not here. The expected files are the stream and the whole answer of each front
//! that the case concerns (`chat.sse`, `chat.json`, …; an answer that is an error begins with its
//! status), and for a request `read.json`: what is understood of it, and the request that a chat
//! upstream gets. Every answer also keeps the rules of the strict readers.
//! `UPDATE=1 cargo test --test fixtures serve_bugs/NAME` rewrites the files.

use crate::serve::pipe::{self, Asked};
use crate::serve::read;
use api::{AnswerForm, Api, End, Front, InboundRequest, RequestOptions, inbound, request};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use testkit::golden;
use testkit::trials::{self, Trial};

pub(crate) fn trials() -> Vec<Trial<'static>> {
    let cases = testkit::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/serve"));
    trials::each("serve_bugs", cases, |case| run(case))
}

/// Runs one case; returns what differs.
fn run(case: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    if !case.join("about.md").exists() {
        wrong.push("it has no about.md".to_owned());
    }
    let asking = file(case, "request.").map(|(api, body)| (api, inbound(api, &body)));
    if let Some((api, read)) = &asking {
        let read = match read {
            Ok(request) => understood(request),
            Err(why) => json!({ "refused": why.to_string() }),
        };
        let text = format!("{}\n", serde_json::to_string_pretty(&read).expect("JSON"));
        wrong.extend(golden::compare(&case.join("read.json"), text.as_bytes()));
        wrong.extend(
            (read.get("refused").is_some())
                .then(|| format!("a request of {} is refused", api.name())),
        );
    }
    let Some((upstream, body)) = file(case, "upstream.") else {
        return wrong;
    };
    for mut asked in Asked::all() {
        match &asking {
            Some((api, _)) if api.name() != asked.front.name() => continue,
            Some((_, Ok(request))) => {
                asked.tools = request.tools.as_ref().map(|tools| tools.openai(|_| true));
                asked.options.custom_tools.clone_from(&request.custom_tools);
                asked.options.namespaced_tools = request.namespaced_tools.clone();
                asked.options.include_usage = request.include_usage;
            }
            _ => asked.tools = fs::read_to_string(case.join("tools.json")).ok(),
        }
        let answered = pipe::answer(upstream, [&body[..]], End::Eof, &asked);
        let name = match asked.front {
            Front::Chat => "chat",
            Front::Responses => "responses",
            Front::Messages => "messages",
        };
        let ending = if asked.form == AnswerForm::Stream {
            "sse"
        } else {
            "json"
        };
        let status = answered
            .refused
            .map_or_else(String::new, |status| format!("HTTP {status}\n"));
        let text = format!("{status}{}\n", answered.text().trim_end_matches('\n'));
        wrong.extend(golden::compare(
            &case.join(format!("{name}.{ending}")),
            text.as_bytes(),
        ));
        let rules = read::read(&asked, &answered).wrong;
        wrong.extend(
            rules
                .into_iter()
                .map(|why| format!("{name}.{ending}: {why}")),
        );
    }
    wrong
}

/// The file of a case whose name begins with `start` and then names an API.
fn file(case: &Path, start: &str) -> Option<(Api, Vec<u8>)> {
    let entry = fs::read_dir(case)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .find(|entry| entry.file_name().to_string_lossy().starts_with(start))?;
    let name = entry.file_name().to_string_lossy().into_owned();
    let api = name[start.len()..]
        .split('.')
        .next()
        .and_then(Api::from_name);
    Some((
        api.unwrap_or_else(|| panic!("{name} does not name an API")),
        fs::read(entry.path()).expect("a file"),
    ))
}

/// What is understood of a request, and what a chat upstream gets.
fn understood(read: &InboundRequest) -> Value {
    let options = RequestOptions {
        model: read.model.clone().unwrap_or_default(),
        tools: read.tools.clone(),
        tool_choice: read.tool_choice.clone(),
        stream: read.streams,
        ..RequestOptions::default()
    };
    let sent =
        request(Api::OpenaiChat, &read.conversation, &options).expect("a request that can be sent");
    let body: Value = serde_json::from_str(&sent.body).expect("a body of JSON");
    json!({
        "custom_tools": read.custom_tools,
        "params": read.params,
        "streams": read.streams,
        "include_usage": read.include_usage,
        "notes": ([&read.notes[..], &read.foreign_notes[..]].concat()),
        "upstream": body,
    })
}
