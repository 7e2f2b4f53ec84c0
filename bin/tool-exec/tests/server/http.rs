//! The same server of tools behind HTTP: a thread of the test that answers with JSON, or with an
//! event stream where it has more to say.

use super::{Path, Value, answer, json};
use crate::harness::with;
use std::io::Write;
use std::sync::{Arc, Mutex};
use testkit::{Request, Server};

/// A server behind HTTP.
pub(crate) struct HttpServer {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<Request>>>,
}

impl HttpServer {
    /// Serves the tools of the folder. `refuse` may answer a request by a whole response of its
    /// own.
    pub(crate) fn new(
        folder: &Path,
        refuse: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static,
    ) -> HttpServer {
        let folder = folder.to_owned();
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let all = Arc::clone(&seen);
        let server = Server::answering(move |_, request, stream| {
            all.lock().unwrap().push(request.clone());
            let method = request.method();
            let body = &request.body;
            let response = refuse(method, body).unwrap_or_else(|| respond(method, body, &folder));
            stream.write_all(response.as_bytes()).is_ok()
        });
        HttpServer {
            port: server.port,
            seen,
        }
    }

    /// The entry of `mcpServers` for it, with more members.
    pub(crate) fn entry(&self, more: &Value) -> Value {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        with(json!({"type": "http", "url": url}), more)
    }

    /// The header of that name of the requests that came, in their order.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let values = seen.iter().filter_map(|request| request.header(name));
        values.map(str::to_owned).collect()
    }
}

fn respond(method: &str, body: &Value, folder: &Path) -> String {
    let whole = |status: &str, more: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n{body}",
            body.len()
        )
    };
    if method != "POST" {
        return whole(
            if method == "DELETE" {
                "204 No Content"
            } else {
                "405 Method Not Allowed"
            },
            "",
            "",
        );
    }
    let said = Mutex::new(Vec::new());
    answer(folder, body, &|message| {
        said.lock().unwrap().push(message.clone())
    });
    let said = said.into_inner().unwrap();
    match &said[..] {
        [] => whole("202 Accepted", "", ""),
        [one] => {
            let session = if body["method"] == "initialize" {
                "mcp-session-id: s-1\r\n"
            } else {
                ""
            };
            whole(
                "200 OK",
                &format!("content-type: application/json\r\n{session}"),
                &one.to_string(),
            )
        }
        all => {
            let events: String = all
                .iter()
                .map(|message| format!("event: message\ndata: {message}\n\n"))
                .collect();
            whole("200 OK", "content-type: text/event-stream\r\n", &events)
        }
    }
}
