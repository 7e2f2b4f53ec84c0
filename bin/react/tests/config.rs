//! The configuration file, as react uses it.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use testkit::{Scratch, Server, root};

/// A home with a configuration, and a model behind it.
struct Home {
    folder: Scratch,
    model: Server,
}

impl Home {
    fn new(react: &str) -> Home {
        let folder = Scratch::new();
        let model = Server::counting();
        fs::create_dir(folder.path("toolpipe")).unwrap();
        let text = format!(
            "model = \"fast\"\n[models.fast]\nbase_url = \"{url}\"\napi = \"openai-chat\"\nmodel = \"qwen3:8b\"\nmax_tokens = 7\n\
             [models.big]\nbase_url = \"{url}\"\napi = \"openai-chat\"\nmodel = \"big-1\"\n[react]\n{react}\n",
            url = model.url
        );
        fs::write(folder.path("toolpipe/config.toml"), text).unwrap();
        for name in ["one", "two"] {
            let tools = format!(
                r#"[{{"name":"{name}","description":"A tool.","parameters":{{"type":"object"}},"exec":{{"command":["true"]}}}}]"#
            );
            fs::write(folder.path(&format!("toolpipe/{name}.json")), tools).unwrap();
        }
        Home { folder, model }
    }

    /// Standard output of a line, which must end well.
    fn run(&self, line: &str) -> String {
        let (status, out, err) = self.ended(line);
        assert_eq!((status, &*err), (0, ""), "{line}: {out}");
        out
    }

    /// The status of a line, its output and its messages.
    fn ended(&self, line: &str) -> (i32, String, String) {
        let mut bash = testkit::bash(line, root());
        bash.env("XDG_CONFIG_HOME", self.folder.path(""))
            .env("XDG_STATE_HOME", self.folder.path("state"))
            .env("TOOLPIPE_KEEP", "1")
            .env("CONFIG", self.folder.path("toolpipe"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ran = testkit::run(bash);
        (ran.status, ran.stdout, ran.stderr)
    }

    /// The names of the model and of the tools of the only request since the last one.
    fn asked(&self) -> (String, Vec<String>) {
        let body = self.body();
        let tools = body["tools"].as_array();
        let names = tools.into_iter().flatten();
        let names = names.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        let model = body["model"].as_str().unwrap().to_owned();
        (model, names.collect())
    }

    /// The body of the only request since the last one.
    fn body(&self) -> Value {
        let asked = self.model.asked();
        let [request] = &asked[..] else {
            panic!("{} requests", asked.len());
        };
        request.body.clone()
    }

    /// Replaces a text of the file.
    fn edit(&self, from: &str, to: &str) {
        let file = self.folder.path("toolpipe/config.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to)).unwrap();
    }
}

#[test]
fn the_file_has_the_model_and_the_tools() {
    let home = Home::new("tools = [\"one.json\"]\nplain = true");
    let out = home.run("cd /; react 'Hello.'");
    assert!(out.contains("1 messages."), "{out}");
    assert_eq!(home.asked(), ("qwen3:8b".into(), vec!["one".into()]));
    // What is typed goes before it, and a variable in between.
    home.run("react -m big -t $CONFIG/two.json 'Hello.'");
    assert_eq!(home.asked(), ("big-1".into(), vec!["two".into()]));
    home.run("REACT_TOOLS=$CONFIG/two.json LLM_MODEL=big react 'Hello.'");
    assert_eq!(home.asked(), ("big-1".into(), vec!["two".into()]));
    let shown = home.run("react -m big --show-config");
    for line in ["one.json", "config.toml:", "[react]"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn a_form_of_the_output_replaces_that_of_a_lower_place_by_either_option() {
    let home = Home::new("plain = true\n[agents.paper]\nformat = \"markdown\"");
    for (line, is_markdown) in [
        ("react Hello.", false),
        ("react -f markdown Hello.", true),
        ("react @paper Hello.", true),
        ("REACT_FORMAT=markdown react Hello.", true),
        ("react @paper --plain Hello.", false),
    ] {
        let out = home.run(line);
        assert_eq!(out.contains("## "), is_markdown, "{line}: {out}");
    }
}

/// A conversation goes on with what was typed for it; the file has the rest, as it is now.
#[test]
fn what_was_typed_for_a_conversation_goes_before_the_file() {
    let home = Home::new("tools = [\"one.json\"]\nplain = true");
    home.run("react -m big -t $CONFIG/two.json 'Hello.'");
    home.run("react 'Another.'");
    home.model.asked();
    let list = home.run("react --list");
    let names: Vec<&str> = list.lines().map(|l| l.split(' ').next().unwrap()).collect();
    let [other, first] = names[..] else {
        panic!("{list}");
    };
    home.run(&format!("react -c={first} 'And then?'"));
    assert_eq!(home.asked(), ("big-1".into(), vec!["two".into()]));
    home.edit("one.json", "two.json");
    home.run(&format!("react -c={other} 'And then?'"));
    assert_eq!(home.asked(), ("qwen3:8b".into(), vec!["two".into()]));
}

#[test]
fn the_pipeline_has_the_values_of_the_file() {
    let home = Home::new("tools = [\"one.json\"]\nask = \"write\"\nmax_steps = 3");
    let line = home.run("react --print-pipeline 'Hello.'");
    for word in ["toolpipe/one.json", "--ask write", "Hello."] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

/// Agents beside other values of their options, which do not count.
const AGENTS: &str = "tools = [\"one.json\"]
system = \"Be brief.\"
plain = true
params = { a = \"react\", b = \"react\", c = \"react\" }
[agents.commit]
model = \"big\"
tools = [\"two.json\"]
system = \"Write a commit message.\"
params = { b = \"agent\", c = \"agent\" }
[agents.other]
model = \"fast\"";

#[test]
fn options_of_an_agent_count_below_typed_ones_and_above_variables() {
    let home = Home::new(AGENTS);
    let agent = ("big-1", "two", "Write a commit message.", "Hello.");
    for (line, is) in [
        ("react @commit Hello.", agent),
        ("react --agent commit Hello.", agent),
        ("react -f markdown @commit Hello. -- --retries 0", agent),
        ("react @commit --question Hello.", agent),
        ("echo Hello. | react @commit", agent),
        ("echo Hello. | react @commit --each '{{.}}'", agent),
        (
            "LLM_MODEL=fast REACT_TOOLS=$CONFIG/one.json LLM_SYSTEM=no react @commit Hello.",
            agent,
        ),
        (
            "react -m fast @commit Hello. -t $CONFIG/one.json -s 'Be long.'",
            ("qwen3:8b", "one", "Be long.", "Hello."),
        ),
        // What an agent does not have is that of [react].
        (
            "react @other Hello.",
            ("qwen3:8b", "one", "Be brief.", "Hello."),
        ),
        // A question is no agent.
        (
            "react '@commit this.'",
            ("qwen3:8b", "one", "Be brief.", "@commit this."),
        ),
        (
            "react --question @commit",
            ("qwen3:8b", "one", "Be brief.", "@commit"),
        ),
    ] {
        home.run(&format!("cd /; {line}"));
        let body = home.body();
        let asked = (
            body["model"].as_str().unwrap(),
            body["tools"][0]["function"]["name"].as_str().unwrap(),
            body["messages"][0]["content"].as_str().unwrap(),
            body["messages"][1]["content"].as_str().unwrap(),
        );
        assert_eq!(asked, is, "{line}: {body}");
        assert_eq!(body["tools"].as_array().unwrap().len(), 1, "{line}: {body}");
    }
    // Values with names are added to each other.
    home.run("react @commit --param c='\"typed\"' Hello.");
    let body = home.body();
    assert_eq!(
        [&body["a"], &body["b"], &body["c"]],
        [&json!("react"), &json!("agent"), &json!("typed")]
    );
}

/// A conversation goes on with the options that its agent had, as with typed ones.
#[test]
fn a_conversation_keeps_the_options_of_its_agent() {
    let home = Home::new(AGENTS);
    home.run("cd $CONFIG; react @commit Hello.");
    home.model.asked();
    home.edit("[\"two.json\"]", "[\"one.json\"]");
    home.run("cd /; react -c 'And then?'");
    assert_eq!(home.asked(), ("big-1".into(), vec!["two".into()]));
    // What is given now goes before that, also by an agent.
    home.run("react -c @other 'And then?'");
    assert_eq!(home.asked(), ("qwen3:8b".into(), vec!["two".into()]));
    home.run("react -c -m big @other 'And then?'");
    assert_eq!(home.asked(), ("big-1".into(), vec!["two".into()]));
}

/// A replay has the agent alone of the file.
#[test]
fn a_replay_has_the_options_of_its_agent() {
    let home = Home::new(&format!("{AGENTS}\ntools = [\"none.json\"]"));
    home.run("react -l $XDG_STATE_HOME.ndjson @commit Hello.");
    let replay = "react --plain --replay $XDG_STATE_HOME.ndjson";
    home.run(replay);
    home.run(&format!("{replay} @commit"));
    let (status, _, err) = home.ended(&format!("{replay} @other"));
    assert!(status == 2 && err.contains("none.json"), "{err}");
}

#[test]
fn the_command_that_goes_on_has_the_options_of_the_agent() {
    let home = Home::new(AGENTS);
    home.edit(&home.model.url, "http://127.0.0.1:1");
    let (status, _, err) = home.ended("react --retries 0 @commit Hello.");
    let next = err.lines().last().unwrap();
    assert_eq!(status, 2, "{err}");
    home.edit("http://127.0.0.1:1", &home.model.url);
    let command = next.split_once("react ").unwrap().1;
    home.run(&format!("cd /; react {command}"));
    assert_eq!(home.asked(), ("big-1".into(), vec!["two".into()]), "{next}");
}

#[test]
fn agents_are_shown() {
    let home = Home::new(AGENTS);
    let shown = home.run("react @commit --show-config");
    let line = |key: &str, value: &str| {
        let mut lines = shown.lines().map(|line| line.split_whitespace());
        lines.any(|mut words| words.next() == Some(key) && words.next() == Some(value))
    };
    assert!(
        line("model", "big") && line("agents.other", "model"),
        "{shown}"
    );
    assert!(shown.contains("[agents.commit]"), "{shown}");
    let shown = home.run("llm-stream --show-config");
    assert!(!shown.contains("agents"), "{shown}");
}

#[test]
fn a_wrong_agent_is_refused() {
    let home = Home::new(AGENTS);
    for (line, says) in [
        ("react @comit x", "has no such agent, did you mean @commit?"),
        ("react --agent zzz x", "write [agents.zzz] there"),
        ("react @zzz", "or put the question after --question"),
        (
            "XDG_CONFIG_HOME=/dev/null react @commit x",
            "@commit: /dev/null/toolpipe/config.toml does not exist",
        ),
        (
            "react @commit --agent other x",
            "'@commit' cannot be used with '--agent <AGENT>'",
        ),
        ("react @commit x y", "put quotes around the whole question"),
        ("react x @commit", "put quotes around the whole question"),
        (
            "react @commit x --question y",
            "'[QUESTION]' cannot be used with '--question <TEXT>'",
        ),
    ] {
        let (status, out, err) = home.ended(line);
        assert_eq!((status, &*out), (2, ""), "{line}: {err}");
        assert!(
            err.contains(says) && err.lines().count() == 1,
            "{line}: {err}"
        );
    }
    for (table, says) in [
        (
            "[agents.a]\nmodle = \"m\"",
            "modle is unknown in [agents.a], did you mean \"model\"?",
        ),
        ("[agents.a]\nlist = true", "list is unknown in [agents.a]"),
        (
            "[agents.a]\nbase_url = \"http://x\"",
            "base_url: an agent has no server of its own",
        ),
        (
            "[agents.a]\nheaders = [\"A: $B\"]",
            "headers: an agent has no server of its own",
        ),
        (
            "[agents.a]\napi_key = \"b\"",
            "api_key: an agent has no server of its own",
        ),
        (
            "[agents.\"a b\"]\nmodel = \"m\"",
            "\"a b\" is no name of an agent",
        ),
        ("[agents]\na = \"m\"", "agents.a is not a table"),
        (
            "[agent.a]\nmodel = \"m\"",
            "[agent] is unknown, did you mean",
        ),
        ("agent = \"commit\"", "agent is unknown in [react]"),
    ] {
        let home = Home::new(table);
        let (status, out, err) = home.ended("react Hello.");
        assert_eq!((status, &*out), (2, ""), "{table}: {err}");
        assert!(err.contains(says), "{table}: {err}");
        assert!(home.model.asked().is_empty(), "{table}");
    }
}

/// The server is that of the model, of the agent too.
#[test]
fn models_are_listed_as_llm_stream_lists_them() {
    let home = Home::new(AGENTS);
    for (line, server) in [
        ("react --models", "127.0.0.1:1"),
        ("react -m big --models", "127.0.0.1:2"),
        ("react @commit --models", "127.0.0.1:2"),
    ] {
        let file = home.folder.path("toolpipe/config.toml");
        let text = fs::read_to_string(&file).unwrap();
        let (before, after) = text.split_once("[models.big]").unwrap();
        let before = before.replace(&home.model.url, "http://127.0.0.1:1");
        let after = after.replace(&home.model.url, "http://127.0.0.1:2");
        fs::write(&file, format!("{before}[models.big]{after}")).unwrap();
        let (status, out, err) = home.ended(line);
        assert_eq!(status, 2, "{line}: {out}{err}");
        assert_eq!(
            out,
            "fast  qwen3:8b in the configuration file\nbig   big-1 in the configuration file\n"
        );
        assert!(
            err.contains(server) && err.lines().count() == 1,
            "{line}: {err}"
        );
    }
}
