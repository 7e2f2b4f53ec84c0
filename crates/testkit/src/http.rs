//! A server on loopback that does what a test says, byte by byte.

use crate::connection::Connection;
use crate::process::PATIENCE;
use crate::request::{Request, SSE};
use crate::turn::Turn;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One thing that the server does on a connection, after it has read the request.
pub enum Step {
    /// Answers the request with this turn, as its API does.
    Answers(Turn),
    /// From here on it is a server that sends no counts of tokens.
    WithoutUsage,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again, until the client has closed, and then reports how many
    /// the client took.
    Flood(Vec<u8>, Sender<usize>),
    /// Waits until the test lets it go on.
    Wait(Receiver<()>),
    /// Silence: scripted time, which a time-out is measured against.
    Silence(Duration),
    /// Breaks the connection with an RST.
    Reset,
    /// Reports that this step is reached.
    Reached(Sender<()>),
    /// Waits until the client has closed, and reports that.
    UntilClosed(Sender<()>),
}

impl Step {
    /// Returns whether the connection goes on.
    fn take(self, request: &Request, stream: &mut Connection) -> bool {
        match self {
            Step::Answers(turn) => return stream.answer(request, &turn),
            Step::WithoutUsage => stream.without_usage(),
            Step::Send(bytes) => return stream.write_all(&bytes).is_ok(),
            Step::Flood(bytes, taken) => {
                let block = bytes.repeat((64 * 1024 / bytes.len()).max(1));
                let sent = std::iter::repeat_with(|| stream.write_all(&block))
                    .take_while(Result::is_ok)
                    .count();
                let _ = taken.send(sent * block.len());
                return false;
            }
            Step::Wait(go) => drop(go.recv_timeout(PATIENCE)),
            Step::Silence(time) => std::thread::sleep(time),
            Step::Reset => {
                rustix::net::sockopt::set_socket_linger(&**stream, Some(Duration::ZERO)).unwrap();
                return false;
            }
            Step::Reached(reached) => drop(reached.send(())),
            Step::UntilClosed(closed) => {
                while matches!(stream.read(&mut [0; 64]), Ok(n) if n > 0) {}
                let _ = closed.send(());
            }
        }
        true
    }
}

/// Questions about the server itself, which a provider refuses that is neither llama.cpp nor Ollama.
pub const QUESTIONS: &[&str] = &["/props", "/api/version", "/api/show"];

/// A server on a free port of loopback.
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// Its port.
    pub port: u16,
    /// The requests that came.
    pub requests: Receiver<Request>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Serves one connection for each script, in turn, and then no more.
    pub fn new(scripts: Vec<Vec<Step>>) -> Server {
        Server::listen(move |listener, send, _| {
            let issued = Arc::default();
            for script in scripts {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                if let Some(request) = Request::read(&mut stream) {
                    let _ = send.send(request.clone());
                    let mut stream = Connection::new(stream, &request, &issued);
                    let _ = stream.refuses(&request)
                        || script
                            .into_iter()
                            .all(|step| step.take(&request, &mut stream));
                }
            }
        })
    }

    /// Plays one script for each request, in turn, and then refuses what comes. [`QUESTIONS`] get the
    /// status 404, and do not count.
    pub fn of_provider(scripts: Vec<Vec<Step>>) -> Server {
        let scripts = Mutex::new(scripts.into_iter());
        Server::lacking(QUESTIONS, move |_, request, stream| {
            let script = scripts.lock().unwrap().next();
            let mut steps = script.into_iter().flatten();
            let _ = steps.all(|step| step.take(request, stream));
            false
        })
    }

    /// Lets `answer` answer each request, with its number from 0. `answer` returns whether the
    /// connection stays open. A request to a model that no real provider takes is refused.
    pub fn answering(
        answer: impl Fn(usize, &Request, &mut Connection) -> bool + Send + Sync + 'static,
    ) -> Server {
        Server::lacking(&[], answer)
    }

    /// As [`Server::answering`], without these paths: they get the status 404, and do not count.
    pub fn lacking(
        paths: &'static [&'static str],
        answer: impl Fn(usize, &Request, &mut Connection) -> bool + Send + Sync + 'static,
    ) -> Server {
        let answer = Arc::new(answer);
        let number = Arc::new(AtomicUsize::new(0));
        let issued = Arc::default();
        Server::listen(move |listener, send, connections| {
            for mut stream in listener.incoming().map_while(Result::ok) {
                connections.fetch_add(1, Ordering::SeqCst);
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_nodelay(true).unwrap();
                let (send, answer, number) =
                    (send.clone(), Arc::clone(&answer), Arc::clone(&number));
                let issued = Arc::clone(&issued);
                std::thread::spawn(move || {
                    let mut is_open = true;
                    while is_open && let Some(request) = Request::read(&mut stream) {
                        if paths.contains(&request.path()) {
                            let head = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}";
                            is_open = stream.write_all(head.as_bytes()).is_ok();
                        } else {
                            let _ = send.send(request.clone());
                            let number = number.fetch_add(1, Ordering::SeqCst);
                            let Ok(same) = stream.try_clone() else { return };
                            let mut sent = Connection::new(same, &request, &issued);
                            is_open =
                                !sent.refuses(&request) && answer(number, &request, &mut sent);
                        }
                    }
                });
            }
        })
    }

    /// A model that writes one turn after the other, and the last one again and again.
    pub fn of_turns(turns: Vec<Turn>) -> Server {
        Server::lacking(QUESTIONS, move |number, request, stream| {
            stream.answer(request, &turns[number.min(turns.len() - 1)]);
            false
        })
    }

    /// A model that answers each request with the number of its messages.
    pub fn counting() -> Server {
        Server::lacking(QUESTIONS, |_, request, stream| {
            let count = request.body["messages"].as_array().map_or(0, Vec::len);
            let turn = Turn::says(&format!("{count} messages."));
            stream.answer(request, &turn);
            false
        })
    }

    fn listen(
        serve: impl FnOnce(TcpListener, Sender<Request>, Arc<AtomicUsize>) + Send + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, requests) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || serve(listener, send, counted));
        Server {
            url: format!("http://127.0.0.1:{port}"),
            port,
            requests,
            connections,
        }
    }

    /// The URL of `path`.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// All requests that came since the last call. Ask when the command has ended.
    pub fn asked(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A whole answer: head and body, which the end of the connection ends.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
    vec![Step::Send([head.as_bytes(), body.as_ref()].concat())]
}

/// The head of an event stream.
pub fn sse_head() -> Step {
    Step::Send(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{SSE}\r\n").into())
}

/// A body in gzip's form.
pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(vec![], Compression::best());
    out.write_all(body).unwrap();
    out.finish().unwrap()
}

/// A body in gzip's form that is `start`, so often `byte`, and `end`: a few bytes for each thousand.
pub fn gzip_run(start: &str, byte: u8, times: usize, end: &str) -> Vec<u8> {
    gzip(&[start.as_bytes(), &vec![byte; times], end.as_bytes()].concat())
}
