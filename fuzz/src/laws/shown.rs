//! Events for people, and decisions about them: no character that drives a terminal comes from a
//! model, and a decision comes once.
//!
//! Input: a checker, then see `input.rs`, `stream`.

use super::input::{Source, merged, show, stream};
use super::line::{Line, is_json, raw};
use super::{Target, Turn};
use detect::{CallFilter, CheckerAnswers, Detect, checkers};
use event::{Collect, Kind, Scanner};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "shown",
    check,
};

fn check(bytes: &[u8], turn: Turn) {
    let mut source = Source(bytes);
    let checker = source.pick(&["full", "first-chunk", "lookahead:20", "tag", "auto"]);
    let lines = stream(&mut source, true).lines;
    show(&lines);
    let mut scanner = Scanner::default();
    let first = scanner.read(&lines[0]).unwrap();
    let run = |lines: &[String]| {
        let make = checkers(checker, &CallFilter::default()).unwrap();
        Collect::run(
            &mut Detect::new(
                checker.into(),
                make(&first),
                CheckerAnswers::default(),
                &first,
            ),
            lines,
        )
    };
    let out = run(&lines);
    if turn.takes(0) {
        assert_eq!(run(&out), out, "twice");
    }
    let out = Line::all(out);
    let is_decision = |l: &&Line| l.kind == Kind::Decision;
    assert!(
        out.iter()
            .filter(|l| !is_decision(l))
            .map(|l| &l.raw)
            .eq(&lines),
        "the stream was changed"
    );
    for number in [0, 1] {
        let own = out
            .iter()
            .filter(is_decision)
            .filter(|l| l.choice == number);
        let firsts = own.filter(|l| !l.raw.contains("\"revised\":true")).count();
        assert!(
            firsts == 1 || number == 1 && firsts == 0,
            "{firsts} decisions of choice {number}: {}",
            raw(&out)
        );
    }
    if turn.takes(1) {
        is_json(&out);
    }
    if !turn.takes(2) && !turn.takes(3) {
        return;
    }
    // Views get what accumulate writes. Of the controls of a terminal, only the view's own
    // sequences, and no hidden character of a text.
    let merged = merged(&lines, accumulate::AccumulateOptions::default());
    let mut scanner = Scanner::default();
    for form in view::FORMS {
        for is_terminal in [false, true] {
            let size: fn() -> Option<(usize, usize)> = if is_terminal {
                || Some((40, 12))
            } else {
                || None
            };
            let mut shown = (form.view)(&view::Surface {
                size,
                is_terminal,
                colour: Some(false),
                no_time: true,
                contents: true,
                conversation: None,
            });
            let mut bytes = Vec::new();
            for line in &merged {
                shown.push(&scanner.read(line).unwrap(), &mut bytes);
            }
            shown.finish(&mut bytes);
            let text = String::from_utf8(bytes).expect("UTF-8");
            // A program gets the answer as the model wrote it.
            if form.name == "answer" && !is_terminal {
                continue;
            }
            let raw = |c: char| {
                c.is_control()
                    && !['\n', '\t'].contains(&c)
                    && !(is_terminal && ['\u{1b}', '\r', '\u{7}'].contains(&c))
            };
            assert!(!text.contains(raw), "{}: {text:?}", form.name);
        }
    }
}
