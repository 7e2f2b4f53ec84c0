//! Requests to servers on loopback: several at once, limits, recordings, and what may not happen.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use api::tape::TapeEnding;
use api::{Api, Request};
use std::io::{Read, Write};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tokio::time::Instant;
use toolpipe_client::{
    Body, ErrorKind, Network, Networks, PieceContent, Recorder, Route, TapeMode, TimeLimits,
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello";

/// A server that hands each connection, once its request was read, to `serve` in a thread of its
/// own.
fn server(serve: impl Fn(&mut testkit::Connection) + Send + Sync + 'static) -> String {
    let server = testkit::Server::answering(move |_, _, stream| {
        serve(stream);
        false
    });
    server.url
}

fn request(url: &str) -> Request {
    Request {
        method: "GET",
        url: url.to_owned(),
        headers: vec![],
        body: String::new(),
    }
}

fn network(url: &str) -> Network {
    Network::new(&Route::of(url), Duration::from_secs(10)).unwrap()
}

/// All bytes of a body, and how it ended.
async fn read(mut body: Body) -> (Vec<u8>, Option<ErrorKind>) {
    let mut bytes = vec![];
    loop {
        match body.next().await.what {
            PieceContent::Bytes(more) => bytes.extend_from_slice(more),
            PieceContent::End => return (bytes, None),
            PieceContent::Lost(error) => return (bytes, Some(error.kind)),
        }
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

#[test]
fn several_requests_are_on_their_way_at_once() {
    const AT_ONCE: usize = 8;
    // No answer begins before all requests are there.
    let barrier = Arc::new(Barrier::new(AT_ONCE));
    let url = server(move |stream| {
        barrier.wait();
        stream.write_all(ANSWER).unwrap();
    });
    run(async {
        let network = network(&url);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            let network = network.clone();
            let request = request(&url);
            tasks.spawn(async move {
                let response = network
                    .send(request.clone(), TimeLimits::default(), None)
                    .await
                    .map_err(|(e, _)| e)
                    .unwrap();
                read(response.body).await
            });
        }
        for read in tasks.join_all().await {
            assert_eq!(read, (b"hello".to_vec(), None));
        }
    });
}

#[test]
fn routes_to_one_server_share_its_connections() {
    let server = testkit::Server::answering(|_, _, stream| {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        stream.write_all(answer).is_ok()
    });
    let timeout = Duration::from_secs(10);
    let mut networks = Networks::default();
    let mut ask = |path: &str, connect_timeout: Duration| {
        let url = format!("{}{path}", server.url);
        networks.along(&Route::of(&url), connect_timeout).unwrap()
    };
    let ways = [
        ask("/v1", timeout),
        ask("/api", timeout),
        ask("/v1", timeout),
        ask("/v1", 2 * timeout),
    ];
    run(async {
        for (way, connections) in ways.iter().zip([1, 1, 1, 2]) {
            let answer = way.ask(&request(&server.url), 100).await.unwrap();
            assert_eq!(answer.as_deref(), Some("hello"));
            assert_eq!(server.connections(), connections);
        }
    });
}

#[test]
fn a_fast_answer_comes_in_small_pieces() {
    const LENGTH: usize = 2 << 20;
    let url = server(|stream| {
        let head =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {LENGTH}\r\n\r\n");
        let body: Vec<u8> = (0..LENGTH).map(|n| (n % 251) as u8).collect();
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&body))
            .unwrap();
    });
    run(async {
        let mut body = network(&url)
            .send(request(&url), TimeLimits::default(), None)
            .await
            .unwrap()
            .body;
        let mut read = 0;
        // A reader that is slow finds a whole read of the system's buffers waiting.
        while let PieceContent::Bytes(piece) = body.next().await.what {
            assert!(
                !piece.is_empty() && piece.len() <= 16 << 10,
                "{}",
                piece.len()
            );
            assert!(
                piece
                    .iter()
                    .enumerate()
                    .all(|(n, byte)| *byte == ((read + n) % 251) as u8)
            );
            read += piece.len();
        }
        assert_eq!(read, LENGTH);
    });
}

#[test]
fn a_silence_and_a_deadline_end_the_wait() {
    let url = server(|stream| {
        let _ = stream.read(&mut [0; 1]); // until the client has closed
    });
    run(async {
        let short = Duration::from_millis(20);
        let idle = TimeLimits {
            idle: Some(short),
            deadline: None,
        };
        let deadline = TimeLimits {
            idle: None,
            deadline: Some(Instant::now() + short),
        };
        for (limits, kind) in [(idle, ErrorKind::Idle), (deadline, ErrorKind::Deadline)] {
            let (error, _) = network(&url)
                .send(request(&url), limits, None)
                .await
                .unwrap_err();
            assert!(error.kind == kind && error.is_timeout(), "{error}");
        }
        // A deadline that has passed counts also where nothing waits.
        let passed = TimeLimits {
            idle: None,
            deadline: Some(Instant::now()),
        };
        assert_eq!(
            passed
                .wait(tokio::time::sleep(Duration::ZERO))
                .await
                .unwrap_err()
                .kind,
            ErrorKind::Deadline
        );
    });
}

#[test]
fn a_small_answer_that_was_cut_or_is_too_long_is_none() {
    for (length, most, expected) in [(5, 5, Some("hello")), (5, 4, None), (6, 100, None)] {
        let url = server(move |stream| {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\nhello"
            );
            stream.write_all(head.as_bytes()).unwrap();
        });
        let answer = run(network(&url).ask(&request(&url), most)).unwrap();
        assert_eq!(answer.as_deref(), expected, "{length} {most}");
    }
}

#[test]
fn a_redirect_is_returned_and_not_followed() {
    let url = server(|stream| {
        stream
            .write_all(
                b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            )
            .unwrap();
    });
    let response = run(async {
        network(&url)
            .send(request(&url), TimeLimits::default(), None)
            .await
            .map_err(|(error, _)| error)
            .unwrap()
    });
    assert_eq!(
        (response.head.status, response.head.header("location")),
        (302, Some("http://127.0.0.1:1/"))
    );
}

#[test]
fn an_answer_is_recorded_without_secrets_and_so_is_a_failure() {
    let path = std::env::temp_dir().join(format!("toolpipe-client-{}.tape", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let url = server(|stream| {
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nconnection: close\r\nset-cookie: s3cret\r\n\r\nmy s3cret-1",
            )
            .unwrap();
    });
    let mut recorder = Recorder::open(path.clone(), TapeMode::Record).unwrap();
    recorder.set_redactor(&redact::Redactor::new(["s3cret-1".to_owned()]));
    let recorded = run(async {
        let mut request = request(&url);
        request
            .headers
            .push(("x-mine".to_owned(), "s3cret-1".to_owned()));
        let recording =
            Some(recorder.begin(Api::OpenaiChat, "m", &request, |name| name == "x-mine"));
        let response = network(&url)
            .send(request.clone(), TimeLimits::default(), recording)
            .await
            .map_err(|(e, _)| e)
            .unwrap();
        let mut body = response.body;
        while let PieceContent::Bytes(_) = body.next().await.what {}
        let answered = *body.recorded(None).unwrap();
        let nobody = self::request("http://127.0.0.1:1");
        let recording = Some(recorder.begin(Api::OpenaiChat, "m", &nobody, |_| false));
        let (error, recorded) = network(&nobody.url)
            .send(nobody.clone(), TimeLimits::default(), recording)
            .await
            .unwrap_err();
        let recorded = recorded.unwrap();
        assert_eq!(
            (error.kind, recorded.end.unwrap().1),
            (ErrorKind::Refused, TapeEnding::Reset)
        );
        vec![answered, *recorded]
    });
    recorder.save(recorded, true).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(
        !text.contains("s3cret")
            && text.contains("my [redacted]")
            && text.contains("request.headers.x-mine")
    );
    assert_eq!(api::tape::Tape::read(&text).unwrap().exchanges.len(), 2);
}
