//! Calls that are written as expressions: `f(a=1, b='x')`, `call:f{a:1}`.

use super::{ANYWHERE, MESSAGE, around, keys, prompts};
use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use crate::dialect::{Dialect, Form, Needs, Part, Scope};

pub(super) const PYTHONIC: Dialect = Dialect {
    name: "pythonic",
    aliases: &["llama3.2-pythonic", "toolace"],
    models: "Llama 3.2 with Python calls, ToolACE",
    forms: &[BARE, PYTHON_MARKED],
    framing: &around::LLAMA_THINK,
    prompt: &prompts::NAMED,
};

pub(super) const LLAMA4: Dialect = Dialect {
    name: "llama4-pythonic",
    aliases: &["llama4"],
    models: "Llama 4",
    forms: &[PYTHON_MARKED, BARE],
    framing: &around::LLAMA,
    prompt: &prompts::NAMED,
};

pub(super) const LFM2: Dialect = Dialect {
    name: "lfm2",
    aliases: &["lfm2.5", "liquid"],
    models: "LFM 2 and 2.5",
    forms: &[
        Form {
            call: &[
                Part::Mark(&["<|tool_call_start|>"]),
                Part::Space(""),
                Part::Expression(&PYTHON_LIST),
                Part::Space(""),
                Part::Maybe { marks: &["<|tool_call_end|>"], write: true },
            ],
            ..ANYWHERE
        },
        Form {
            call: &[
                Part::Mark(&["<|tool_call_start|>"]),
                Part::Space(""),
                Part::Calls(&keys::ARRAY),
                Part::Space(""),
                Part::Maybe { marks: &["<|tool_call_end|>"], write: true },
            ],
            ..ANYWHERE
        },
    ],
    framing: &around::LFM,
    prompt: &prompts::LFM,
};

pub(super) const OLMO3: Dialect = Dialect {
    name: "olmo3-pythonic",
    aliases: &["olmo3", "olmo"],
    models: "OLMo 3",
    forms: &[Form {
        call: &[
            Part::Mark(&["<function_calls>"]),
            Part::Space("\n"),
            Part::Expression(&PYTHON_LINES),
            Part::Space("\n"),
            Part::Maybe { marks: &["</function_calls>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::THINK,
    prompt: &prompts::PLAIN,
};

pub(super) const TOOL_CODE: Dialect = Dialect {
    name: "tool-code",
    aliases: &["gemma-tool-code", "gemma2", "gemma3", "tool_code"],
    models: "Gemma 2 and 3",
    forms: &[TOOL_CODE_FENCE],
    framing: &around::GEMMA_OLD,
    prompt: &prompts::TOOL_CODE,
};

pub(super) const FUNCTION_GEMMA: Dialect = Dialect {
    name: "functiongemma",
    aliases: &["function-gemma"],
    models: "FunctionGemma 270M",
    forms: &[Form {
        call: &[
            Part::Mark(&["<start_function_call>"]),
            Part::Space(""),
            Part::Expression(&ExpressionForm { arguments: ArgumentStyle::Gemma { quote: "<escape>" }, ..GEMMA }),
            Part::Space(""),
            Part::Maybe { marks: &["<end_function_call>"], write: true },
        ],
        between: "",
        ..ANYWHERE
    }],
    framing: &around::GEMMA_OLD,
    prompt: &prompts::FUNCTION_GEMMA,
};

pub(super) const GEMMA4: Dialect = Dialect {
    name: "gemma4",
    aliases: &["gemma", "gemma-4"],
    models: "Gemma 4",
    forms: &[Form {
        call: &[
            Part::Mark(&["<|tool_call>"]),
            Part::Space(""),
            Part::Expression(&GEMMA),
            Part::Space(""),
            Part::Maybe { marks: &["<tool_call|>"], write: true },
        ],
        between: "",
        ..ANYWHERE
    }],
    framing: &around::GEMMA,
    prompt: &prompts::GEMMA,
};

/// A list that is the whole message.
const BARE: Form = Form { call: &[Part::Expression(&PYTHON_LIST)], ..MESSAGE };

/// The same between Llama's markers.
const PYTHON_MARKED: Form = Form {
    call: &[
        Part::Mark(&["<|python_start|>"]),
        Part::Space(""),
        Part::Expression(&PYTHON_LIST),
        Part::Space(""),
        Part::Maybe { marks: &["<|python_end|>"], write: true },
    ],
    ..ANYWHERE
};

/// A fence round a call a line.
pub(super) const TOOL_CODE_FENCE: Form = Form {
    call: &[
        Part::Mark(&["```tool"]),
        Part::Mark(&["_code"]),
        Part::Space("\n"),
        Part::Expression(&PYTHON_LINES),
        Part::Space("\n"),
        Part::Maybe { marks: &["```"], write: true },
    ],
    scope: Scope::Line,
    needs: Needs::Known,
    ..ANYWHERE
};

static PYTHON_LIST: ExpressionForm = ExpressionForm {
    arguments: ArgumentStyle::Python,
    prefix: "",
    suffix: "",
    open: '(',
    list: true,
    separators: &[','],
};

static PYTHON_LINES: ExpressionForm = ExpressionForm {
    arguments: ArgumentStyle::Python,
    prefix: "",
    suffix: "",
    open: '(',
    list: false,
    separators: &['\n', ';', ','],
};

/// `<|python_tag|>brave_search.call(query="x")`: Llama's built-in tools.
pub(super) const BUILT_IN: Form = Form {
    call: &[
        Part::Mark(&["<|python_tag|>"]),
        Part::Space(""),
        Part::Expression(&ExpressionForm {
            arguments: ArgumentStyle::Python,
            prefix: "",
            suffix: ".call",
            open: '(',
            list: false,
            separators: &[],
        }),
    ],
    ..ANYWHERE
};

const GEMMA: ExpressionForm = ExpressionForm {
    arguments: ArgumentStyle::Gemma { quote: "<|\"|>" },
    prefix: "call:",
    suffix: "",
    open: '{',
    list: false,
    separators: &[],
};
