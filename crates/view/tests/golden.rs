//! Recorded stories, and what they look like: each folder of `fixtures/views` holds events and the screens that show them.
//!
//! `in.ndjson` is shown on terminals of each width that has a file: `40.txt`, or `40x10.txt` for one of ten rows (else there are
//! 24). In `plain-40.txt` there are no colours; in `styles-40.txt` they are seen, as `{1}bold{}`. `text.txt` is the plain form.
//! The last line of a screen says how often the cursor was sent above the top. `UPDATE=1 cargo test` rewrites the files.

#![expect(clippy::unwrap_used, reason = "a test")]

mod emulator;
#[path = "../../../tests/pipeline/golden.rs"]
mod golden;

use emulator::Emulator;
use event::{Scanner, View};
use std::fs;
use std::path::Path;
use toolpipe_view::{self as view, Term, Terminal};

/// What the view named `name` makes of `log`.
fn shown(name: &str, log: &str) -> String {
    if name == "text" {
        return run(&mut view::text(false, true), log, |_| {});
    }
    let (form, size) = name.rsplit_once('-').unwrap_or(("", name));
    let (columns, rows) = size.split_once('x').unwrap_or((size, "24"));
    let (columns, rows) = (columns.parse().unwrap(), rows.parse().unwrap());
    let mut screen = Emulator::new(columns, rows);
    let mut view = Term::new(Terminal { columns, rows, colour: form != "plain" }, true);
    run(&mut view, log, |piece| screen.write(piece));
    let text = if form == "styles" { screen.marked() } else { screen.text() };
    assert_eq!(screen.lost, 0, "{name}: the cursor left the top of the screen\n{text}");
    text + "\n"
}

fn run(view: &mut dyn View, log: &str, mut piece: impl FnMut(&str)) -> String {
    let (mut scanner, mut all) = (Scanner::default(), String::new());
    let mut take = |out: Vec<u8>| {
        let text = String::from_utf8(out).unwrap();
        piece(&text);
        all.push_str(&text);
    };
    for line in log.lines() {
        let mut out = Vec::new();
        view.push(&scanner.read(line).unwrap(), &mut out);
        take(out);
    }
    let mut out = Vec::new();
    view.finish(&mut out);
    take(out);
    all
}

#[test]
fn every_story_looks_as_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/views");
    let mut wrong = Vec::new();
    let mut count = 0;
    for folder in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
        let log = fs::read_to_string(folder.join("in.ndjson")).unwrap();
        for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|e| e == "txt") {
                let name = file.file_stem().unwrap().to_str().unwrap();
                wrong.extend(golden::compare(&file, shown(name, &log).as_bytes()).map(|w| format!("{folder:?} {w}")));
                count += 1;
            }
        }
    }
    assert!(count > 0, "no stories");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
