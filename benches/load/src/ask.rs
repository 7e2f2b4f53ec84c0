//! One request as a client sends it, and the check of its answer.

use crate::mock::{ARGUMENTS, Shape};
use crate::stamp;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};

/// A connection that is kept open between requests.
pub struct Connection {
    send: SendRequest<Full<Bytes>>,
    port: u16,
}

/// What one answer showed.
#[derive(Debug, Default)]
pub struct Answer {
    /// Nanoseconds from the upstream's write to our read, for each piece of text.
    pub lateness: Vec<u64>,
    /// Nanoseconds for all of it.
    pub whole: u64,
}

impl Connection {
    /// Connects to a port of this machine.
    pub async fn open(port: u16) -> Result<Connection, String> {
        let socket = TcpStream::connect(("127.0.0.1", port))
            .await
            .map_err(|e| e.to_string())?;
        let _ = socket.set_nodelay(true);
        let (send, connection) = handshake(TokioIo::new(socket))
            .await
            .map_err(|e| e.to_string())?;
        tokio::task::spawn_local(connection);
        Ok(Connection { send, port })
    }

    /// Connects with a receive buffer of 4 KiB, so that an answer that is not read soon fills what
    /// is between.
    pub async fn narrow(port: u16) -> Result<Connection, String> {
        let socket = TcpSocket::new_v4().map_err(|e| e.to_string())?;
        socket
            .set_recv_buffer_size(4096)
            .map_err(|e| e.to_string())?;
        let socket = socket
            .connect(([127, 0, 0, 1], port).into())
            .await
            .map_err(|e| e.to_string())?;
        let (send, connection) = handshake(TokioIo::new(socket))
            .await
            .map_err(|e| e.to_string())?;
        tokio::task::spawn_local(connection);
        Ok(Connection { send, port })
    }

    /// Asks for one answer and checks it.
    pub async fn ask(&mut self, shape: Shape, streams: bool) -> Result<Answer, String> {
        self.begin(shape, streams).await?.read(shape, streams).await
    }

    /// Sends the request and waits for the head of the answer.
    pub async fn begin(&mut self, shape: Shape, streams: bool) -> Result<Open, String> {
        let body = serde_json::json!({
            "model": shape.model(), "stream": streams,
            "messages": [{"role": "user", "content": "Reserve a hut."}],
            "tools": [{"type": "function", "function": {"name": "reserve", "parameters": {"type": "object", "properties": {
                "hut": {"type": "string"}, "day": {"type": "string"}, "people": {"type": "integer"}}}}}],
        });
        let request = Request::post("/v1/chat/completions")
            .header("host", format!("127.0.0.1:{}", self.port))
            .header("content-type", "application/json")
            .header("authorization", "Bearer load")
            // Portkey reads the address of the upstream from these headers.
            .header("x-portkey-provider", "openai")
            .header(
                "x-portkey-custom-host",
                std::env::var("LOAD_UPSTREAM").unwrap_or_default(),
            )
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|e| e.to_string())?;
        let begun = stamp::now();
        self.send.ready().await.map_err(|e| e.to_string())?;
        let response = self
            .send
            .send_request(request)
            .await
            .map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            let status = response.status();
            let body = response
                .into_body()
                .collect()
                .await
                .map(|b| b.to_bytes())
                .unwrap_or_default();
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
        }
        Ok(Open {
            begun,
            body: response.into_body(),
        })
    }
}

/// An answer whose head has come.
pub struct Open {
    begun: u64,
    body: hyper::body::Incoming,
}

impl Open {
    /// Waits for the first piece of it.
    pub async fn first(&mut self) -> Result<(), String> {
        self.body
            .frame()
            .await
            .ok_or("the answer is empty")?
            .map(|_| ())
            .map_err(|e| e.to_string())
    }

    /// Reads it to its end and checks its call and its pieces.
    pub async fn read(mut self, shape: Shape, streams: bool) -> Result<Answer, String> {
        let mut answer = Answer::default();
        let (mut text, mut seen) = (String::new(), 0);
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|e| e.to_string())?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            let now = stamp::now();
            text.push_str(&String::from_utf8_lossy(&bytes));
            while let Some(at) = text[seen..].find('@') {
                let digits: String = text[seen + at + 1..]
                    .chars()
                    .take_while(char::is_ascii_digit)
                    .collect();
                // A stamp may be cut by the end of a read.
                if seen + at + 1 + digits.len() == text.len() {
                    break;
                }
                answer
                    .lateness
                    .push(now.saturating_sub(digits.parse().unwrap_or(now)));
                seen += at + 1 + digits.len();
            }
        }
        answer.whole = stamp::now() - self.begun;
        let pieces = if streams { shape.events } else { 1 };
        if answer.lateness.len() as u64 != pieces {
            return Err(format!(
                "{} of {pieces} pieces of text came",
                answer.lateness.len()
            ));
        }
        if arguments(&text, streams) != ARGUMENTS {
            return Err(format!(
                "the call is wrong: {}",
                &text[text.len().saturating_sub(600)..]
            ));
        }
        Ok(answer)
    }
}

/// The arguments of the first call.
fn arguments(text: &str, streams: bool) -> String {
    let mut all = String::new();
    let of = |call: &serde_json::Value| {
        call[0]["function"]["arguments"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    if !streams {
        let whole: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        return of(&whole["choices"][0]["message"]["tool_calls"]);
    }
    for line in text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|line| line.contains("tool_calls"))
    {
        let chunk: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        all += &of(&chunk["choices"][0]["delta"]["tool_calls"]);
    }
    all
}
