use crate::dialect::Dialect;
use crate::form::first;
use crate::look::Look;
use crate::outlet::{CallPiece, Outlet};
use crate::parser::Parser;
use crate::turn::PromptCall;
use std::rc::Rc;

/// The answer, and the names of the calls.
#[derive(Default)]
struct Found {
    answer: String,
    names: Vec<String>,
    done: usize,
}

impl Outlet for Found {
    fn content(&mut self, text: &str) {
        self.answer.push_str(text);
    }

    fn reasoning(&mut self, _text: &str) {}

    fn call(&mut self, piece: CallPiece<'_>) {
        self.names.extend(piece.name.map(str::to_owned));
        self.done += usize::from(piece.done);
    }

    fn retract(&mut self, _index: i64, _reason: &'static str) {
        self.done -= 1;
    }

    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
}

/// Reads a text by these dialects, in pieces of this many characters.
fn read(names: &str, text: &str, length: usize) -> Found {
    let (look, mut found) = (Rc::new(Look::new(names).unwrap()), Found::default());
    let mut parser = Parser::new(look, None, Some(""));
    let letters: Vec<char> = text.chars().collect();
    letters
        .chunks(length)
        .for_each(|piece| parser.push(&piece.iter().collect::<String>(), &mut found));
    parser.finish(false, &mut found);
    found
}

#[test]
fn text_before_the_first_call_of_a_section_hides_no_marker() {
    let call = PromptCall {
        id: "a",
        name: "f",
        arguments: r#"{"a": "b"}"#,
    };
    let noise = "So I call < it:\n";
    let mut count = 0;
    for dialect in Dialect::all().iter().filter(|d| !d.framing.messages) {
        for form in dialect
            .forms
            .iter()
            .filter(|form| !first(form.call).is_empty())
        {
            let Some(section) = &form.section else {
                continue;
            };
            count += 1;
            let written = form.write(&[call, call]);
            for open in section.open {
                let text = written.replacen(section.open[0], &format!("{open}{noise}"), 1);
                for (names, length) in [
                    (dialect.name, 1),
                    (dialect.name, 7),
                    (dialect.name, text.len()),
                    ("auto", 1),
                ] {
                    let found = read(names, &text, length);
                    assert_eq!(
                        found.answer.trim(),
                        noise.trim(),
                        "{} as {names}: {text}",
                        dialect.name
                    );
                    assert_eq!(
                        (found.names.len(), found.done),
                        (2, 2),
                        "{} as {names}: {text}",
                        dialect.name
                    );
                }
            }
        }
    }
    assert!(count > 15, "{count}");
}

/// A section's marker without a call is text, and is held back for a short time only.
#[test]
fn a_section_without_a_call_is_text() {
    let long = "and so on, ".repeat(40);
    for dialect in Dialect::all() {
        for section in dialect
            .forms
            .iter()
            .filter_map(|form| form.section.as_ref())
        {
            for text in [
                format!("A {} {long}", section.open[0]),
                format!("A {} it", section.open[0]),
            ] {
                assert_eq!(
                    read(dialect.name, &text, 3).answer,
                    text,
                    "{}",
                    dialect.name
                );
            }
        }
    }
}
