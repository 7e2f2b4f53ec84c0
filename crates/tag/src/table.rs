//! The table of dialects.

use crate::dialect::{Dialect, Form, Framing, Header, Keys, Needs, Part, Prefilled, Scope, Section, Shape, StartTag};
use crate::prompt::Prompt;

pub(crate) static ALL: &[Dialect] = &[
    Dialect {
        name: "hermes",
        aliases: &["qwen", "qwen2.5", "qwen3"],
        models: "Hermes 2 and 3, Qwen 2.5, Qwen 3, QwQ, and many others",
        forms: &[Form {
            section: None,
            call: &[
                Part::Mark(&["<tool_call>"]),
                Part::Space("\n"),
                Part::Calls(&OBJECT),
                Part::Space("\n"),
                Part::Maybe { marks: &["</tool_call>"], write: true },
            ],
            between: "\n",
            scope: Scope::Anywhere,
            needs: Needs::Listed,
        }],
        framing: &THINK,
        prompt: &Prompt {},
    },
    Dialect {
        name: "tool-name-tag",
        aliases: &[],
        models: "any model that follows instructions",
        forms: &[Form {
            section: None,
            call: &[
                Part::Tag(&StartTag { open: &["<tool"], end: ">", name: "name", rest: "" }),
                Part::Space(""),
                Part::Arguments,
                Part::Space(""),
                Part::Mark(&["</tool>"]),
            ],
            between: "\n",
            scope: Scope::Anywhere,
            needs: Needs::Listed,
        }],
        framing: &PLAIN,
        prompt: &Prompt {},
    },
];

static OBJECT: Keys =
    Keys { name: &["name"], arguments: &["arguments", "parameters"], id: &["id"], write_id: false, shape: Shape::Object };

static THINK: Framing = Framing {
    reasoning: &[("<think>", "</think>")],
    prefilled: Prefilled::Perhaps,
    call_ends_reasoning: false,
    dropped: &[],
    dropped_first: &[],
    messages: false,
};

static PLAIN: Framing = Framing {
    reasoning: &[("<think>", "</think>")],
    prefilled: Prefilled::No,
    call_ends_reasoning: false,
    dropped: &[],
    dropped_first: &[],
    messages: false,
};
