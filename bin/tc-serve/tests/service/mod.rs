//! `tc-serve` as a process, and clients that write their requests byte by byte.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running service; it ends when this is dropped.
pub struct Service {
    process: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    stderr: Option<BufReader<ChildStderr>>,
}

/// A connection to the service.
pub struct Client {
    pub stream: TcpStream,
    bytes: Vec<u8>,
    /// How far `until` has looked.
    seen: usize,
}

/// A response, whole or as far as it has come.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Service {
    /// Starts the service on a free port with these options.
    pub fn start(options: &[&str]) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tc-serve"));
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
        ] {
            command.env_remove(name);
        }
        command.env("OPENAI_API_KEY", "sk-upstream-secret");
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
    pub fn of(upstream: &str, options: &[&str]) -> Service {
        Service::start(&[&["--base-url", upstream], options].concat())
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Connects.
    pub fn connect(&self) -> Client {
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
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Client {
        let mut client = self.connect();
        client.write(request(method, path, headers, body).as_bytes());
        client
    }

    /// Sends a request and reads the whole response. A header `host` in `headers` takes the place
    /// of the usual one.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        self.send(method, path, headers, body).rest()
    }

    /// Posts JSON.
    pub fn post(&self, path: &str, body: &str) -> Response {
        self.ask("POST", path, "content-type: application/json\r\n", body)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .expect("an id");
        rustix::process::kill_process(id, signal).expect("the process is there");
    }

    /// Waits for the end, and returns the status and standard error.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let mut text = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            stderr.read_to_string(&mut text).expect("standard error");
        }
        (self.process.wait().expect("a status"), text)
    }

    /// Reads standard error up to a line that `is_it` accepts, and returns that.
    pub fn line(&mut self, is_it: impl Fn(&str) -> bool) -> String {
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
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
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
    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a write");
    }

    /// Reads the response up to the next `text`, and returns all that has come.
    pub fn until(&mut self, text: &str) -> Response {
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
    pub fn rest(&mut self) -> Response {
        while self.read() {}
        Response::of(&self.bytes)
    }

    /// The bytes that have come.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All that has come.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Waits until the server closes the connection.
    pub fn closed(&mut self) {
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
    pub fn header(&self, name: &str) -> Option<&str> {
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
