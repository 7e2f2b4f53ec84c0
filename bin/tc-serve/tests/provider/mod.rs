//! A provider on loopback that answers as a test says, and tc-serve in front of it.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long anything may take before a test fails instead of hanging.
pub const GUARD: Duration = Duration::from_secs(30);

/// A request as the provider got it.
#[derive(Clone, Debug)]
pub struct ProviderRequest {
    /// Method and path.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

/// What the provider does with one request: it gets the number of the request, from 0, and returns
/// whether the connection stays open.
type Answer = dyn Fn(usize, &ProviderRequest, &mut TcpStream) -> bool + Send + Sync;

pub struct Provider {
    pub url: String,
    pub requests: Receiver<ProviderRequest>,
    pub connections: Arc<AtomicUsize>,
}

impl Provider {
    /// A provider that refuses questions about the server itself, as one does that is neither
    /// llama.cpp nor Ollama.
    pub fn new(
        answer: impl Fn(usize, &ProviderRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Provider {
        Provider::of(false, answer)
    }

    /// A server that also answers questions about itself, if `is_known`.
    pub fn of(
        is_known: bool,
        answer: impl Fn(usize, &ProviderRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (send, requests) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let (number, answer): (_, Arc<Answer>) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                stream.set_read_timeout(Some(GUARD)).unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let (send, number, answer) =
                    (send.clone(), Arc::clone(&number), Arc::clone(&answer));
                std::thread::spawn(move || {
                    while let Some(request) = read_request(&mut stream) {
                        let path = request.line.split(' ').nth(1).unwrap_or_default();
                        if !is_known && matches!(path, "/props" | "/api/version" | "/api/show") {
                            if !super::provider::answer(
                                &mut stream,
                                "404 Not Found",
                                "",
                                b"{}",
                                None,
                            ) {
                                return;
                            }
                            continue;
                        }
                        let _ = send.send(request.clone());
                        if !answer(number.fetch_add(1, Ordering::SeqCst), &request, &mut stream) {
                            return;
                        }
                    }
                });
            }
        });
        Provider {
            url,
            requests,
            connections,
        }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<ProviderRequest> {
        self.requests.try_iter().collect()
    }
}

/// A whole answer, or the first `end` bytes of its body without the end of the body.
pub fn answer(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &[u8],
    end: Option<usize>,
) -> bool {
    let sent = &body[..end.unwrap_or(body.len()).min(body.len())];
    let mut bytes =
        format!("HTTP/1.1 {status}\r\n{headers}transfer-encoding: chunked\r\n\r\n").into_bytes();
    if !sent.is_empty() {
        bytes.extend(format!("{:x}\r\n", sent.len()).into_bytes());
        bytes.extend(sent);
        bytes.extend(b"\r\n");
    }
    if end.is_none() {
        bytes.extend(b"0\r\n\r\n");
    }
    stream.write_all(&bytes).is_ok() && end.is_none()
}

fn read_request(stream: &mut TcpStream) -> Option<ProviderRequest> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut next = || {
        let mut line = String::new();
        (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
    };
    let line = next()?;
    let mut headers = vec![];
    while let Some((name, value)) = next()?.split_once(": ") {
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ProviderRequest {
        line,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// tc-serve on a free port, ended with the value.
pub struct Service {
    child: Child,
    address: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    pub fn new(options: &[&str]) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tc-serve"));
        command.args(["--listen", "127.0.0.1:0"]).args(options);
        for name in [
            "LLM_API",
            "LLM_BASE_URL",
            "LLM_MODEL",
            "LLM_TAPE",
            "LLM_TAPE_MODE",
            "HOME",
            "XDG_CACHE_HOME",
        ] {
            command.env_remove(name);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("http://")
            .expect("the address on standard output")
            .to_owned();
        Service { child, address }
    }

    /// Opens a connection and sends a request.
    pub fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        self.send_as("accept: */*", method, path, body)
    }

    /// The same with this header.
    pub fn send_as(&self, header: &str, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        let (address, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{header}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        stream
    }

    /// The answer to a request: its head, and its body as text (with the lengths of its chunks).
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (String, String) {
        self.ask_as("accept: */*", method, path, body)
    }

    /// The same with this header.
    pub fn ask_as(&self, header: &str, method: &str, path: &str, body: &str) -> (String, String) {
        let mut stream = self.send_as(header, method, path, body);
        let mut answer = vec![];
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_ascii_lowercase(), body.to_owned())
    }
}
