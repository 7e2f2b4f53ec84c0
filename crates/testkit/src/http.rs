//! A server on loopback that follows a test's script, byte by byte.

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

/// A step of a script, run on a connection after the request was read.
pub enum Step {
    /// Answers the request with this turn, in the format of its API.
    Answers(Turn),
    /// Allows responses without token counts from here on.
    WithoutUsage,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes repeatedly until the client closes the connection, then reports how many
    /// bytes the client accepted.
    Flood(Vec<u8>, Sender<usize>),
    /// Waits for a message from the test, for at most [`PATIENCE`].
    Wait(Receiver<()>),
    /// Sends nothing for this long, to test a timeout.
    Silence(Duration),
    /// Closes the connection with an RST.
    Reset,
    /// Reports that this step was reached.
    Reached(Sender<()>),
    /// Waits until the client closes the connection, then reports it.
    UntilClosed(Sender<()>),
}

impl Step {
    /// Runs the step. Returns whether the connection stays open.
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

/// Paths that identify the server software; providers other than llama.cpp and Ollama reject them.
pub const QUESTIONS: &[&str] = &["/props", "/api/version", "/api/show"];

/// A server on a free port on loopback.
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// The port.
    pub port: u16,
    /// The requests received.
    pub requests: Receiver<Request>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Serves one connection per script, in order, and then stops.
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

    /// Plays one script per request, in order; later connections are closed without a response.
    /// Requests to [`QUESTIONS`] get status 404 and use no script.
    pub fn of_provider(scripts: Vec<Vec<Step>>) -> Server {
        let scripts = Mutex::new(scripts.into_iter());
        Server::lacking(QUESTIONS, move |_, request, stream| {
            let script = scripts.lock().unwrap().next();
            let mut steps = script.into_iter().flatten();
            let _ = steps.all(|step| step.take(request, stream));
            false
        })
    }

    /// Calls `answer` for each request, with the request's number, from 0. `answer` returns whether
    /// the connection stays open. A request to a model that every real provider rejects is
    /// rejected.
    pub fn answering(
        answer: impl Fn(usize, &Request, &mut Connection) -> bool + Send + Sync + 'static,
    ) -> Server {
        Server::lacking(&[], answer)
    }

    /// Like [`Server::answering`], but requests to `paths` get status 404 and are not counted.
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

    /// A model that writes these turns in order, and then repeats the last one.
    pub fn of_turns(turns: Vec<Turn>) -> Server {
        Server::lacking(QUESTIONS, move |number, request, stream| {
            stream.answer(request, &turns[number.min(turns.len() - 1)]);
            false
        })
    }

    /// A model that answers each request with its number of messages.
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

    /// Returns the URL of `path`.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Returns all requests received since the last call. Call this after the command has exited.
    pub fn asked(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }

    /// Returns how many connections were opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Returns a whole response, head and body; closing the connection ends it.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
    vec![Step::Send([head.as_bytes(), body.as_ref()].concat())]
}

/// Returns the head of an event stream.
pub fn sse_head() -> Step {
    Step::Send(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{SSE}\r\n").into())
}

/// Returns the body compressed with gzip.
pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(vec![], Compression::best());
    out.write_all(body).unwrap();
    out.finish().unwrap()
}

/// Returns a gzip body that decompresses to `start`, then `byte` repeated `times` times, then
/// `end`. It has a few bytes per thousand.
pub fn gzip_run(start: &str, byte: u8, times: usize, end: &str) -> Vec<u8> {
    gzip(&[start.as_bytes(), &vec![byte; times], end.as_bytes()].concat())
}
