//! Calls whose parameters are elements of their own name: `<a>1</a>`.

use super::{ANYWHERE, LINES, around, params, prompts};
use crate::dialect::{Dialect, Form, Header, Part, Section, StartTag};

pub(super) const ANTHROPIC_2024: Dialect = Dialect {
    name: "anthropic-2024",
    aliases: &["claude-2", "anthropic-legacy"],
    models: "Claude 2 and 3 with tools in the prompt",
    forms: &[Form {
        section: Some(Section { open: &["<function_calls>"], close: &["</function_calls>"], ..LINES }),
        call: &[
            Part::Mark(&["<invoke>"]),
            Part::Space("\n"),
            Part::Mark(&["<tool_name>"]),
            Part::Name { until: &["</tool_name>"], header: Header::Name },
            Part::Mark(&["</tool_name>"]),
            Part::Space("\n"),
            Part::Mark(&["<parameters>"]),
            Part::Params(&params::ELEMENTS),
            Part::Space("\n"),
            Part::Mark(&["</parameters>"]),
            Part::Space("\n"),
            Part::Mark(&["</invoke>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::PLAIN,
    prompt: &prompts::ANTHROPIC,
};

pub(super) const MINIMAX_M3: Dialect = Dialect {
    name: "minimax-m3",
    aliases: &["minimax3"],
    models: "MiniMax M3",
    forms: &[Form {
        section: Some(Section { open: &["]<]minimax[>[<tool_call>"], close: &["]<]minimax[>[</tool_call>"], ..LINES }),
        call: &[
            Part::Tag(&StartTag { open: &["]<]minimax[>[<invoke"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::MINIMAX_ELEMENTS),
            Part::Space(""),
            Part::Mark(&["]<]minimax[>[</invoke>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::MINIMAX_M3,
    prompt: &prompts::MINIMAX,
};
