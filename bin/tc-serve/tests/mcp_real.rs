//! A service whose tools are those of a server that the makers of the protocol publish. It is looked
//! for as in `mcp_real.rs` of `tool-exec`.

use crate::service::agent::{Agent, FRONTS, Turn, model};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The published server with a tool for everything, if it is installed and `node` is here.
fn everything() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers");
    let folder = std::env::var_os("MCP_SERVERS").map_or_else(beside, PathBuf::from);
    let path = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let servers = "the servers of modelcontextprotocol";
    let is_here = testkit::needs::programs(&["node"])
        && testkit::needs::installed(path.is_file(), servers, "see docs/tools-file.md");
    is_here.then_some(path)
}

#[test]
fn a_published_server_starts_once_for_all_requests_and_ends_with_the_service() {
    let Some(everything) = everything() else {
        return;
    };
    // Each start leaves a line, and the server alone runs in the folder.
    let notes = "cd \"$0\"; echo started >>started; exec node \"$1\" stdio";
    let tools = json!({"mcpServers": {"every": {
        "command": "sh",
        "args": ["-c", notes, "@/", everything],
        "tools": ["echo"],
        "class": "read",
    }}});
    let turns = vec![
        Turn::default().calls("c1", "every__echo", &json!({"message": "over pipes"})),
        Turn::says("It echoes."),
    ];
    let agent = Agent::of(&tools, model(turns), &[]);
    let responses = FRONTS
        .into_iter()
        .filter(|front| front.path == "/v1/responses");
    for front in responses {
        let answer = agent.ask(front, "Hi");
        assert_eq!(answer.status, 200, "{answer:?}");
        for part in ["Echo: over pipes", "It echoes."] {
            assert!(answer.body.contains(part), "{part}: {answer:?}");
        }
    }
    let results: Vec<Value> = agent
        .sessions()
        .iter()
        .flat_map(|session| agent.events(session))
        .filter(|event| event["type"] == "tool_result")
        .collect();
    let outputs: Vec<_> = results.iter().map(|result| &result["output"]).collect();
    assert_eq!(outputs, ["Echo: over pipes"; 2]);
    // The first start was to lock the list of its tools, before the service began.
    assert_eq!(agent.folder.read("started").lines().count(), 2);
    assert_eq!(agent.folder.processes().len(), 1);
    agent.service.signal(rustix::process::Signal::TERM);
    testkit::wait_until("the server ends", || agent.folder.processes().is_empty());
}
