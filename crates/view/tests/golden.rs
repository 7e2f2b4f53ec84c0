//! Recorded stories and their screens: each folder of `fixtures/views` holds events, and each
//! screen beside them is a test.
//!
//! `in.ndjson` is shown on a terminal of the width that the file's name says: `40.txt`, or
//! `40x10.txt` for one of ten rows (else 24). `plain-40.txt` is without colours; `styles-40.txt`
//! shows them, as `{1}bold{}`. `text.txt` is the plain form, `report.html` and `report.md` are
//! reports; the style of a page is left out.
//! `UPDATE=1 cargo test -p toolpipe-view --test fixtures golden/NAME` rewrites the files.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::{Scanner, View};
use std::fs;
use std::path::Path;
use testkit::Emulator;
use testkit::golden;
use testkit::trials::{self, Trial};
use toolpipe_view::{self as view, Term, Terminal};

/// What the view named `name` makes of `log`.
fn shown(name: &str, log: &str) -> String {
    if name == "text" {
        return run(&mut view::text(false, true), log, |_| {});
    }
    if name == "report.md" {
        return run(&mut view::markdown(true), log, |_| {});
    }
    if name == "report.html" {
        let page = run(&mut view::html(true), log, |_| {});
        let (head, rest) = page.split_once("<style>").unwrap();
        let (_, body) = rest.split_once("</style>").unwrap();
        let head = head.replace(view::html_policy(), "…");
        return format!("{head}<style>…</style>{body}");
    }
    let (form, size) = name.rsplit_once('-').unwrap_or(("", name));
    let (columns, rows) = size.split_once('x').unwrap_or((size, "24"));
    let columns = columns.parse().unwrap();
    let rows = rows.parse().unwrap();
    let mut screen = Emulator::new(columns, rows);
    let mut view = Term::new(
        Terminal {
            columns,
            rows,
            colour: form != "plain",
        },
        true,
    );
    run(&mut view, log, |piece| screen.write(piece));
    let text = if form == "styles" {
        screen.marked()
    } else {
        screen.text()
    };
    assert_eq!(
        screen.lost, 0,
        "{name}: the cursor left the top of the screen\n{text}"
    );
    text + "\n"
}

fn run(view: &mut dyn View, log: &str, mut piece: impl FnMut(&str)) -> String {
    let mut scanner = Scanner::default();
    let mut all = String::new();
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

pub(crate) fn trials() -> Vec<Trial<'static>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/views");
    let mut screens = Vec::new();
    for folder in fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let files = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let is_screen = |file: &std::path::PathBuf| file.file_name().unwrap() != "in.ndjson";
        for file in files.filter(is_screen) {
            screens.push((
                file.strip_prefix(&root).unwrap().display().to_string(),
                file,
            ));
        }
    }
    screens.sort();
    trials::each("golden", screens, |file| {
        let log = fs::read_to_string(file.with_file_name("in.ndjson")).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let name = name.strip_suffix(".txt").unwrap_or(name);
        golden::compare(file, shown(name, &log).as_bytes())
            .into_iter()
            .collect()
    })
}
