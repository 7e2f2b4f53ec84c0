//! What the model reads of an output: not more than it should, nothing that is not text, no secret;
//! and where the whole is.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, Out, command, message, run_command, run_in, script};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// A run of one call of a script of `sh`, which only the message lists.
fn one(dir: &Dir, text: &str, more: Value, args: &[&str]) -> Out {
    run_in(
        dir,
        &[script("t", text, more)],
        &(message(&[("i", "t", json!({}))]) + "\n"),
        args,
    )
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_command_gets_the_span_of_its_call_in_its_environment() {
    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let text = "echo \"$TRACEPARENT $TRACESTATE\"";
    for more in [json!({}), json!({"env": ["TRACEPARENT", "TRACESTATE"]})] {
        let dir = Dir::new();
        let mut command = command(&dir, &[script("t", text, more)], &["--no-time"]);
        command
            .env("TRACEPARENT", CALLER)
            .env("TRACESTATE", "rojo=1");
        let out = run_command(command, &(message(&[("i", "t", json!({}))]) + "\n"));
        let uses = out.of("tool_use");
        let span = uses[0]["traceparent"].as_str().unwrap();
        assert!(span.starts_with(&CALLER[..36]) && span != CALLER, "{span}");
        let got = format!("{span} rojo=1\n");
        assert_eq!(out.outcome("i"), ("success", got.as_str()));
    }
}

#[test]
fn a_long_output_is_read_by_its_ends_and_kept_whole() {
    let dir = Dir::new();
    let out = one(
        &dir,
        "seq 1 30000",
        json!({}),
        &["--max-result", "1K", "--no-time"],
    );
    let (status, output) = out.outcome("i");
    let result = out.result("i");
    let whole: String = (1..=30000).map(|n| format!("{n}\n")).collect();
    assert_eq!(
        (status, &result["truncated"], &result["output_bytes"]),
        ("success", &json!(true), &json!(whole.len()))
    );
    assert_eq!(
        out.of("message").last().unwrap()["message"]["content"],
        output
    );
    assert!(
        output.starts_with("1\n2\n3\n") && output.ends_with("29999\n30000\n"),
        "{output}"
    );
    let file = Path::new(result["output_file"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(file).unwrap(), whole);
    // The line between the ends counts what is missing, and names the file.
    let (head, rest) = output.split_once("\n[").unwrap();
    let (note, tail) = rest.split_once("]\n").unwrap();
    let left_out = whole.len() - head.len() - 1 - tail.len();
    assert_eq!(
        note,
        format!(
            "{left_out} bytes are left out here; the whole output is in {}",
            file.display()
        )
    );
    assert!(head.len() + tail.len() < 1024 && whole.starts_with(head) && whole.ends_with(tail));
    // The file is for this user alone, in the folder of the environment, and its name is the digest
    // of what it holds.
    assert!(file.starts_with(dir.path("xdg/toolpipe/outputs")));
    assert_eq!(
        (
            mode(file),
            mode(file.parent().unwrap()),
            mode(&dir.path("xdg/toolpipe"))
        ),
        (0o600, 0o700, 0o700)
    );
    let sum = std::process::Command::new("sha256sum")
        .arg(file)
        .output()
        .unwrap()
        .stdout;
    let digest = String::from_utf8(sum).unwrap()[..64].to_owned();
    assert_eq!(
        file.file_name().unwrap().to_str().unwrap(),
        format!("{digest}.txt")
    );
    // The same output again is the same file.
    assert_eq!(
        one(&dir, "seq 1 30000", json!({}), &["--max-result", "1K"]).result("i")["output_file"],
        result["output_file"]
    );
    assert_eq!(
        std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
        1
    );
}

#[test]
fn a_tool_may_have_a_limit_of_its_own_and_short_outputs_stay() {
    let dir = Dir::new();
    let text = "printf '%0100d' 7";
    let out = one(&dir, text, json!({"max_result": 20}), &[]);
    assert!(
        out.outcome("i")
            .1
            .starts_with("0000000000\n[80 bytes are left out here;"),
        "{}",
        out.text
    );
    let out = one(
        &dir,
        text,
        json!({"max_result": "100"}),
        &["--max-result", "1"],
    );
    assert_eq!(
        (out.outcome("i").1.len(), &out.result("i")["truncated"]),
        (100, &json!(false))
    );
    assert!(out.result("i")["output_file"].is_null());
}

#[test]
fn no_character_is_cut() {
    let dir = Dir::new();
    for max in 1..12 {
        let out = one(
            &dir,
            "printf 'é🦀é🦀é🦀é🦀'",
            json!({ "max_result": max }),
            &[],
        );
        assert!(
            !out.text.contains('\u{fffd}') && out.result("i")["truncated"] == true,
            "{max}: {}",
            out.text
        );
    }
}

#[test]
fn a_failure_keeps_the_end_of_its_errors() {
    let dir = Dir::new();
    let out = one(
        &dir,
        "seq 1 30000; echo the reason >&2; exit 3",
        json!({"max_result": "1K"}),
        &[],
    );
    let (status, output) = out.outcome("i");
    assert!(
        status == "error"
            && output.contains("stderr:\nthe reason")
            && output.contains("left out here"),
        "{output}"
    );
    assert!(
        output.ends_with("\n30000") && output.len() < 2048,
        "{output}"
    );
    assert!(Path::new(out.result("i")["output_file"].as_str().unwrap()).is_file());
}

#[test]
fn binary_output_is_described_and_kept_26() {
    let dir = Dir::new();
    // The first bytes of a PNG image; 300 zeros; Latin-1 text.
    for (text, want, extension) in [
        (
            "printf '\\211PNG\\r\\n\\032\\n\\000\\000\\000\\rIHDR'",
            "a PNG image, 16 bytes",
            "png",
        ),
        ("printf '\\037\\213\\010\\000'", "gzip data, 4 bytes", "gz"),
        ("head -c 300 /dev/zero", "binary data, 300 bytes", "bin"),
        (
            "for n in 1 2 3 4 5 6 7 8 9 10; do printf '\\351\\350\\340 caf\\351'; done",
            "binary data, 80 bytes",
            "bin",
        ),
    ] {
        let out = one(&dir, text, json!({}), &[]);
        let result = out.result("i");
        let file = Path::new(
            result["output_file"]
                .as_str()
                .unwrap_or_else(|| panic!("{text}: {}", out.text)),
        );
        let output = format!(
            "[The output is {want}; the whole output is in {}]",
            file.display()
        );
        assert_eq!(
            (out.outcome("i"), &result["binary"]),
            (("success", output.as_str()), &json!(true))
        );
        assert_eq!(file.extension().unwrap(), extension);
        assert_eq!(
            std::fs::read(file).unwrap().len() as u64,
            result["output_bytes"].as_u64().unwrap()
        );
        assert!(!out.text.contains('\u{fffd}'));
    }
    // A few bad bytes in a text read U+FFFD.
    let out = one(&dir, "seq 1 100; printf '\\351'", json!({}), &[]);
    assert!(out.outcome("i").1.ends_with("100\n\u{fffd}") && out.result("i")["binary"].is_null());
}

/// A secret that the cut would divide is whole when it is looked for.
#[test]
fn no_secret_reaches_a_part_or_the_whole() {
    let dir = Dir::new();
    for (text, extension) in [
        (
            "printf '%050d' 7; printf %s \"$MY_API_KEY\"; printf '%050d' 7",
            "txt",
        ),
        ("printf '\\000%099d' 7; printf %s \"$MY_API_KEY\"", "bin"),
    ] {
        let tool = script("t", text, json!({"env": ["MY_API_KEY"], "max_result": 104}));
        let mut command = command(&dir, &[tool], &[]);
        command.env("MY_API_KEY", "canary-7Qz-canary-7Qz");
        let out = run_command(command, &(message(&[("i", "t", json!({}))]) + "\n"));
        let file = Path::new(out.result("i")["output_file"].as_str().unwrap());
        let whole = String::from_utf8(std::fs::read(file).unwrap()).unwrap();
        assert!(
            whole.contains("[redacted]") && file.extension().unwrap() == extension,
            "{whole}"
        );
        for part in [&out.text, &out.errors, &whole] {
            assert!(!part.contains("canary") && !part.contains("7Qz"), "{part}");
        }
    }
}

#[test]
fn without_a_usable_folder_the_result_is_short_and_has_no_file() {
    let dir = Dir::new();
    let short = |out: &Out, why: &str| {
        let output = out.outcome("i").1;
        assert!(
            output.contains("the whole output (sha256 ") && output.contains(why),
            "{output}"
        );
        assert!(
            out.result("i")["output_file"].is_null()
                && out.result("i")["truncated"] == true
                && out.status == 0
        );
    };
    short(
        &one(
            &dir,
            "seq 1 99",
            json!({"max_result": 9}),
            &["--keep-outputs", "0"],
        ),
        "are not kept here",
    );
    short(
        &one(
            &dir,
            "seq 1 99",
            json!({"max_result": 9}),
            &["--keep-outputs", "50"],
        ),
        "longer than the 50 bytes",
    );
    assert_eq!(
        std::fs::read_dir(dir.path("xdg/toolpipe/outputs"))
            .unwrap()
            .count(),
        0
    );
    // Another user may have put a link there.
    std::fs::remove_dir(dir.path("xdg/toolpipe/outputs")).unwrap();
    symlink(dir.path("."), dir.path("xdg/toolpipe/outputs")).unwrap();
    let out = one(&dir, "seq 1 99", json!({"max_result": 9}), &[]);
    short(&out, "no folder");
    assert!(
        out.errors.contains("links are not followed") && out.errors.contains("--keep-outputs 0"),
        "{}",
        out.errors
    );
}

#[test]
fn the_oldest_whole_outputs_make_room() {
    let dir = Dir::new();
    let files: Vec<String> = (0..9)
        .map(|n| {
            one(
                &dir,
                &format!("printf '%0400d' {n}"),
                json!({"max_result": 9}),
                &["--keep-outputs", "1K"],
            )
        })
        .map(|out| out.result("i")["output_file"].as_str().unwrap().to_owned())
        .collect();
    let there = files
        .iter()
        .map(|file| Path::new(file).exists())
        .collect::<Vec<_>>();
    assert!(
        there[8] && !there[0] && there.iter().filter(|there| **there).count() <= 2,
        "{there:?}"
    );
}
