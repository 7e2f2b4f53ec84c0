//! Requests of clients: no body makes a reader panic, what was read stays the same when it is
//! written and read again.
//!
//! Input: the client's API, then the body.

use super::line::Line;
use super::{Target, Turn};
use api::{
    Api, Conversation, InboundError, InboundRequest, RequestOptions, inbound, request,
    request_event,
};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "request",
    check,
};

fn options(read: &InboundRequest, from: Api, to: Api) -> RequestOptions {
    RequestOptions {
        model: read.model.clone().unwrap_or_default(),
        tools: read.tools.clone(),
        tool_choice: read.tool_choice.clone(),
        params: read
            .parameters_for(
                from,
                &api::TargetServer {
                    api: to,
                    url: to.base_url(),
                    model: "m",
                },
            )
            .0,
        stream: read.streams,
        ..RequestOptions::default()
    }
}

fn check(bytes: &[u8], turn: Turn) {
    let [which, body @ ..] = bytes else { return };
    let api = [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic][usize::from(*which) % 3];
    let read = match inbound(api, body) {
        Err(InboundError::NotJson(_)) => {
            let is_object =
                serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body).is_ok();
            return assert!(!is_object, "a JSON object is refused as none");
        }
        Err(InboundError::Member { why, .. }) => {
            return assert!(
                why.len() < 500 && !why.chars().any(char::is_control),
                "{why:?}"
            );
        }
        Err(_) => return,
        Ok(read) => read,
    };
    // As lines of a log.
    let lines = read.lines(api, None);
    lines
        .lines()
        .for_each(|line| drop(Line::read(line.to_owned())));
    let (talk, problems) = Conversation::read(&lines);
    assert_eq!(problems, vec![], "{lines}");
    assert_eq!(
        talk.messages.len(),
        read.conversation.messages.len(),
        "{lines}"
    );
    let (same, event) = request_event(lines.lines().next().unwrap()).expect("a request event");
    assert_eq!(
        (same, &event.tool_choice, &event.params, event.streams),
        (api, &read.tool_choice, &read.params, read.streams)
    );
    assert_eq!(
        event.tools.map(|t| t.openai(|_| true)),
        read.tools.as_ref().map(|t| t.openai(|_| true))
    );
    // As requests of every API; what cannot be held is an error with a sentence.
    for (law, to) in (0..).zip(Api::ALL) {
        if !turn.takes(law) {
            continue;
        }
        match request(to, &read.conversation, &options(&read, api, to)) {
            Ok(sent) => {
                let json: Result<serde_json::Map<String, serde_json::Value>, _> =
                    serde_json::from_str(&sent.body);
                assert!(json.is_ok(), "{}: {:?}: {}", to.name(), json, sent.body);
                // What we write can be read, and is written the same again.
                if [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic].contains(&to) {
                    let again = match inbound(to, sent.body.as_bytes()) {
                        Ok(again) => again,
                        // Messages without content are not sent; the upstream says that it got
                        // none.
                        Err(InboundError::Member { why, .. }) if why.contains("no message") => {
                            continue;
                        }
                        Err(e) => panic!("{e}: {}", sent.body),
                    };
                    if let Ok(twice) = request(to, &again.conversation, &options(&again, to, to)) {
                        let third = inbound(to, twice.body.as_bytes())
                            .unwrap_or_else(|e| panic!("{e}: {}", twice.body));
                        if let Ok(thrice) =
                            request(to, &third.conversation, &options(&third, to, to))
                        {
                            assert_eq!(thrice.body, twice.body, "{} is not stable", to.name());
                        }
                    }
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
