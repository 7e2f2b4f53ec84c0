//! The page at `/`: its parts and headers, who may load it, and where its address is printed.
//! `tests/clients/page.mjs` tests its behaviour in a browser.

use crate::service::{Response, Service};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::process::{Command, Stdio};
use testkit::Scratch;

/// A service that keeps sessions, with these further options.
struct Kept {
    _folder: Scratch,
    service: Service,
}

impl Kept {
    fn new(options: &[&str]) -> Kept {
        let folder = Scratch::new();
        let path = folder.path("s");
        let named = ["--sessions", path.to_str().expect("UTF-8")];
        let replayed = [
            "--replay",
            "../../fixtures/streams/openai-chat/row-02-index-always-0.sse",
        ];
        let source = match options.contains(&"--") {
            true => &[][..],
            false => &replayed,
        };
        Kept {
            service: Service::new(&[&named, source, options].concat()),
            _folder: folder,
        }
    }

    fn get(&self, headers: &str) -> Response {
        self.service.ask("GET", "/", headers, "")
    }
}

/// The content security policy of a page, with the hashes of its own parts.
fn policy(html: &str) -> String {
    let hash = |tag: &str| {
        let (_, rest) = html.split_once(&format!("<{tag}>")).expect("the tag");
        let (text, _) = rest.split_once(&format!("</{tag}>")).expect("its end");
        STANDARD.encode(Sha256::digest(text))
    };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        hash("script"),
        hash("style")
    )
}

#[test]
fn the_page_is_one_small_document_with_the_hashes_of_its_parts() {
    let kept = Kept::new(&[]);
    let page = kept.get("");
    assert_eq!(page.status, 200);
    assert!(page.body.len() <= 60_000, "{} bytes", page.body.len());
    assert_eq!(page.body.matches("<script").count(), 1);
    assert_eq!(page.body.matches("<style").count(), 1);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
        (
            "content-security-policy",
            &policy(&page.body).to_lowercase(),
        ),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert_eq!(page.header("set-cookie"), None);
}

#[test]
fn a_page_that_is_known_is_not_sent_again_and_head_sends_none() {
    let kept = Kept::new(&[]);
    let mut client = kept.service.send("GET", "/", "", "");
    let length = client.rest().body.len();
    let text = client.text();
    let (_, tag) = text.split_once("etag: ").expect("a tag");
    let tag = tag.lines().next().expect("a line");
    let known = kept.get(&format!("if-none-match: {tag}\r\n"));
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert!(known.header("content-security-policy").is_some());
    assert_eq!(kept.get("if-none-match: \"other\"\r\n").status, 200);
    let head = kept.service.ask("HEAD", "/", "", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("content-length"), Some(&*length.to_string()));
    assert_eq!(kept.service.ask("POST", "/", "", "{}").status, 405);
}

#[test]
fn without_sessions_or_with_no_page_there_is_a_line_of_text() {
    let none = Service::new(&[
        "--replay",
        "../../fixtures/streams/openai-chat/row-02-index-always-0.sse",
    ]);
    let answer = none.ask("GET", "/", "", "");
    assert!(answer.body.contains("--sessions DIR"), "{answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let off = Kept::new(&["--no-page"]);
    let answer = off.get("");
    assert!(!answer.body.contains('<') && !answer.body.contains("--sessions"));
    off.service.signal(rustix::process::Signal::TERM);
    let (_, said) = off.service.ended();
    assert!(!said.contains("Page "), "{said}");
}

#[test]
fn a_foreign_host_or_origin_gets_nothing_of_the_page() {
    let kept = Kept::new(&[]);
    for headers in [
        "host: evil.example\r\n",
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: script\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: iframe\r\n",
    ] {
        let refused = kept.get(headers);
        assert_eq!(refused.status, 403, "{headers}");
        assert!(!refused.body.contains("<script"), "{headers}");
    }
    // Another site may link to the page, which contains no data and ignores the query.
    let link =
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";
    assert_eq!(kept.get(link).status, 200);
}

#[test]
fn the_page_needs_no_key_and_all_that_it_asks_for_does() {
    let mut kept = Kept::new(&["--", "true"]);
    let line = kept.service.line(|line| line.starts_with("  Page "));
    let (address, key) = line.trim().split_once("/#key=").expect("a key");
    assert!(address.ends_with(&kept.service.address), "{line}");
    assert!(key.starts_with("tp-"), "{line}");
    let page = kept.get("");
    assert_eq!(page.status, 200);
    assert!(!page.body.contains(key));
    let sessions = |headers: &str| kept.service.ask("GET", "/v1/sessions", headers, "").status;
    assert_eq!(sessions(""), 401);
    assert_eq!(sessions(&format!("cookie: key={key}\r\n")), 401);
    assert_eq!(sessions(&format!("authorization: Bearer {key}\r\n")), 200);
}

#[test]
fn standard_output_has_the_address_alone() {
    let folder = Scratch::new();
    let mut process = Command::new(testkit::program("tc-serve"))
        .args(["--listen", "127.0.0.1:0", "--sessions"])
        .arg(folder.path("s"))
        .args(["--", "true"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tc-serve starts");
    let mut stderr = std::io::BufReader::new(process.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("  Page ") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut stderr, &mut line).expect("a line") > 0);
    }
    let id = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
    let out = process.wait_with_output().expect("its output").stdout;
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(!out.contains("key") && !out.contains("tp-"), "{out}");
    // A signal that comes before the line is written leaves none.
    assert!(out.lines().count() <= 1, "{out}");
}
