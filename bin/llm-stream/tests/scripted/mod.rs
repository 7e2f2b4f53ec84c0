//! A server on loopback that does what a script says, byte by byte, and the command run against it.

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod gzip;
#[path = "../../../../tests/pipeline/needs.rs"]
mod needs;

pub use gzip::{gzip, gzip_run};
pub use needs::kill;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long anything may take before a test fails instead of hanging.
pub const GUARD: Duration = Duration::from_secs(30);

/// One thing that the server does on a connection, after it has read the request.
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits until the test lets it go on.
    Wait(Receiver<()>),
    /// Silence: scripted time, which a time-out is measured against.
    Silence(Duration),
    /// Sends these bytes again and again, until the client has closed, and sends how many it took.
    Flood(Vec<u8>, Sender<usize>),
    /// Breaks the connection with an RST.
    Reset,
    /// Waits until the client has closed, and sends a message then.
    UntilClosed(Sender<()>),
}

/// A request as the server got it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and path.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: serde_json::Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

pub struct Server {
    pub url: String,
    pub requests: Receiver<Asked>,
}

impl Server {
    /// Serves one connection for each script, in turn, and then no more.
    pub fn new(scripts: Vec<Vec<Step>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (send, requests) = channel();
        std::thread::spawn(move || {
            for script in scripts {
                let Ok((stream, _)) = listener.accept() else {
                    return;
                };
                serve(stream, script, &send);
            }
        });
        Server { url, requests }
    }

    /// All requests that came. Ask when the command has ended.
    pub fn asked(&self) -> Vec<Asked> {
        self.requests.try_iter().collect()
    }
}

fn serve(mut stream: TcpStream, script: Vec<Step>, requests: &Sender<Asked>) {
    stream.set_read_timeout(Some(GUARD)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        reader.read_line(line).unwrap_or(0);
        line.truncate(line.trim_end().len());
    };
    next(&mut line);
    let first = line.clone();
    let mut headers = vec![];
    loop {
        next(&mut line);
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(n, _)| n == "content-length")
        .map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let _ = requests.send(Asked {
        line: first,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    for step in script {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Step::Wait(go) => {
                let _ = go.recv_timeout(GUARD);
            }
            Step::Silence(time) => std::thread::sleep(time),
            Step::Flood(bytes, taken) => {
                let block = bytes.repeat((64 * 1024 / bytes.len()).max(1));
                let mut sent = 0;
                while stream.write_all(&block).is_ok() {
                    sent += block.len();
                }
                let _ = taken.send(sent);
                return;
            }
            Step::Reset => {
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
                return;
            }
            Step::UntilClosed(closed) => {
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest), Ok(n) if n > 0) {}
                let _ = closed.send(());
            }
        }
    }
}

/// A whole answer: head and body, which the end of the connection ends.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
    vec![Step::Send([head.as_bytes(), body.as_bytes()].concat())]
}

pub const SSE: &str = "content-type: text/event-stream\r\n";
pub const JSON: &str = "content-type: application/json\r\n";

/// The head of an event stream.
pub fn sse_head() -> Step {
    Step::Send(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{SSE}\r\n").into())
}

/// A whole stream of chat completions with these pieces of content.
pub fn chat(pieces: &[&str]) -> String {
    let mut body = String::new();
    for piece in pieces {
        let text = serde_json::Value::from(*piece);
        body += &format!(
            "data: {{\"id\":\"r1\",\"model\":\"m1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n"
        );
    }
    body + "data: {\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
}

/// The command, with nothing of this process's environment.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_llm-stream"));
    command
        .args(args)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The command against `server`, without a wait between attempts where the server names one.
pub fn asking(server: &Server, args: &[&str]) -> Command {
    let mut command = command(&["--base-url", &server.url, "--model", "m", "--no-time"]);
    command.args(args);
    command
}

/// Runs to the end.
pub fn run(mut command: Command) -> Ran {
    finish(command.spawn().unwrap(), None)
}

/// Runs to the end with this on standard input.
pub fn run_with(mut command: Command, stdin: &str) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    finish(child, None)
}

/// Reads on until a line holds `text`, and gives that line.
pub fn until(stdout: &mut BufReader<ChildStdout>, text: &str) -> String {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(
            stdout.read_line(&mut line).unwrap() > 0,
            "the output ended before {text}"
        );
    }
    line
}

/// Waits for a command that was started, whose output may have been taken out already.
pub fn finish(child: Child, stdout: Option<BufReader<ChildStdout>>) -> Ran {
    let pid = child.id();
    let (done, wait) = channel();
    std::thread::spawn(move || {
        if wait.recv_timeout(GUARD).is_err() {
            let _ = kill().args(["-KILL", &pid.to_string()]).status();
        }
    });
    let mut rest = String::new();
    if let Some(mut stdout) = stdout {
        stdout.read_to_string(&mut rest).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    Ran::new(output, rest)
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn new(output: Output, mut stdout: String) -> Ran {
        stdout += &String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        Ran {
            status: output.status.code().unwrap_or(-1),
            stdout,
            stderr,
        }
    }

    /// The events.
    pub fn events(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
            .collect()
    }

    /// The types of the events, with spaces between them.
    pub fn types(&self) -> String {
        let types: Vec<String> = self
            .events()
            .iter()
            .map(|e| e["type"].as_str().unwrap().to_owned())
            .collect();
        types.join(" ")
    }

    /// The first event of a type.
    pub fn event(&self, kind: &str) -> serde_json::Value {
        let found = self.events().into_iter().find(|e| e["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {self:?}"))
    }

    /// All text of the answer.
    pub fn text(&self) -> String {
        self.events()
            .iter()
            .filter(|e| e["type"] == "content_delta")
            .map(|e| e["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The one line on standard error of a usage error.
    pub fn refusal(&self) -> &str {
        assert_eq!(
            (
                self.status,
                self.stdout.as_str(),
                self.stderr.lines().count()
            ),
            (2, "", 1),
            "{self:?}"
        );
        &self.stderr
    }
}

/// A file of a test's own, which goes with the test.
pub struct File(pub PathBuf);

impl File {
    pub fn new(name: &str, content: impl AsRef<[u8]>) -> File {
        let path = std::env::temp_dir().join(format!("llm-stream-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        File(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A terminal: the end that its person sits at, and the one that a command gets.
pub fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, vec![]).unwrap();
    let command = std::fs::File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (person.into(), command)
}
