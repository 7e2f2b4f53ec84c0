//! A server on loopback that does what a script says, and tools that ask it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "tests, each of which uses a part"
)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long anything may take before a test fails instead of hanging.
pub const GUARD: Duration = Duration::from_secs(30);

/// One thing that the server does on a connection, after it has read the request.
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again until the client has closed, and then how many it took.
    Flood(Vec<u8>, Sender<usize>),
    /// Sends a message, waits until the client has closed, and sends another.
    UntilClosed(Sender<()>),
}

pub struct Server {
    pub port: u16,
    requests: Receiver<String>,
}

impl Server {
    /// Serves one connection for each script, in turn, and then no more.
    pub fn new(scripts: Vec<Vec<Step>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, requests) = channel();
        std::thread::spawn(move || {
            for script in scripts {
                let Ok((stream, _)) = listener.accept() else {
                    return;
                };
                serve(stream, script, &send);
            }
        });
        Server { port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The entry of `exec.http.allow` for this server.
    pub fn allow(&self) -> Value {
        json!([format!("127.0.0.1:{}", self.port)])
    }

    /// All requests that came, as text with names of headers in lower case. Ask when the command
    /// has ended.
    pub fn asked(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

fn serve(mut stream: TcpStream, script: Vec<Step>, requests: &Sender<String>) {
    stream.set_read_timeout(Some(GUARD)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap_or(0);
        match line.trim_end().split_once(": ") {
            Some((name, value)) => {
                let name = name.to_lowercase();
                if name == "content-length" {
                    length = value.parse().unwrap();
                }
                request += &format!("{name}: {value}\n");
            }
            None if line.trim_end().is_empty() => break,
            None => request += &format!("{}\n", line.trim_end()),
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let _ = requests.send(request + "\n" + &String::from_utf8_lossy(&body));
    for step in script {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Step::Flood(bytes, taken) => {
                let block = bytes.repeat((64 * 1024 / bytes.len()).max(1));
                let mut sent = 0;
                while stream.write_all(&block).is_ok() {
                    sent += block.len();
                }
                let _ = taken.send(sent);
                return;
            }
            Step::UntilClosed(closed) => {
                let _ = closed.send(());
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest), Ok(n) if n > 0) {}
                let _ = closed.send(());
            }
        }
    }
}

/// A whole answer: head and body, which the end of the connection ends.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
    vec![Step::Send([head.as_bytes(), body.as_ref()].concat())]
}

pub const JSON: &str = "content-type: application/json\r\n";
pub const TEXT: &str = "content-type: text/plain\r\n";

/// A tool with the string arguments `text`, `a` and `b` that sends a request to `server`, with
/// these members of `exec.http`, and these of `exec`.
pub fn web(name: &str, server: &Server, path: &str, http: Value, more: Value) -> Value {
    let mut request = json!({"url": server.url(path), "allow": server.allow()});
    request
        .as_object_mut()
        .unwrap()
        .extend(http.as_object().unwrap().clone());
    let mut exec = json!({"http": request});
    exec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let text = json!({"type": "string"});
    json!({"name": name, "parameters": {"type": "object", "properties": {"text": text, "a": text, "b": text}}, "exec": exec})
}
