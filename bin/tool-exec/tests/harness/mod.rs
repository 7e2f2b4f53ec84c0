//! What the tests share: a folder, a tools file, and a run of the command over some lines.

#![allow(clippy::unwrap_used, reason = "tests")]

pub(crate) mod places;
pub(crate) mod terminal;
pub(crate) mod users;

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
pub(crate) use testkit::{Scratch as Dir, code, events, kill, needs, runs, wait_until};

pub(crate) const START: &str = r#"{"type":"stream_start","v":1,"api":"openai-chat"}"#;
pub(crate) const END: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;

/// The processes of tools that run in the folder of a test.
pub(crate) fn processes(dir: &Dir) -> Vec<String> {
    let mut all = dir.processes();
    all.retain(|process| !process.ends_with(" tool-exec"));
    all
}

/// `object` with the members of `more`.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    let members = object.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    object
}

/// The string parameters `text`, `a` and `b`.
pub(crate) fn parameters() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {"text": text, "a": text, "b": text}})
}

/// A tool with the string arguments `text`, `a` and `b`, run as `command`.
pub(crate) fn tool(name: &str, command: &[&str], more: Value) -> Value {
    let exec = with(json!({"command": command}), &more);
    json!({"name": name, "parameters": parameters(), "exec": exec})
}

/// A tool that is a script of `sh`.
pub(crate) fn script(name: &str, script: &str, more: Value) -> Value {
    tool(name, &["sh", "-c", script], more)
}

/// A tool that leaves a trace of each time it ran.
pub(crate) fn put(class: &str) -> Value {
    let mut put = script(
        "put",
        "echo \"$1\" >>ran; echo put \"$1\"",
        json!({"class": class}),
    );
    put["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!("{text}")]);
    put
}

/// How often each text is in what [`put`] left.
pub(crate) fn ran(dir: &Dir) -> HashMap<String, usize> {
    let mut count = HashMap::new();
    dir.read("ran")
        .lines()
        .for_each(|line| *count.entry(line.to_owned()).or_default() += 1);
    count
}

pub(crate) fn call(index: usize, id: &str, name: &str, arguments: &Value) -> String {
    json!({"type": "tool_call", "index": index, "tool_id": id, "tool_name": name, "arguments": arguments, "commit": "balanced"}).to_string()
}

/// The assistant's message over calls of `(id, name, arguments)`.
pub(crate) fn message(calls: &[(&str, &str, Value)]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name, arguments)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}))
        .collect();
    json!({"type": "message", "message": {"role": "assistant", "content": null, "tool_calls": calls}}).to_string()
}

/// A complete turn of calls.
pub(crate) fn turn(calls: &[(&str, &str, Value)]) -> String {
    let mut lines = vec![START.to_owned()];
    lines.extend(
        calls
            .iter()
            .enumerate()
            .map(|(n, (id, name, arguments))| call(n, id, name, arguments)),
    );
    lines.extend([message(calls), END.to_owned()]);
    lines.join("\n") + "\n"
}

pub(crate) fn command(dir: &Dir, tools: &[Value], args: &[&str]) -> Command {
    let program = Command::new(testkit::program("tool-exec"));
    command_as(program, dir, tools, args)
}

/// The same, by a command that ends with the program.
pub(crate) fn command_as(command: Command, dir: &Dir, tools: &[Value], args: &[&str]) -> Command {
    command_over(command, dir, &json!(tools), args)
}

/// The same with any contents of the tools file.
pub(crate) fn command_over(
    mut command: Command,
    dir: &Dir,
    tools: &Value,
    args: &[&str],
) -> Command {
    command
        .arg("--tools")
        .arg(dir.write("tools.json", tools.to_string()))
        .args(args)
        .current_dir(dir.path("."))
        .env("XDG_CACHE_HOME", dir.path("xdg"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // In the background of the terminal that the tests may run on: nobody is asked there.
    command.process_group(0);
    command
}

/// The output of a run.
pub(crate) struct Out {
    pub status: i32,
    pub text: String,
    pub errors: String,
    pub events: Vec<Value>,
}

impl Out {
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|e| e["type"] == kind).collect()
    }

    /// The result of the call of that id.
    pub(crate) fn result(&self, id: &str) -> &Value {
        self.of("tool_result")
            .into_iter()
            .find(|e| e["tool_id"] == id)
            .unwrap_or_else(|| panic!("no result of {id}: {}", self.text))
    }

    /// Status and output of the call of that id.
    pub(crate) fn outcome(&self, id: &str) -> (&str, &str) {
        let result = self.result(id);
        (
            result["status"].as_str().unwrap(),
            result["output"].as_str().unwrap(),
        )
    }

    /// What names the pending call of that id in an answer: `ID:HASH`.
    pub(crate) fn reference(&self, id: &str) -> String {
        format!(
            "{id}:{}",
            self.result(id)["hash"]
                .as_str()
                .unwrap_or_else(|| panic!("{id} does not wait: {}", self.text))
        )
    }

    /// The types of the events in short, with the ids.
    pub(crate) fn shape(&self) -> String {
        let id = |e: &Value| {
            let id = if e["type"] == "message" {
                &e["message"]["tool_call_id"]
            } else {
                &e["tool_id"]
            };
            id.as_str().map(|id| format!(":{id}")).unwrap_or_default()
        };
        self.events
            .iter()
            .map(|e| e["type"].as_str().unwrap().to_owned() + &id(e))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl From<testkit::Ran> for Out {
    fn from(ran: testkit::Ran) -> Out {
        let is_events = ran.stdout.starts_with('{');
        Out {
            status: ran.status,
            events: if is_events { ran.events() } else { vec![] },
            text: ran.stdout,
            errors: ran.stderr,
        }
    }
}

/// Runs the command over `input` to its end.
pub(crate) fn run_command(command: Command, input: &str) -> Out {
    testkit::run_with(command, input).into()
}

/// Runs a command whose standard input is set already.
pub(crate) fn run_command_without_input(mut command: Command) -> Out {
    testkit::Ran::from(command.output().unwrap()).into()
}

pub(crate) fn run_in(dir: &Dir, tools: &[Value], input: &str, args: &[&str]) -> Out {
    run_command(command(dir, tools, args), input)
}

pub(crate) fn run(tools: &[Value], input: &str, args: &[&str]) -> Out {
    run_in(&Dir::new(), tools, input, args)
}

/// A run of one call of `tool`, which only the message lists.
pub(crate) fn one(tool: &Value, arguments: &Value) -> Out {
    one_in(&Dir::new(), tool, arguments)
}

/// The same in this folder.
pub(crate) fn one_in(dir: &Dir, tool: &Value, arguments: &Value) -> Out {
    let name = tool["name"].as_str().unwrap();
    run_in(
        dir,
        std::slice::from_ref(tool),
        &(message(&[("i", name, arguments.clone())]) + "\n"),
        &["--no-time"],
    )
}

/// The command with both ends in the test's hands.
pub(crate) struct Live {
    pub child: Child,
    pub input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Live {
    pub(crate) fn new(dir: &Dir, tools: &[Value], args: &[&str]) -> Live {
        Live::of(command(dir, tools, args))
    }

    /// A command whose three streams are pipes.
    pub(crate) fn of(mut command: Command) -> Live {
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        Live {
            child,
            input,
            output,
            errors,
        }
    }

    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The next line; blocks until it is there.
    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// The types of the next lines.
    pub(crate) fn kinds(&mut self, n: usize) -> Vec<String> {
        (0..n)
            .map(|_| self.line()["type"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Reads until an event of this type, and returns it.
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.line();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// The next line on standard error; blocks until it is there.
    pub(crate) fn error(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(self.child.id(), signal);
    }

    /// Closes the input and reads the rest; returns the status and the rest.
    pub(crate) fn end(self) -> (i32, Vec<Value>) {
        let (status, rest, _) = self.end_and_errors();
        (status, rest)
    }

    /// As [`Live::end`], with the rest of standard error.
    pub(crate) fn end_and_errors(mut self) -> (i32, Vec<Value>, String) {
        self.input = None;
        let mut rest = String::new();
        let mut errors = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        (code(self.child.wait().unwrap()), events(&rest), errors)
    }

    /// Closes the output as a reader that leaves; returns the status.
    pub(crate) fn leave(self) -> i32 {
        let Live {
            mut child,
            input,
            output,
            errors: _errors,
        } = self;
        drop(output);
        let status = code(child.wait().unwrap());
        drop(input);
        status
    }
}
