//! A provider that does what a test tells it, step by step. A test takes each request by
//! [`Upstream::next`] and writes the answer itself, so that no time has to pass.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A provider.
pub struct Upstream {
    listener: TcpListener,
    accepted: Receiver<TcpStream>,
}

/// One request, and its connection.
pub struct Call {
    /// The first line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
    /// The connection.
    pub stream: TcpStream,
}

impl Upstream {
    /// A provider on a free port.
    pub fn new() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (sender, accepted) = channel();
        let incoming = listener.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            incoming
                .incoming()
                .flatten()
                .try_for_each(|stream| sender.send(stream))
        });
        Upstream { listener, accepted }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().expect("an address"))
    }

    /// Waits for the next request.
    pub fn next(&self) -> Call {
        loop {
            let stream = self.accepted.recv_timeout(PATIENCE).expect("a request");
            if let Some(call) = Call::read(stream).and_then(Call::without_questions) {
                return call;
            }
        }
    }

    /// Answers every request of this and of other threads with these bytes, and closes each
    /// connection.
    pub fn always(self, answer: Vec<u8>) -> String {
        let url = self.url();
        std::thread::spawn(move || {
            for stream in self.accepted {
                let answer = answer.clone();
                std::thread::spawn(move || {
                    if let Some(mut call) = Call::read(stream).and_then(Call::without_questions) {
                        call.send(&answer);
                    }
                });
            }
        });
        url
    }
}

impl Call {
    /// `None` for a connection that ends without a request, as that with which tc-serve finds out
    /// whether its provider is there.
    fn read(mut stream: TcpStream) -> Option<Call> {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_nodelay(true).expect("no delay");
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let mut block = [0; 4096];
            let count = stream.read(&mut block).expect("a request");
            if count == 0 && bytes.is_empty() {
                return None;
            }
            assert!(
                count > 0,
                "the request was cut: {}",
                String::from_utf8_lossy(&bytes)
            );
            bytes.extend_from_slice(&block[..count]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        let length: usize = length.unwrap_or(0);
        let mut body = bytes.split_off(end);
        let have = body.len();
        body.resize(length.max(have), 0);
        stream.read_exact(&mut body[have..]).expect("the body");
        Some(Call {
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
            stream,
        })
    }

    /// Refuses a question about the server itself, as a provider does that is neither llama.cpp nor
    /// Ollama.
    fn without_questions(self) -> Option<Call> {
        let path = self.head.split(' ').nth(1).unwrap_or_default();
        if matches!(path, "/props" | "/api/version" | "/api/show") {
            self.refuse(404, "", "{}");
            return None;
        }
        Some(self)
    }

    /// Begins a stream of events that ends with the connection.
    pub fn begin(&mut self) {
        self.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        );
    }

    /// Sends bytes. That a client has left is not a failure here.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a piece of text as a chunk of OpenAI's API.
    pub fn text(&mut self, text: &str) {
        self.send(chunk(&format!(r#"{{"content":{}}}"#, event::quoted(text)), "null").as_bytes());
    }

    /// Ends the answer.
    pub fn stop(mut self) {
        self.send(chunk("{}", "\"stop\"").as_bytes());
        self.send(b"data: [DONE]\n\n");
    }

    /// Answers with an error.
    pub fn refuse(mut self, status: u16, headers: &str, body: &str) {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}"
        );
        self.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// Waits until the other side has closed the connection, and returns how long that took.
    pub fn closed(&mut self) -> Duration {
        let begun = Instant::now();
        let mut block = [0; 1024];
        while let Ok(count) = self.stream.read(&mut block) {
            if count == 0 {
                return begun.elapsed();
            }
        }
        let waited = begun.elapsed();
        assert!(waited < PATIENCE, "the connection is still open");
        waited
    }

    /// Breaks the connection.
    pub fn cut(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A chunk of a stream of OpenAI's API, with these members as its delta.
pub fn chunk(delta: &str, finish: &str) -> String {
    let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#);
    format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{choice}]}}\n\n"
    )
}

/// A whole answer of a provider: a stream with one text.
pub fn answer(text: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let text = chunk(
        &format!(
            r#"{{"role":"assistant","content":{}}}"#,
            event::quoted(text)
        ),
        "null",
    );
    format!("{head}{text}{}data: [DONE]\n\n", chunk("{}", "\"stop\"")).into_bytes()
}
