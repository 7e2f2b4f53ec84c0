//! A service with tools of its own: its tools file, the model that it asks, and its sessions.

use super::{JSON, Response, SSE, Server, Service, answer, provider};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use testkit::Scratch;
pub(crate) use testkit::Turn;

/// A service that runs tools in a folder of its own.
pub(crate) struct Agent {
    /// The folder: the tools file, what the tools write, and `sessions`.
    pub folder: Scratch,
    /// The model's server.
    pub model: Server,
    pub service: Service,
    options: Vec<String>,
}

/// A front: how it is asked a question, and whether it streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    pub path: &'static str,
    pub streams: bool,
}

/// All fronts, whole and streamed. Events are always a stream.
pub(crate) const FRONTS: [Asking; 7] = [
    front("/v1/chat/completions", true),
    front("/v1/chat/completions", false),
    front("/v1/responses", true),
    front("/v1/responses", false),
    front("/v1/messages", true),
    front("/v1/messages", false),
    front("/v1/events", true),
];

const fn front(path: &'static str, streams: bool) -> Asking {
    Asking { path, streams }
}

impl Asking {
    /// The body of a request with this question, and with these members more.
    pub(crate) fn body(self, question: &str, more: &Value) -> String {
        let mut body = json!({"model": "m", "stream": self.streams});
        if self.path == "/v1/responses" {
            body["input"] = question.into();
        } else {
            body["messages"] = json!([{"role": "user", "content": question}]);
        }
        if self.path == "/v1/messages" {
            body["max_tokens"] = 1000.into();
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body.to_string()
    }

    /// A tool of the client's, as the front's API has it.
    pub(crate) fn tools(self, name: &str) -> Value {
        let any = json!({"type": "object"});
        match self.path {
            "/v1/messages" => json!([{"name": name, "input_schema": any}]),
            "/v1/responses" => json!([{"type": "function", "name": name, "parameters": any}]),
            _ => json!([{"type": "function", "function": {"name": name, "parameters": any}}]),
        }
    }
}

/// A tool that runs `script` by `sh`, with its argument `text` as `$1`. `@/` is the folder of the
/// [`Agent`].
pub(crate) fn tool(name: &str, class: &str, script: &str, more: &Value) -> Value {
    let mut tool = json!({
        "name": name,
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        "exec": {"command": ["sh", "-c", script, "sh", "{text}"], "class": class}
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        tool["exec"][name] = value.clone();
    }
    tool
}

/// A tool whose calls need approval, and which appends a line to the file `ran` each time that
/// it runs.
pub(crate) fn remove() -> Value {
    tool(
        "remove",
        "danger",
        "echo \"$1\" >>@/ran; echo \"removed $1\"",
        &Value::Null,
    )
}

/// The calls of [`tool`]s.
pub(crate) trait TextCalls {
    /// A call with this argument `text`.
    fn calls_text(self, id: &str, name: &str, text: &str) -> Turn;
}

impl TextCalls for Turn {
    fn calls_text(self, id: &str, name: &str, text: &str) -> Turn {
        self.calls(id, name, &json!({"text": text}))
    }
}

/// A model that writes these turns: the turn after as many messages of its own as the request has.
pub(crate) fn model(turns: Vec<Turn>) -> Server {
    provider(move |_, request, stream| {
        let body = &request.body;
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let is_own = |message: &&Value| message["role"] == "assistant";
        let at = messages.iter().filter(is_own).count();
        match turns.get(at) {
            Some(turn) => answer(stream, "200 OK", SSE, turn.to(request).1.as_bytes(), None),
            None => answer(
                stream,
                "500 Failed",
                JSON,
                b"{\"error\":{\"message\":\"no turn\"}}",
                None,
            ),
        }
    })
}

impl Agent {
    /// A service with these tools and options, whose model writes these turns.
    pub(crate) fn new(tools: &[Value], turns: Vec<Turn>, options: &[&str]) -> Agent {
        Agent::of(&json!(tools), model(turns), options)
    }

    /// A service with this tools file, whose servers are locked first, and this model.
    pub(crate) fn of(tools: &Value, model: Server, options: &[&str]) -> Agent {
        let folder = Scratch::new();
        folder.write(
            "tools.json",
            tools
                .to_string()
                .replace("@/", &format!("{}/", folder.display())),
        );
        let [file, sessions] = ["tools.json", "sessions"].map(|name| folder.path(name));
        if tools.get("mcpServers").is_some() {
            let mut lock = Command::new(testkit::program("tool-exec"));
            let locked = lock.arg("--tools").arg(&file).arg("--update-lock").output();
            let locked = locked.expect("tool-exec starts");
            assert!(locked.status.success(), "{locked:?}");
        }
        let own = [
            "--tools",
            &file.display().to_string(),
            "--sessions",
            &sessions.display().to_string(),
            "--base-url",
            &model.url,
        ]
        .map(str::to_owned);
        let options: Vec<String> = own
            .into_iter()
            .chain(options.iter().map(|&option| option.to_owned()))
            .collect();
        let service = Agent::start(&options);
        Agent {
            folder,
            model,
            service,
            options,
        }
    }

    fn start(options: &[String]) -> Service {
        Service::limited(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts another service on the same folder.
    pub(crate) fn another(&self) -> Service {
        Agent::start(&self.options)
    }

    /// Starts the service again, after its end or [`Agent::kill`].
    pub(crate) fn restart(&mut self) {
        self.service = self.another();
    }

    /// Kills the service, `tool-exec` and the tools that run in the folder.
    pub(crate) fn kill(&self) {
        self.service.signal(rustix::process::Signal::KILL);
        for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let is_own = line.contains(&self.folder.display().to_string());
            if let Some(number) = process
                .file_name()
                .to_str()
                .filter(|_| is_own && line.contains("tool-exec"))
            {
                testkit::kill(number, "KILL");
            }
        }
        for process in self.folder.processes() {
            testkit::kill(process.split(' ').next().unwrap_or_default(), "KILL");
        }
    }

    /// Asks a question.
    pub(crate) fn ask(&self, front: Asking, question: &str) -> Response {
        self.service
            .post(front.path, &front.body(question, &Value::Null))
    }

    /// Begins a response in the background; its id, and the id of its session.
    pub(crate) fn begin(&self, question: &str) -> (String, String) {
        let body = json!({"model": "m", "input": question, "background": true});
        let answer = self.service.post("/v1/responses", &body.to_string());
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        let id = body["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer:?}"))
            .to_owned();
        (id.clone(), id["resp_".len()..][..32].to_owned())
    }

    /// The ids of all sessions.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let names = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        };
        let files = names(self.folder.path("sessions")).flat_map(names);
        files
            .filter(|file| file.extension().is_some_and(|end| end == "ndjson"))
            .filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()))
            .collect()
    }

    /// The file of a session.
    pub(crate) fn file(&self, session: &str) -> PathBuf {
        self.folder
            .join("sessions")
            .join(&session[..2])
            .join(format!("{session}.ndjson"))
    }

    /// The events of a session.
    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file(session)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        testkit::events(whole)
    }

    /// Waits until the session has an event that `is_it` accepts, and returns that.
    pub(crate) fn event(&self, session: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        testkit::wait_until("the event", || self.events(session).iter().any(&is_it));
        let found = self.events(session).into_iter().find(is_it);
        found.expect("it is there")
    }

    /// Waits until the call `id` waits for a person, and returns its hash.
    pub(crate) fn waits(&self, session: &str, id: &str) -> String {
        let pending = self.event(session, |event| {
            event["type"] == "tool_result" && event["status"] == "pending" && event["tool_id"] == id
        });
        pending["hash"].as_str().expect("a hash").to_owned()
    }

    /// Waits for the end of the last response of a session, and returns its status.
    pub(crate) fn ended(&self, session: &str) -> String {
        let end = self.event(session, |event| event["type"] == "response_end");
        end["status"].as_str().expect("a status").to_owned()
    }

    /// Approves a call that waits.
    pub(crate) fn approves(&self, session: &str, call: &str, hash: &str) {
        let (status, body) = self.answers(session, call, "approve", &json!({"hash": hash}));
        assert_eq!(status, 200, "{body}");
    }

    /// Gives a person's answer to a call: the status, and the body.
    pub(crate) fn answers(
        &self,
        session: &str,
        call: &str,
        verb: &str,
        body: &Value,
    ) -> (u16, Value) {
        let path = format!("/v1/sessions/{session}/calls/{call}/{verb}");
        let answer = self.service.post(&path, &body.to_string());
        (
            answer.status,
            serde_json::from_str(&answer.body).unwrap_or_default(),
        )
    }
}

/// The id of the session of a response.
pub(crate) fn session_of(response: &Response) -> String {
    response
        .header("x-session-id")
        .unwrap_or_else(|| panic!("{response:?}"))
        .trim()
        .to_owned()
}

/// A call that waits for a person.
pub(crate) struct WaitingCall {
    pub id: String,
    pub hash: String,
    /// Whether it may have run.
    pub has_started: bool,
}

/// The calls that wait after these events.
pub(crate) fn waiting(events: &[Value]) -> Vec<WaitingCall> {
    let mut all: Vec<WaitingCall> = Vec::new();
    let mut started = Vec::new();
    for event in events {
        let id = event["tool_id"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "tool_use" => started.push(id),
            "tool_result" => {
                all.retain(|call| call.id != id);
                if event["status"] == "pending" {
                    let hash = event["hash"].as_str().expect("a hash").to_owned();
                    let has_started = started.contains(&id);
                    all.push(WaitingCall {
                        id,
                        hash,
                        has_started,
                    });
                }
            }
            _ => {}
        }
    }
    all
}
