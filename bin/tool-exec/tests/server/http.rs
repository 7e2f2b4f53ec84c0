//! The same server of tools behind HTTP: a thread of the test that answers with JSON, or with an
//! event stream where it has more to say.

use super::{Path, Value, answer, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a request was: its method, its headers in lower case, and its body.
pub type Seen = Arc<Mutex<Vec<(String, Vec<String>, Value)>>>;

/// A server behind HTTP.
pub struct HttpServer {
    pub port: u16,
    pub seen: Seen,
}

impl HttpServer {
    /// Serves the tools of the folder. `refuse` may answer a request by a whole response of its
    /// own.
    pub fn new(
        folder: &Path,
        refuse: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static,
    ) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, seen) = (listener.local_addr().unwrap().port(), Seen::default());
        let (folder, all, refuse) = (folder.to_owned(), Arc::clone(&seen), Arc::new(refuse));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (folder, seen, refuse) =
                    (folder.clone(), Arc::clone(&all), Arc::clone(&refuse));
                std::thread::spawn(move || serve(stream, &folder, &seen, &*refuse));
            }
        });
        HttpServer { port, seen }
    }

    /// The entry of `mcpServers` for it, with more members.
    pub fn entry(&self, more: &Value) -> Value {
        let mut entry =
            json!({"type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)});
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        entry
    }

    /// The header of that name of the requests that came, in their order.
    pub fn headers(&self, name: &str) -> Vec<String> {
        let start = format!("{name}: ");
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter_map(|(_, headers, _)| {
                headers
                    .iter()
                    .find_map(|h| h.strip_prefix(&start))
                    .map(str::to_owned)
            })
            .collect()
    }
}

fn serve(
    stream: TcpStream,
    folder: &Path,
    seen: &Seen,
    refuse: &dyn Fn(&str, &Value) -> Option<String>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut out = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let method = lines[0].split(' ').next().unwrap().to_owned();
        let headers: Vec<String> = lines[1..]
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase()))
            .collect();
        let length = headers
            .iter()
            .find_map(|h| h.strip_prefix("content-length: "))
            .map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        seen.lock()
            .unwrap()
            .push((method.clone(), headers, body.clone()));
        let response = refuse(&method, &body).unwrap_or_else(|| respond(&method, &body, folder));
        if out.write_all(response.as_bytes()).is_err() {
            return;
        }
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
