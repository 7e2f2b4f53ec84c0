use super::Parser;
use crate::look::Look;
use crate::outlet::{CallPiece, Outlet};
use std::rc::Rc;

/// The text of the answer and the reasoning; calls are not expected.
#[derive(Default)]
struct Texts {
    answer: String,
    reasoning: String,
}

impl Outlet for Texts {
    fn content(&mut self, text: &str) {
        self.answer.push_str(text);
    }

    fn reasoning(&mut self, text: &str) {
        self.reasoning.push_str(text);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        panic!("{piece:?}");
    }

    fn retract(&mut self, index: i64, _reason: &'static str) {
        panic!("{index} is retracted");
    }

    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
}

/// The prompts of MiniMax M2 end inside reasoning: a long beginning is reasoning, and stays it
/// behind a quoted call in which that was decided.
#[test]
fn text_behind_a_quoted_call_that_decides_the_beginning_is_reasoning() {
    let call = "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">2</parameter>\n</invoke>\n</minimax:tool_call>";
    for words in [20, 60, 70] {
        let text = format!("{}\"{call}\" it is.</think>So.", "so ".repeat(words));
        for length in [1, 7, text.len()] {
            let mut parser = Parser::new(Rc::new(Look::new("minimax-m2").unwrap()), None, None);
            let mut texts = Texts::default();
            text.as_bytes()
                .chunks(length)
                .for_each(|b| parser.push(std::str::from_utf8(b).unwrap(), &mut texts));
            parser.finish(false, &mut texts);
            assert_eq!(texts.answer, "So.", "{words} words in pieces of {length}");
            assert_eq!(texts.reasoning, text[..text.len() - "</think>So.".len()]);
        }
    }
}
