//! The mock upstream: OpenAI's chat completions. The model's name says what to answer:
//! `EVENTS:RATE:BYTES`, that is how many pieces of text, how many a second (0: all at once), and
//! how long each is. Each piece begins with the time at which it was written, and the answer ends
//! with one tool call, so that every answer can be checked.

use crate::stamp;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, channel::Channel};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// The arguments of the call that ends every answer.
pub const ARGUMENTS: &str = r#"{"hut":"lake","day":"saturday","people":4}"#;

/// What one answer consists of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Pieces of text.
    pub events: u64,
    /// Pieces a second; 0: all at once.
    pub rate: u64,
    /// Bytes of each piece.
    pub bytes: usize,
}

impl Shape {
    /// The name of the model that answers so.
    pub fn model(self) -> String {
        format!("{}:{}:{}", self.events, self.rate, self.bytes)
    }

    fn of_model(model: &str) -> Shape {
        let mut parts = model.split(':').map(|part| part.parse().unwrap_or(1));
        let mut next = || parts.next().unwrap_or(1);
        Shape {
            events: next(),
            rate: next(),
            bytes: next() as usize,
        }
    }
}

/// Streams that are open, and when the last one was closed. `GET /open` returns both.
static OPEN: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Counts a stream until its body is dropped, which happens when it ends or its connection is
/// closed.
struct OpenStream;

impl OpenStream {
    fn new() -> OpenStream {
        OPEN.fetch_add(1, Ordering::Relaxed);
        OpenStream
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
        CLOSED.store(stamp::now(), Ordering::Relaxed);
    }
}

/// Serves until the process is ended. Prints a line when it listens.
pub async fn serve(port: u16) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .map_err(|e| e.to_string())?;
    println!(
        "{}",
        listener.local_addr().map_err(|e| e.to_string())?.port()
    );
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        let _ = socket.set_nodelay(true);
        tokio::task::spawn_local(async move {
            let io = TokioIo::new(socket);
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(io, service_fn(answer))
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    if request.uri().path() == "/open" {
        let state = format!(
            "{} {}",
            OPEN.load(Ordering::Relaxed),
            CLOSED.load(Ordering::Relaxed)
        );
        return Ok(Response::new(Full::new(Bytes::from(state)).boxed_unsync()));
    }
    let body = request
        .into_body()
        .collect()
        .await
        .map(|b| b.to_bytes())
        .unwrap_or_default();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let shape = Shape::of_model(body["model"].as_str().unwrap_or_default());
    if body["stream"] != true {
        let text = piece(shape.bytes);
        let whole = format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"reserve","arguments":{}}}}}]}},"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}}}"#,
            serde_json::json!(ARGUMENTS)
        );
        let response = Response::builder().header("content-type", "application/json");
        return Ok(response
            .body(Full::new(whole.into()).boxed_unsync())
            .expect("a response"));
    }
    let (mut sender, channel) = Channel::<Bytes>::new(64);
    tokio::task::spawn_local(async move {
        let begun = Instant::now();
        for n in 0..shape.events {
            if let Some(after) = (1_000_000_000 * n).checked_div(shape.rate) {
                tokio::time::sleep_until(begun + Duration::from_nanos(after)).await;
            }
            let text = piece(shape.bytes);
            if send(&mut sender, &format!(r#"{{"content":"{text}"}}"#), "null")
                .await
                .is_none()
            {
                return;
            }
        }
        let call = format!(
            r#"{{"tool_calls":[{{"index":0,"id":"call_1","type":"function","function":{{"name":"reserve","arguments":{}}}}}]}}"#,
            serde_json::json!(ARGUMENTS)
        );
        send(&mut sender, &call, "null").await;
        send(&mut sender, "{}", r#""tool_calls""#).await;
        let end = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,\"total_tokens\":14}}\n\ndata: [DONE]\n\n";
        let _ = sender
            .send(Frame::data(Bytes::from_static(end.as_bytes())))
            .await;
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    let open = OpenStream::new();
    // The closure owns `open`, so that both are dropped with the body.
    let body = channel.map_frame(move |frame| {
        let _open = &open;
        frame
    });
    Ok(response
        .body(body.map_err(|e| match e {}).boxed_unsync())
        .expect("a response"))
}

/// A piece of text: the time, and filling.
fn piece(bytes: usize) -> String {
    let mut text = format!("@{} ", stamp::now());
    while text.len() < bytes {
        text.push('x');
    }
    text
}

async fn send(
    sender: &mut http_body_util::channel::Sender<Bytes>,
    delta: &str,
    finish: &str,
) -> Option<()> {
    let chunk = format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    );
    sender.send(Frame::data(chunk.into())).await.ok()
}
