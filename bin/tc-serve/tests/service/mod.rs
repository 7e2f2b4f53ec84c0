//! `tc-serve` as a process, clients that write their requests byte by byte, and providers.

pub(crate) mod agent;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use testkit::{Connection, Protocol, Request, Turn};
pub(crate) use testkit::{JSON, PATIENCE, SSE, Server, chat_chunk as chunk, chat_end};

/// A running service; it ends when this is dropped.
pub(crate) struct Service {
    process: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    stderr: Option<BufReader<ChildStderr>>,
}

/// A connection to the service.
pub(crate) struct Client {
    pub stream: TcpStream,
    bytes: Vec<u8>,
    /// How far `until` has looked.
    seen: usize,
}

/// A response, whole or as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Service {
    /// Starts the service on a free port with these options, and with a key for its provider.
    pub(crate) fn start(options: &[&str]) -> Service {
        Service::with_key(Some("sk-upstream-secret"), options)
    }

    /// The same without a key.
    pub(crate) fn new(options: &[&str]) -> Service {
        Service::with_key(None, options)
    }

    fn with_key(key: Option<&str>, options: &[&str]) -> Service {
        Service::run(Command::new(testkit::program("tc-serve")), key, options)
    }

    /// A service that gets an error, and no signal, where a file would become longer than the limit
    /// of the process ([`Service::limit`]).
    pub(crate) fn limited(options: &[&str]) -> Service {
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(testkit::program("tc-serve"));
        Service::run(command, None, options)
    }

    /// Lets no file of the service, and of what it starts from now on, become longer than this.
    pub(crate) fn limit(&self, bytes: Option<u64>) {
        let process = Pid::from_child(&self.process);
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(Some(process), Resource::Fsize, limit).expect("a limit");
    }

    /// A service with these variables (`NAME=VALUE`) in its environment.
    pub(crate) fn with_variables(variables: &[&str], options: &[&str]) -> Service {
        let mut command = Command::new("env");
        command.args(variables).arg(testkit::program("tc-serve"));
        Service::run(command, None, options)
    }

    fn run(mut command: Command, key: Option<&str>, options: &[&str]) -> Service {
        if !options.contains(&"--unix") && !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "LLM_API",
            "LLM_BASE_URL",
            "LLM_MODEL",
            "LLM_TAPE",
            "LLM_TAPE_MODE",
            "HOME",
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
        ] {
            command.env_remove(name);
        }
        command.envs(key.map(|key| ("OPENAI_API_KEY", key)));
        let mut process = command.spawn().expect("tc-serve starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("the address");
        let mut stderr = BufReader::new(process.stderr.take().expect("a pipe"));
        if line.is_empty() {
            let mut text = String::new();
            stderr.read_to_string(&mut text).expect("standard error");
            panic!("tc-serve did not start: {text}");
        }
        let address = line.trim().trim_start_matches("http://").to_owned();
        Service {
            process,
            address,
            stderr: Some(stderr),
        }
    }

    /// A service in front of a provider.
    pub(crate) fn of(upstream: &str, options: &[&str]) -> Service {
        Service::start(&[&["--base-url", upstream], options].concat())
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Connects.
    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_nodelay(true).expect("no delay");
        Client {
            stream,
            bytes: Vec::new(),
            seen: 0,
        }
    }

    /// Sends a request and returns its connection.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Client {
        let mut client = self.connect();
        client.write(request(method, path, headers, body).as_bytes());
        client
    }

    /// Sends a request and reads the whole response. A header `host` in `headers` takes the place
    /// of the usual one.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        self.send(method, path, headers, body).rest()
    }

    /// The head of the answer to a request with JSON, and its body.
    pub(crate) fn reply(&self, method: &str, path: &str, body: &str) -> (String, String) {
        self.reply_as("accept: */*", method, path, body)
    }

    /// The same with this header.
    pub(crate) fn reply_as(
        &self,
        header: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> (String, String) {
        let headers = format!("{header}\r\n{JSON}");
        let response = self.ask(method, path, &headers, body);
        (response.head, response.body)
    }

    /// Posts JSON.
    pub(crate) fn post(&self, path: &str, body: &str) -> Response {
        self.ask("POST", path, JSON, body)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, signal).expect("the process is there");
    }

    /// Waits for the end, and returns the status and standard error.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let mut text = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            stderr.read_to_string(&mut text).expect("standard error");
        }
        (self.process.wait().expect("a status"), text)
    }

    /// Reads standard error up to a line that `is_it` accepts, and returns that.
    pub(crate) fn line(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        let stderr = self.stderr.as_mut().expect("standard error");
        loop {
            let mut line = String::new();
            assert!(
                stderr.read_line(&mut line).expect("a line") > 0,
                "standard error ended"
            );
            if is_it(&line) {
                return line;
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The errors are ignored: the process may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A request as text.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let host = if headers.to_lowercase().contains("host:") {
        ""
    } else {
        "host: localhost\r\n"
    };
    let length = if method == "POST" {
        format!("content-length: {}\r\n", body.len())
    } else {
        String::new()
    };
    let close = if headers.contains("connection:") {
        ""
    } else {
        "connection: close\r\n"
    };
    format!("{method} {path} HTTP/1.1\r\n{host}{close}{headers}{length}\r\n{body}")
}

impl Client {
    /// Sends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a write");
    }

    /// Reads the response up to the next `text`, and returns all that has come.
    pub(crate) fn until(&mut self, text: &str) -> Response {
        loop {
            if let Some(at) = self.bytes[self.seen..]
                .windows(text.len())
                .position(|part| part == text.as_bytes())
            {
                self.seen += at + text.len();
                return Response::of(&self.bytes);
            }
            assert!(
                self.read(),
                "no {text:?} in {}",
                String::from_utf8_lossy(&self.bytes)
            );
        }
    }

    /// Reads the response until the connection ends, and returns all of it.
    pub(crate) fn rest(&mut self) -> Response {
        while self.read() {}
        Response::of(&self.bytes)
    }

    /// The bytes that have come.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All that has come.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Waits until the server closes the connection.
    pub(crate) fn closed(&mut self) {
        while self.read() {}
    }

    /// Whether more bytes came before the end. A reset connection has ended, too: the test looks at
    /// what has come.
    fn read(&mut self) -> bool {
        let mut block = [0; 16384];
        match self.stream.read(&mut block) {
            Ok(count) => {
                self.bytes.extend_from_slice(&block[..count]);
                count > 0
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                panic!(
                    "nothing came after {}",
                    String::from_utf8_lossy(&self.bytes)
                )
            }
            Err(_) => false,
        }
    }
}

impl Response {
    fn of(bytes: &[u8]) -> Response {
        let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Response::default();
        };
        let head = String::from_utf8_lossy(&bytes[..at + 2]).to_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or_default();
        let rest = &bytes[at + 4..];
        let body = if head.contains("transfer-encoding: chunked") {
            joined(rest)
        } else {
            rest.to_vec()
        };
        Response {
            status,
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// The bytes of a body in chunks.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..at])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else {
            break;
        };
        let from = at + 2;
        let to = (from + size).min(rest.len());
        body.extend_from_slice(&rest[from..to]);
        rest = rest.get(to + 2..).unwrap_or_default();
    }
    body
}

/// A provider that answers each request as the test says, see [`Server::answering`].
pub(crate) fn provider(
    answer: impl Fn(usize, &Request, &mut Connection) -> bool + Send + Sync + 'static,
) -> Server {
    Server::lacking(testkit::QUESTIONS, answer)
}

/// Writes a whole answer, or the first `end` bytes of its body without the end of the body.
pub(crate) fn answer(
    stream: &mut Connection,
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

/// A provider whose requests a test takes by [`Upstream::next`], and answers itself, so that no time
/// has to pass.
pub(crate) struct Upstream {
    server: Server,
    calls: Receiver<Call>,
}

/// One request, and its connection.
pub(crate) struct Call {
    pub request: Request,
    pub stream: TcpStream,
}

impl Upstream {
    pub(crate) fn new() -> Upstream {
        let (send, calls) = channel();
        let send = Mutex::new(send);
        let server = provider(move |_, request, stream| {
            let request = request.clone();
            let stream = stream.try_clone().expect("a descriptor");
            let _ = send
                .lock()
                .expect("no panic")
                .send(Call { request, stream });
            false
        });
        Upstream { server, calls }
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        self.server.url.clone()
    }

    /// Waits for the next request.
    pub(crate) fn next(&self) -> Call {
        self.calls.recv_timeout(PATIENCE).expect("a request")
    }

    /// The URL of a provider that answers every request with these bytes, and closes each
    /// connection.
    pub(crate) fn always(answer: Vec<u8>) -> String {
        provider(move |_, _, stream| {
            let _ = stream.write_all(&answer);
            false
        })
        .url
    }
}

impl Call {
    /// Begins a stream of events that ends with the connection.
    pub(crate) fn begin(&mut self) {
        self.send(STREAM.as_bytes());
    }

    /// Sends bytes. That a client has left is not a failure here.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a piece of text as a chunk of OpenAI's API.
    pub(crate) fn text(&mut self, text: &str) {
        self.send(chunk(&format!(r#"{{"content":{}}}"#, event::quoted(text)), "null").as_bytes());
    }

    /// Ends the answer.
    pub(crate) fn stop(mut self) {
        self.send((chunk("{}", "\"stop\"") + &chat_end()).as_bytes());
    }

    /// Answers with an error.
    pub(crate) fn refuse(mut self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\n{JSON}connection: close\r\n{headers}");
        self.send(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes());
    }

    /// Waits until the other side has closed the connection, and returns how long that took.
    pub(crate) fn closed(&mut self) -> Duration {
        let begun = Instant::now();
        while matches!(self.stream.read(&mut [0; 1024]), Ok(count) if count > 0) {}
        assert!(begun.elapsed() < PATIENCE, "the connection is still open");
        begun.elapsed()
    }

    /// Breaks the connection.
    pub(crate) fn cut(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The head of a stream of events that ends with the connection.
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A whole answer of a provider: a stream with one text.
pub(crate) fn streamed(text: &str) -> Vec<u8> {
    (STREAM.to_owned() + &Turn::says(text).stream(Protocol::Chat)).into_bytes()
}
