//! The connection on which a server answers one request. It rejects requests that every real
//! provider rejects, and responses that no real provider sends: a model's response that ends
//! without token counts.

use crate::refusals::refusal;
use crate::request::{JSON, Request};
use crate::turn::{Protocol, Turn};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// The text of the responses that one server has sent and stored.
pub(crate) type Issued = Arc<Mutex<String>>;

/// The connection to a client, for the response to one request.
///
/// If a response ends as a model's response does but lacks the token counts that the API sends, the
/// connection is closed with a message: a test with such a script would miss failures that occur
/// with real providers. [`Connection::without_usage`] is for servers that send no counts.
pub struct Connection {
    stream: TcpStream,
    /// The markers of a response that must contain token counts; `None` once they were sent, or if
    /// none are required.
    due: Option<Marks>,
    /// The last bytes sent, in which a marker may begin.
    tail: Vec<u8>,
    issued: Option<Issued>,
}

/// Bytes kept in the tail; every marker is shorter.
const TAIL: usize = 64;

/// The markers of a finished response, and the name of a member of its token counts.
#[derive(Clone, Copy)]
struct Marks {
    ends: &'static [&'static str],
    usage: &'static str,
}

impl Marks {
    fn of(protocol: Protocol, streams: bool) -> Marks {
        let (stream, whole, usage): (&[&str], &[&str], _) = match protocol {
            Protocol::Chat | Protocol::Mistral => {
                (&["data: [DONE]"], &["\"choices\":"], "\"prompt_tokens\":")
            }
            Protocol::Responses => (
                &["response.completed\"", "response.incomplete\""],
                &["\"object\":\"response\""],
                "\"output_tokens\":",
            ),
            Protocol::Messages => (
                &["message_stop"],
                &["\"stop_reason\":\""],
                "\"output_tokens\":",
            ),
            Protocol::Gemini => (
                &["\"finishReason\":"],
                &["\"finishReason\":"],
                "\"promptTokenCount\":",
            ),
            Protocol::Ollama => (
                &["\"done\":true"],
                &["\"done\":true"],
                "\"prompt_eval_count\":",
            ),
            Protocol::Cohere => (
                &["message-end"],
                &["\"finish_reason\":"],
                "\"billed_units\":",
            ),
        };
        let ends = if streams { stream } else { whole };
        Marks { ends, usage }
    }
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, request: &Request, issued: &Issued) -> Connection {
        let protocol = Protocol::of(request);
        let is_kept = protocol == Some(Protocol::Responses) && request.body["store"] != false;
        Connection {
            stream,
            due: protocol
                .filter(|protocol| protocol.sends_usage(request))
                .map(|protocol| Marks::of(protocol, protocol.streams(request))),
            tail: vec![],
            issued: is_kept.then(|| Arc::clone(issued)),
        }
    }

    /// Allows a response without token counts, as some servers send.
    pub fn without_usage(&mut self) {
        self.due = None;
    }

    /// Answers the request with this turn. Returns whether the whole response was written.
    pub fn answer(&mut self, request: &Request, turn: &Turn) -> bool {
        if !turn.has_usage() {
            self.without_usage();
        }
        self.write_all(&turn.answers(request)).is_ok()
    }

    /// Rejects the request if every real provider rejects it. Returns whether it was rejected.
    pub(crate) fn refuses(&mut self, request: &Request) -> bool {
        let issued = self
            .issued
            .as_ref()
            .map(|issued| issued.lock().unwrap().clone());
        let protocol = Protocol::of(request);
        let refusal =
            protocol.and_then(|protocol| refusal(protocol, request, &issued.unwrap_or_default()));
        let Some((status, body)) = refusal else {
            return false;
        };
        report(&format!("a request was refused: {body}\n{}", request.text));
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} Refused\r\nconnection: close\r\n{JSON}content-length: {length}\r\n\r\n{body}"
        );
        let _ = self.stream.write_all(answer.as_bytes());
        true
    }

    /// Whether the response ends with `bytes` but lacks its token counts.
    fn ends_early(&mut self, bytes: &[u8]) -> bool {
        let Some(marks) = self.due else {
            return false;
        };
        self.tail.extend_from_slice(bytes);
        let text = String::from_utf8_lossy(&self.tail);
        let has_usage = text.contains(marks.usage);
        let ends_early = !has_usage && marks.ends.iter().any(|end| text.contains(end));
        if has_usage {
            self.due = None;
        }
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        ends_early
    }
}

#[allow(clippy::print_stderr, reason = "the report of a test that fails")]
fn report(why: &str) {
    eprintln!("testkit: {}", why.get(..2000).unwrap_or(why));
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.ends_early(bytes) {
            let why = "the scripted answer ends without the counts of tokens that its API sends; make it of a Turn, or script a server without_usage";
            report(&format!("{why}:\n{}", String::from_utf8_lossy(bytes)));
            // Wherever this text lands, the client cannot read a complete response.
            let _ = self.stream.write_all(format!("\n\n{why}\n\n").as_bytes());
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
            return Err(io::Error::other(why));
        }
        let count = self.stream.write(bytes)?;
        if let Some(issued) = &self.issued {
            let mut issued = issued.lock().unwrap();
            issued.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }
}

/// Gives access to the methods that need no `&mut`: the socket, its timeouts, a second handle.
impl Deref for Connection {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

#[cfg(test)]
mod tests {
    use crate::{Protocol, Server, Step, Turn, answer};
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// Returns the response to a request with this path and body.
    fn ask(server: &Server, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nanthropic-version: 2023-06-01\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    const REQUESTS: [(Protocol, &str, &str); 6] = [
        (
            Protocol::Chat,
            "/v1/chat/completions",
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"a"}]}"#,
        ),
        (
            Protocol::Responses,
            "/v1/responses",
            r#"{"model":"m","stream":true,"input":"a"}"#,
        ),
        (
            Protocol::Messages,
            "/v1/messages",
            r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a"}]}"#,
        ),
        (
            Protocol::Gemini,
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            r#"{"contents":[{"parts":[{"text":"a"}]}]}"#,
        ),
        (
            Protocol::Ollama,
            "/api/chat",
            r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#,
        ),
        (
            Protocol::Cohere,
            "/v2/chat",
            r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}"#,
        ),
    ];

    #[test]
    fn an_answer_that_ends_without_the_tokens_of_its_api_is_broken_off() {
        let broken = "ends without the counts of tokens";
        for (protocol, path, streamed) in REQUESTS {
            let whole = streamed.replace(r#""stream":true,"#, "");
            let whole = whole.replace(r#""stream_options":{"include_usage":true},"#, "");
            let whole = match protocol {
                Protocol::Ollama => whole.replacen('{', r#"{"stream":false,"#, 1),
                _ => whole,
            };
            let path_of_whole = path
                .replace(":stream", ":g")
                .replace("gGenerate", "generate");
            for (path, request, streams) in
                [(path, streamed, true), (&path_of_whole, &whole, false)]
            {
                let body = |turn: &Turn| match streams {
                    true => turn.stream(protocol),
                    false => turn.whole(protocol),
                };
                let (with, without) = (
                    body(&Turn::says("x")),
                    body(&Turn::says("x").without_usage()),
                );
                let send = |body: &str| answer("200 OK", "", body);
                let unmarked = [vec![Step::WithoutUsage], send(&without)];
                let pieces = without.bytes().map(|byte| Step::Send(vec![byte]));
                let server = Server::new(vec![
                    vec![Step::Answers(Turn::says("x"))],
                    vec![Step::Answers(Turn::says("x").without_usage())],
                    send(&with),
                    unmarked.into_iter().flatten().collect(),
                    send(&without),
                    pieces.collect(),
                ]);
                let what = format!("{protocol:?}, stream {streams}");
                for _ in 0..4 {
                    let got = ask(&server, path, request);
                    assert!(
                        !got.contains(broken) && got.contains("200 OK"),
                        "{what}: {got}"
                    );
                }
                for _ in 0..2 {
                    let got = ask(&server, path, request);
                    assert!(got.contains(broken), "{what}: {got}");
                }
            }
        }
    }

    #[test]
    fn a_stream_of_chat_completions_counts_tokens_when_it_is_asked_to() {
        let server = Server::of_turns(vec![Turn::says("x")]);
        let (_, path, request) = REQUESTS[0];
        assert!(ask(&server, path, request).contains("prompt_tokens"));
        let quiet = request.replace(r#""stream_options":{"include_usage":true},"#, "");
        let got = ask(&server, path, &quiet);
        assert!(got.contains("[DONE]") && !got.contains("usage"), "{got}");
        // Token counts that were not requested may be missing.
        let bare = Turn::says("x").without_usage().stream(Protocol::Chat);
        let server = Server::new(vec![answer("200 OK", "", &bare)]);
        assert!(ask(&server, path, &quiet).ends_with(&bare));
    }

    #[test]
    fn a_request_that_no_provider_takes_is_refused() {
        let result = r#"{"role":"tool","tool_call_id":"a","content":"1"}"#;
        let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        let user = r#"{"role":"user","content":"a"}"#;
        let chat =
            |messages: &[&str]| format!(r#"{{"model":"m","messages":[{}]}}"#, messages.join(","));
        let tool_use = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#;
        let tool_result =
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}"#;
        let messages = |messages: &[&str]| {
            format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{}]}}"#,
                messages.join(",")
            )
        };
        let input = |items: &[&str]| format!(r#"{{"model":"m","input":[{}]}}"#, items.join(","));
        let (item_call, item_result) = (
            r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"1"}"#,
        );
        let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
        let (gemini_call, gemini_result) = (
            r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}"#,
        );
        let contents = |contents: &[&str]| format!(r#"{{"contents":[{}]}}"#, contents.join(","));
        let cases = [
            ("/chat/completions", chat(&[user, call, result]), 200),
            ("/chat/completions", chat(&[user, result]), 400),
            ("/chat/completions", chat(&[user, call, user]), 400),
            (
                "/chat/completions",
                chat(&[user, call, result, result]),
                400,
            ),
            ("/chat/completions", chat(&[]), 400),
            ("/messages", messages(&[user, tool_use, tool_result]), 200),
            ("/messages", messages(&[user, tool_result]), 400),
            ("/messages", messages(&[user, tool_use, user]), 400),
            (
                "/messages",
                messages(&[user, tool_use, tool_result, tool_use, tool_result]),
                400,
            ),
            (
                "/responses",
                input(&[user, reasoning, item_call, item_result]),
                200,
            ),
            ("/responses", input(&[user, item_result]), 400),
            ("/responses", input(&[user, item_call]), 400),
            ("/responses", input(&[user, reasoning, user]), 400),
            (
                "/responses",
                input(&[r#"{"type":"item_reference","id":"msg_c10"}"#]),
                200,
            ),
            (
                "/responses",
                input(&[r#"{"type":"item_reference","id":"msg_2"}"#]),
                404,
            ),
            (
                "/responses",
                r#"{"model":"m","previous_response_id":"resp_c1"}"#.to_owned(),
                200,
            ),
            (
                "/responses",
                r#"{"model":"m","previous_response_id":"resp_2"}"#.to_owned(),
                400,
            ),
            (
                "/m:generateContent",
                contents(&[gemini_call, gemini_result]),
                200,
            ),
            ("/m:generateContent", contents(&[gemini_result]), 400),
            // Paths of other servers are not checked.
            ("/messages/a", chat(&[result]), 200),
        ];
        let server = Server::lacking(&[], |_, request, stream| {
            match Protocol::of(request) {
                Some(_) => drop(stream.answer(request, &Turn::says("x"))),
                None => drop(stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")),
            }
            false
        });
        // A response that is not stored cannot be referenced.
        ask(
            &server,
            "/responses",
            r#"{"model":"m","store":false,"input":"a"}"#,
        );
        let named = r#"{"model":"m","previous_response_id":"resp_c1"}"#;
        assert!(ask(&server, "/responses", named).starts_with("HTTP/1.1 400 "));
        for (path, body, status) in cases {
            let got = ask(&server, path, &body);
            assert!(
                got.starts_with(&format!("HTTP/1.1 {status} ")),
                "{path} {body}: {got}"
            );
        }
    }
}
