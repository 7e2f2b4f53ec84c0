//! Reads any text by any dialect, whole and in pieces: nothing panics or hangs, nothing is lost, and what is found is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::rc::Rc;
use toolpipe_json::ToolList;
use toolpipe_tag::{Dialect, Look, Outlet, Parser, CallPiece};

/// What was found: all text in order, and calls as text.
#[derive(Default)]
struct Found {
    passed: String,
    calls: String,
}

impl Outlet for Found {
    fn content(&mut self, text: &str) {
        self.passed.push_str(text);
    }
    fn reasoning(&mut self, text: &str) {
        self.passed.push_str(text);
    }
    fn call(&mut self, piece: CallPiece<'_>) {
        for part in [piece.name, piece.id, piece.arguments].into_iter().flatten() {
            self.calls.push_str(part);
        }
    }
    fn retract(&mut self, _index: i64, _reason: &'static str) {}
    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
    fn left_out(&mut self, text: &str) {
        self.passed.push_str(text);
    }
}

const TOOLS: &str = r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]"#;

// The first byte chooses the dialect (or all of them), the second what is known and where the text is cut.
fuzz_target!(|bytes: &[u8]| {
    let [dialect, how, text @ ..] = bytes else { return };
    let text = String::from_utf8_lossy(text);
    let names = Dialect::all().get(*dialect as usize).map_or("auto", |d| d.name);
    let look = Rc::new(Look::new(names).expect("a name of the table"));
    let tools = (how & 1 == 0).then(|| Rc::new(ToolList::read(TOOLS).expect("a list of tools")));
    let prefill = [Some(""), Some("<think>"), None, Some("")][usize::from(how >> 1 & 3)];
    let step = usize::from(how >> 3) + 1;
    let read = |pieces: &mut dyn Iterator<Item = String>| {
        let mut parser = Parser::new(Rc::clone(&look), tools.clone(), prefill);
        let mut found = Found::default();
        pieces.for_each(|piece| parser.push(&piece, &mut found));
        parser.finish(false, &mut found);
        found
    };
    let letters: Vec<char> = text.chars().collect();
    let whole = read(&mut std::iter::once(text.clone().into_owned()));
    let cut = read(&mut letters.chunks(step).map(|piece| piece.iter().collect()));
    assert_eq!(whole.passed, text);
    assert_eq!(cut.passed, text);
    // Where it is not known whether the prompt opened reasoning, the pieces decide what becomes of a long beginning.
    if prefill.is_some() {
        assert_eq!(whole.calls, cut.calls);
    }
});
