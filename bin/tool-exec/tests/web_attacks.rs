//! Servers that answer what nobody should have to read: bombs, lies and floods.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::harness::one;
use crate::web::{GUARD, Server, Step, TEXT, answer, web};
use serde_json::json;
use std::sync::mpsc::channel;
use testkit::{gzip, gzip_run};

/// 64 MiB of `x` in Brotli's form.
const BROTLI: [u8; 106] = [
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x25, 0xf0, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff,
    0x7f, 0xf0, 0x4b, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0xe0, 0x97,
    0x00, 0x88, 0xc3, 0x02, 0x00, 0xdd, 0xfb, 0x3f, 0xfe, 0xff, 0xff, 0xc1, 0x2f, 0x01, 0x10, 0x87,
    0x05, 0x00, 0xba, 0xf7, 0x7f, 0xfc, 0xff, 0xff, 0x83, 0x5f, 0x02, 0x20, 0x0e, 0x0b, 0x00, 0x74,
    0xef, 0xff, 0xf8, 0xff, 0xff, 0x07, 0xbf, 0x04, 0x40, 0x1c, 0x16, 0x00, 0xe8, 0xde, 0xff, 0xf1,
    0xff, 0xff, 0x0f, 0x7e, 0x09, 0x80, 0x38, 0x2c, 0x00, 0xd0, 0xbd, 0xff, 0xe3, 0xff, 0xff, 0x1f,
    0xfc, 0x12, 0x00, 0x71, 0x58, 0x00, 0xa0, 0x7b, 0xff, 0x37,
];

/// Status and output of a call of a tool of this server, which may give 100 kB.
fn ask(script: Vec<Step>) -> (String, String) {
    let server = Server::new(vec![script]);
    let tool = web(
        "get",
        &server,
        "/",
        json!({}),
        json!({"max_output": "100K", "max_result": "1K", "timeout": "20s"}),
    );
    let out = one(&tool, &json!({}));
    let (status, output) = out.outcome("i");
    assert!(output.len() < 2000, "{}", output.len());
    let is_cut = output.contains("the rest was not read") || output.contains("[the body was cut]");
    assert!(!is_cut || out.result("i")["truncated"] == true, "{output}");
    (status.to_owned(), output.to_owned())
}

#[test]
fn a_small_body_that_becomes_huge_is_not_read_to_its_end() {
    let zipped = gzip_run("", b'x', 64 << 20, "");
    assert!(zipped.len() < 500_000, "{}", zipped.len());
    for (name, body) in [("gzip", zipped), ("br", BROTLI.to_vec())] {
        let (status, output) = ask(answer(
            "200 OK",
            &format!("{TEXT}content-encoding: {name}\r\n"),
            body,
        ));
        let says = "The answer is longer than 102400 bytes, the rest was not read.\nbody:\nxxxx";
        assert!(
            status == "error" && output.starts_with(says),
            "{name}: {output}"
        );
    }
}

#[test]
fn a_compression_inside_of_another_one_is_not_opened() {
    let inner = gzip(b"text");
    for (name, body) in [
        ("gzip, gzip", gzip(&inner)),
        ("br, gzip", inner.clone()),
        ("gzip,identity", inner),
    ] {
        let (status, output) = ask(answer(
            "200 OK",
            &format!("{TEXT}content-encoding: {name}\r\n"),
            body,
        ));
        assert!(
            status == "error" && output.contains("compressed in a way that tool-exec cannot read"),
            "{output}"
        );
    }
    // A compression that is announced and not there.
    let (status, output) = ask(answer(
        "200 OK",
        &format!("{TEXT}content-encoding: gzip\r\n"),
        "plain",
    ));
    assert!(
        status == "error" && output.contains("The answer was cut after 0 bytes"),
        "{output}"
    );
}

#[test]
fn a_body_that_is_not_as_long_as_it_says_is_an_error() {
    for (headers, body) in [
        ("content-length: 100\r\n", "part"),
        ("content-length: 99999999999999999999999\r\n", "part"),
        ("content-length: -1\r\n", "part"),
        ("content-length: 4\r\ncontent-length: 5\r\n", "part"),
        ("transfer-encoding: chunked\r\n", "5\r\npart\r\n0\r\n\r\n"),
        (
            "transfer-encoding: chunked\r\n",
            "fffffffffffffffff\r\npart\r\n0\r\n\r\n",
        ),
        ("transfer-encoding: chunked\r\n", "-1\r\npart\r\n0\r\n\r\n"),
        ("transfer-encoding: chunked\r\n", "4\r\npart\r\n"),
    ] {
        let (status, output) = ask(answer("200 OK", headers, body));
        let is_said = output.starts_with("The answer was cut after ")
            || output.starts_with("No answer came: ");
        assert!(status == "error" && is_said, "{headers} {body:?}: {output}");
    }
    // What follows the end that it announces is not a part of it.
    assert_eq!(
        ask(answer(
            "200 OK",
            "content-length: 4\r\n",
            "partHTTP/1.1 200 OK"
        )),
        ("success".into(), "part".into())
    );
}

#[test]
fn headers_without_end_are_an_error() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-a: b\r\n".repeat(100_000));
    let (status, output) = ask(vec![Step::Send(many.into())]);
    assert!(
        status == "error" && output.starts_with("No answer came: "),
        "{output}"
    );
    for flood in [&b"x-a: b\r\n"[..], b"x"] {
        let (taken, took) = channel();
        let head = Step::Send(b"HTTP/1.1 200 OK\r\nx: ".to_vec());
        let (status, output) = ask(vec![head, Step::Flood(flood.to_vec(), taken)]);
        assert!(
            status == "error" && output.starts_with("No answer came: "),
            "{output}"
        );
        // What the sockets hold is up to the system.
        assert!(took.recv_timeout(GUARD).unwrap() < 64 << 20);
    }
}

#[test]
fn a_header_without_measure_does_not_fill_the_result() {
    for header in ["retry-after", "location"] {
        let script = answer(
            "302 Found",
            &format!("{header}: {}\r\n", "9".repeat(50_000)),
            "",
        );
        let (status, output) = ask(script);
        assert!(status == "error" && output.len() < 700, "{output}");
    }
}

#[test]
fn a_body_without_end_is_cut_and_its_connection_closed() {
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n",
        "HTTP/1.1 500 No\r\n\r\n",
    ] {
        let (taken, took) = channel();
        let (status, output) = ask(vec![
            Step::Send(head.into()),
            Step::Flood(b"y\n".to_vec(), taken),
        ]);
        assert!(status == "error" && output.contains("y\ny\n"), "{output}");
        assert!(took.recv_timeout(GUARD).unwrap() < 64 << 20);
    }
}

#[test]
fn a_server_that_does_not_speak_http_is_an_error() {
    for bytes in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"",
        b"HTTP/9.9 abc\r\n\r\n",
    ] {
        let (status, output) = ask(vec![Step::Send(bytes.to_vec())]);
        let says = "The call may have acted;";
        assert!(
            status == "error" && output.contains(says),
            "{bytes:?}: {output}"
        );
    }
}
