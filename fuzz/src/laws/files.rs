//! Files of users and of strangers: no text makes a reader panic, and each error is one clear line.
//!
//! Input: the kind of file, then its text.

use super::{Target, Turn};
use api::{Conversation, recognise, tape::Tape};
use tool::{Judge, Policy, RequestedCall, Tools, mcp};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "files",
    check,
};

fn says(kind: &str, error: &dyn std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "{kind}: an empty message");
    assert!(text.len() < 3000, "{kind}: {} bytes", text.len());
}

const TOOLS: &str = r#"[{"name":"f","parameters":{"type":"object","properties":{"path":{}}},"exec":{"command":["f","{path}"]}}]"#;

fn check(bytes: &[u8], _: Turn) {
    let [kind, text @ ..] = bytes else { return };
    let text = &*String::from_utf8_lossy(text);
    match kind % 9 {
        0 => match Policy::read(text) {
            Ok(mut policy) => {
                let tools = Tools::read(TOOLS).unwrap();
                if let Err(e) = policy.fit(&tools, "/t", "/w") {
                    says("policy", &e);
                }
                for arguments in [r#"{"path":"a/../b"}"#, r#"{"path":["x",1]}"#, "{}"] {
                    let arguments = tool::Arguments::read(arguments).unwrap();
                    let _ = (policy.decide("f", &arguments), policy.lets_through("f"));
                }
            }
            Err(e) => says("policy", &e),
        },
        1 => match Tools::read(text) {
            Ok(tools) => {
                let list = tools.list(|_| true);
                assert!(
                    serde_json::from_str::<serde_json::Value>(&list).is_ok(),
                    "{list}"
                );
                let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
                let judge = Judge {
                    tools,
                    ..Judge::default()
                };
                for name in names.iter().take(8) {
                    for arguments in [
                        r#"{"a":"x","path":"-y"}"#,
                        "{}",
                        r#"{"a":{"b":[1,"\u0000"]},"q":"%"}"#,
                    ] {
                        let line = format!(
                            r#"{{"type":"tool_call","tool_id":"i","tool_name":{},"arguments":{arguments}}}"#,
                            event::quoted(name)
                        );
                        let _ = judge.look(
                            &RequestedCall::of_event(
                                &event::Scanner::default().read(&line).unwrap(),
                            ),
                            0,
                        );
                    }
                }
            }
            Err(e) => says("tools", &e),
        },
        2 => match Tools::read_beside_servers(text) {
            Ok((_, servers)) => drop(servers.hash()),
            Err(e) => says("servers", &e),
        },
        3 => match mcp::Lock::read(text) {
            Ok(lock) => {
                let written = lock.text();
                assert_eq!(
                    mcp::Lock::read(&written).map(|l| l.text()).ok(),
                    Some(written)
                );
            }
            Err(e) => says("lock", &e),
        },
        4 => {
            let Ok(value) = serde_json::from_str(text) else {
                return;
            };
            match mcp::Definition::read("server", &value) {
                Ok(definition) => {
                    let again = mcp::Definition::read("server", &definition.to_json())
                        .expect("a definition");
                    assert_eq!(again.hash(), definition.hash());
                    let _ = (
                        definition.has_hidden(),
                        mcp::differences(std::slice::from_ref(&definition), &[again]),
                    );
                    let name = mcp::offered_name("server", &definition.tool);
                    assert!(
                        name.len() <= 64
                            && name
                                .bytes()
                                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
                        "{name}"
                    );
                    let _ = definition.entry(&name);
                }
                Err(e) => says("definition", &e),
            }
        }
        5 => {
            if let Err(e) = tag::Dialects::default().add("x.toml", text) {
                says("dialect", &e);
            }
        }
        6 => match Tape::read(text) {
            Ok(_) => {}
            Err(e) => says("tape", &e),
        },
        7 => {
            let (talk, problems) = Conversation::read(text);
            problems.iter().for_each(|p| says("log", &p.what));
            let _ = talk.steps();
            for api in api::Api::ALL {
                let options = api::RequestOptions {
                    model: "m".into(),
                    ..Default::default()
                };
                match api::request(api, &talk, &options) {
                    Ok(sent) => assert!(
                        serde_json::from_str::<serde_json::Value>(&sent.body).is_ok(),
                        "{}",
                        sent.body
                    ),
                    Err(e) => says("request", &e),
                }
            }
        }
        _ => {
            let _ = (
                recognise(text.as_bytes(), false),
                api::RecordingForm::of(text.as_bytes()),
            );
            match mcp::Servers::read(text) {
                Ok(servers) => drop(servers.hash()),
                Err(e) => says("servers", &e),
            }
        }
    }
}
