//! The picture of README.md: `docs/session.svg` is what a terminal shows of a run that the recorded
//! model answers with real tools (`UPDATE=1 cargo test --test main picture::` records the run again).

use crate::pipeline::scratch::{ASK, QUESTION, Scratch};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use testkit::{Emulator, golden};

/// The width of the terminal, in characters.
const COLUMNS: usize = 92;
/// The size of a character, and the space around the text, in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: usize = 19;
const MARGIN: usize = 14;

#[test]
fn the_picture_of_the_readme_is_recorded() {
    let scratch = Scratch::new();
    let ask = ASK.replace(" --log $SCRATCH/log", "");
    let mut screen = Emulator::new(COLUMNS, 60);
    screen.write("$ \u{1b}[1m");
    screen.write(&wrapped(&format!("{ask} {QUESTION}")));
    screen.write("\u{1b}[0m\r\n");
    screen.write(&recorded(
        &scratch,
        &format!("{ask} --no-time --color always {QUESTION}"),
    ));
    let wrong = golden::compare(
        &testkit::root().join("docs/session.svg"),
        picture(&screen).as_bytes(),
    );
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
}

/// A command line as people break it: between words, with a backslash.
fn wrapped(command: &str) -> String {
    let mut lines = vec![String::new()];
    for word in command.split(' ') {
        let line = lines.last_mut().expect("a line");
        if line.chars().count() + word.chars().count() + 6 > COLUMNS {
            // A quoted text goes on without one.
            line.push_str(if word.starts_with('\'') { " \\" } else { "" });
            lines.push(format!("    {word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\r\n")
}

/// What the command writes to a terminal.
fn recorded(scratch: &Scratch, command: &str) -> String {
    let (mut person, terminal) = testkit::terminal().expect("a terminal");
    rustix::termios::tcsetwinsize(
        &terminal,
        rustix::termios::Winsize {
            ws_row: 60,
            ws_col: COLUMNS as u16,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
    .expect("a size");
    let copy = |file: &File| file.try_clone().expect("a copy");
    let running = scratch
        .bash(command)
        .env("TERM", "xterm-256color")
        .stdout(copy(&terminal))
        .stderr(terminal)
        .spawn()
        .expect("bash runs");
    let mut written = Vec::new();
    // The terminal ends when no process has it: that is an error here, on Linux.
    let _ = person.read_to_end(&mut written);
    assert_eq!(testkit::finish(running, None).status, 0);
    String::from_utf8(written).expect("UTF-8")
}

/// The screen as SVG.
fn picture(screen: &Emulator) -> String {
    let rows = screen.runs();
    let used = rows
        .iter()
        .rposition(|row| row.iter().any(|run| !run.2.trim().is_empty()));
    let rows = &rows[..used.map_or(0, |last| last + 1)];
    let width = (COLUMNS as f64 * WIDTH) as usize + 2 * MARGIN;
    let height = rows.len() * HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
        <title>A run of react, recorded</title>\n<style>{STYLE}</style>\n\
        <rect width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        for (column, style, text, columns) in row.iter().filter(|run| !run.2.trim().is_empty()) {
            let x = MARGIN as f64 + *column as f64 * WIDTH;
            let y = MARGIN + number * HEIGHT + 14;
            let classes: String = style
                .split(';')
                .filter(|n| !n.is_empty())
                .map(|n| format!(" s{n}"))
                .collect();
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{:.1}\" class=\"{}\" xml:space=\"preserve\">{text}</text>",
                *columns as f64 * WIDTH,
                classes.trim_start()
            );
        }
    }
    svg + "</svg>\n"
}

/// The colours of a terminal, for dark and for light pages.
const STYLE: &str = "rect{fill:#16181d}text{fill:#d8dbe2}.s1{font-weight:700}.s2{fill:#8b93a3}.s3{font-style:italic}.s4{text-decoration:underline}\
    .s31{fill:#ff7b72}.s32{fill:#56d364}.s33{fill:#e3b341}.s34{fill:#79c0ff}.s35{fill:#d2a8ff}.s36{fill:#56d4dd}\
    @media(prefers-color-scheme:light){rect{fill:#f6f8fa}text{fill:#1f2328}.s2{fill:#59636e}.s31{fill:#cf222e}.s32{fill:#1a7f37}.s33{fill:#9a6700}\
    .s34{fill:#0969da}.s35{fill:#8250df}.s36{fill:#1b7c83}}";
