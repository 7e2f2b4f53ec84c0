//! The configuration file, as react uses it.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

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
        let mut bash = testkit::bash(line, root());
        bash.env("XDG_CONFIG_HOME", self.folder.path(""))
            .env("XDG_STATE_HOME", self.folder.path("state"))
            .env("TOOLPIPE_KEEP", "1")
            .env("CONFIG", self.folder.path("toolpipe"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ran = testkit::run(bash);
        assert_eq!(
            (ran.status, &*ran.stderr),
            (0, ""),
            "{line}: {}",
            ran.stdout
        );
        ran.stdout
    }

    /// The names of the model and of the tools of the only request since the last one.
    fn asked(&self) -> (String, Vec<String>) {
        let asked = self.model.asked();
        let [request] = &asked[..] else {
            panic!("{} requests", asked.len());
        };
        let tools = request.body["tools"].as_array();
        let names = tools.into_iter().flatten();
        let names = names.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        let model = request.body["model"].as_str().unwrap().to_owned();
        (model, names.collect())
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
    let file = home.folder.path("toolpipe/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("one.json", "two.json")).unwrap();
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
