//! Calls whose name stands in a header before their JSON arguments.

use super::{ANYWHERE, MESSAGE, around, keys, prompts};
use crate::dialect::{Dialect, Form, Header, Part, Section, StartTag};

pub(super) const MISTRAL_V11: Dialect = Dialect {
    name: "mistral-v11-args",
    aliases: &["mistral-v11", "devstral", "mistral-small-3.2"],
    models: "Mistral Small 3.2, Devstral, Magistral before its thinking markers",
    forms: &MISTRAL,
    framing: &around::MISTRAL,
    prompt: &prompts::MISTRAL,
};

pub(super) const MISTRAL_V13: Dialect = Dialect {
    name: "mistral-v13-compact",
    aliases: &["mistral-v13", "magistral", "ministral3", "mistral-medium-3.5"],
    models: "Magistral, Ministral 3, Mistral Medium 3.5",
    forms: &MISTRAL,
    framing: &around::MISTRAL_THINK,
    prompt: &prompts::MISTRAL,
};

pub(super) const DEEPSEEK_V3: Dialect = Dialect {
    name: "deepseek-v3",
    aliases: &["deepseek", "deepseek-v3-0324"],
    models: "DeepSeek V3 and V3-0324",
    forms: &[DEEPSEEK],
    framing: &around::DEEPSEEK,
    prompt: &prompts::DEEPSEEK,
};

pub(super) const DEEPSEEK_R1: Dialect = Dialect {
    name: "deepseek-r1",
    aliases: &["deepseek-r1-0528", "deepseek-r1-distill"],
    models: "DeepSeek R1, R1-0528 and R1-Distill",
    forms: &[DEEPSEEK],
    framing: &around::DEEPSEEK_THINK,
    prompt: &prompts::DEEPSEEK,
};

pub(super) const DEEPSEEK_V31: Dialect = Dialect {
    name: "deepseek-v31",
    aliases: &["deepseek-v3.1", "deepseek-v3.1-terminus"],
    models: "DeepSeek V3.1 and V3.1-Terminus",
    forms: &[Form {
        section: Some(DEEPSEEK_CALLS),
        call: &[
            Part::Mark(DEEPSEEK_CALL),
            Part::Name { until: DEEPSEEK_SEP, header: Header::Name },
            Part::Mark(DEEPSEEK_SEP),
            Part::Space(""),
            Part::Arguments,
            Part::Space(""),
            Part::Maybe { marks: DEEPSEEK_CALL_END, write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::DEEPSEEK_MAY_THINK,
    prompt: &prompts::DEEPSEEK,
};

pub(super) const KIMI_K2: Dialect = Dialect {
    name: "kimi-k2",
    aliases: &["kimi", "kimi-k2.5", "kimi-k2.6", "kimi-k2-thinking"],
    models: "Kimi K2, K2.5, K2.6 and K2 Thinking",
    forms: &[Form {
        section: Some(Section {
            open: &["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"],
            close: &["<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
            optional: true,
            inside: "",
            between: "",
        }),
        call: &[
            Part::Mark(&["<|tool_call_begin|>"]),
            Part::Space(""),
            Part::Name { until: &["<|tool_call_argument_begin|>"], header: Header::Counted },
            Part::Mark(&["<|tool_call_argument_begin|>"]),
            Part::Space(""),
            Part::Arguments,
            Part::Space(""),
            Part::Maybe { marks: &["<|tool_call_end|>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::KIMI,
    prompt: &prompts::KIMI,
};

pub(super) const FUNCTIONARY_V31: Dialect = Dialect {
    name: "functionary-v3.1",
    aliases: &["functionary3.1", "llama3-custom"],
    models: "Functionary 3.1, Llama 3.1 with custom tools",
    forms: &[FUNCTION_EQUALS],
    framing: &around::LLAMA,
    prompt: &prompts::ARRAY,
};

pub(super) const FUNCTIONARY_V32: Dialect = Dialect {
    name: "functionary-v3.2",
    aliases: &["functionary", "functionary3.2"],
    models: "Functionary 3.2",
    forms: &[
        Form {
            call: &[
                Part::Mark(&[">>>"]),
                Part::Name { until: LINE, header: Header::Name },
                Part::Space("\n"),
                Part::Arguments,
            ],
            between: "",
            ..ANYWHERE
        },
        // The prompt ends with the first `>>>`.
        Form {
            call: &[Part::Name { until: LINE, header: Header::Name }, Part::Space("\n"), Part::Arguments],
            ..MESSAGE
        },
    ],
    framing: &around::FUNCTIONARY,
    prompt: &prompts::TYPESCRIPT,
};

pub(super) const HARMONY: Dialect = Dialect {
    name: "harmony",
    aliases: &["gpt-oss", "openai-harmony", "llm-jp"],
    models: "gpt-oss 20b and 120b, LLM-jp",
    forms: &[],
    framing: &around::MESSAGES,
    prompt: &prompts::HARMONY,
};

pub(super) const TOOL_NAME_TAG: Dialect = Dialect {
    name: "tool-name-tag",
    aliases: &["tool-tag"],
    models: "any model that follows instructions",
    forms: &[Form {
        call: &[
            Part::Tag(&StartTag { open: &["<tool"], end: ">", name: "name", rest: "" }),
            Part::Space(""),
            Part::Arguments,
            Part::Space(""),
            Part::Mark(&["</tool>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::PLAIN,
    prompt: &prompts::PLAIN,
};

pub(super) const GIGACHAT3: Dialect = Dialect {
    name: "gigachat3",
    aliases: &["gigachat", "gigachat3.1", "gigachat3.5"],
    models: "GigaChat 3, 3.1 and 3.5",
    forms: &[
        Form {
            call: &[
                Part::Mark(&["<|message_sep|>"]),
                Part::Space("\n\n"),
                Part::Mark(&["function call<|role_sep|>"]),
                Part::Space("\n"),
                Part::Calls(&keys::OBJECT),
                Part::Maybe { marks: &["</s>"], write: false },
            ],
            between: "",
            ..ANYWHERE
        },
        Form {
            call: &[
                Part::Mark(&["<|function_call|>"]),
                Part::Space(""),
                Part::Calls(&keys::OBJECT),
                Part::Maybe { marks: &["</s>"], write: false },
            ],
            between: "",
            ..ANYWHERE
        },
        // The separator before it may have ended the turn's text already.
        Form {
            call: &[
                Part::Mark(&["function call<|role_sep|>"]),
                Part::Space("\n"),
                Part::Calls(&keys::OBJECT),
                Part::Maybe { marks: &["</s>"], write: false },
            ],
            between: "",
            ..ANYWHERE
        },
        super::attribute::GCML,
    ],
    framing: &around::GIGACHAT,
    prompt: &prompts::LLAMA,
};

pub(super) const PLAMO3: Dialect = Dialect {
    name: "plamo3",
    aliases: &["plamo"],
    models: "PLaMo 3",
    forms: &[Form {
        section: Some(Section {
            open: &["<|plamo:begin_tool_requests:plamo|>"],
            close: &["<|plamo:end_tool_requests:plamo|>"],
            optional: true,
            inside: "",
            between: "",
        }),
        call: &[
            Part::Mark(&["<|plamo:begin_tool_request:plamo|>"]),
            Part::Space(""),
            Part::Mark(&["<|plamo:begin_tool_name:plamo|>"]),
            Part::Name { until: &["<|plamo:end_tool_name:plamo|>"], header: Header::Name },
            Part::Mark(&["<|plamo:end_tool_name:plamo|>"]),
            Part::Space(""),
            Part::Mark(&["<|plamo:begin_tool_arguments:plamo|>"]),
            Part::Space(""),
            Part::Maybe { marks: &["<|plamo:constrain|>json<|plamo:msg|>", "<|plamo:msg|>"], write: true },
            Part::Space(""),
            Part::Arguments,
            Part::Space(""),
            Part::Maybe { marks: &["<|plamo:end_tool_arguments:plamo|>"], write: true },
            Part::Space(""),
            Part::Maybe { marks: &["<|plamo:end_tool_request:plamo|>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::PLAIN,
    prompt: &prompts::ARRAY,
};

/// `<function=NAME>{…}</function>`.
pub(super) const FUNCTION_EQUALS: Form = Form {
    call: &[
        Part::Mark(&["<function="]),
        Part::Name { until: &[">"], header: Header::Name },
        Part::Mark(&[">"]),
        Part::Space(""),
        Part::Arguments,
        Part::Space(""),
        Part::Maybe { marks: &["</function>"], write: true },
    ],
    between: "",
    ..ANYWHERE
};

/// What a name up to the end of its line ends with.
pub(super) const LINE: &[&str] = &["\n", "\r\n"];

/// With and without an id, and without the marker of the arguments.
const MISTRAL: [Form; 2] = [
    Form {
        call: &[
            Part::Mark(&["[TOOL_CALLS]"]),
            Part::Space(""),
            Part::Name { until: &["[ARGS]", "{"], header: Header::Name },
            Part::Maybe { marks: &["[ARGS]"], write: true },
            Part::Space(""),
            Part::Arguments,
        ],
        between: "",
        ..ANYWHERE
    },
    Form {
        call: &[
            Part::Mark(&["[TOOL_CALLS]"]),
            Part::Space(""),
            Part::Name { until: &["[CALL_ID]"], header: Header::Name },
            Part::Mark(&["[CALL_ID]"]),
            Part::Id { until: &["[ARGS]"] },
            Part::Mark(&["[ARGS]"]),
            Part::Space(""),
            Part::Arguments,
        ],
        between: "",
        ..ANYWHERE
    },
];

/// DeepSeek's calls with their arguments in a fence.
const DEEPSEEK: Form = Form {
    section: Some(Section { between: "\n", ..DEEPSEEK_CALLS }),
    call: &[
        Part::Mark(DEEPSEEK_CALL),
        Part::Space(""),
        Part::Mark(&["function"]),
        Part::Space(""),
        Part::Mark(DEEPSEEK_SEP),
        Part::Name { until: LINE, header: Header::Name },
        Part::Space("\n"),
        Part::Maybe { marks: &["```"], write: true },
        Part::Maybe { marks: &["json"], write: true },
        Part::Space("\n"),
        Part::Arguments,
        Part::Space("\n"),
        Part::Maybe { marks: &["```"], write: true },
        Part::Space(""),
        Part::Maybe { marks: DEEPSEEK_CALL_END, write: true },
    ],
    ..ANYWHERE
};

/// Its section. Quantised and distilled models spell the tokens with other letters.
const DEEPSEEK_CALLS: Section = Section {
    open: &[
        "<｜tool▁calls▁begin｜>",
        "<｜tool_calls_begin｜>",
        "<｜tool calls begin｜>",
        "<｜tool\\_calls\\_begin｜>",
        "<｜tool▁calls｜>",
        "<|tool▁calls▁begin|>",
        "<|tool_calls_begin|>",
    ],
    close: &[
        "<｜tool▁calls▁end｜>",
        "<｜tool_calls_end｜>",
        "<｜tool calls end｜>",
        "<｜tool\\_calls\\_end｜>",
        "<|tool▁calls▁end|>",
        "<|tool_calls_end|>",
    ],
    optional: true,
    inside: "",
    between: "",
};

const DEEPSEEK_CALL: &[&str] = &[
    "<｜tool▁call▁begin｜>",
    "<｜tool_call_begin｜>",
    "<｜tool call begin｜>",
    "<｜tool\\_call\\_begin｜>",
    "<|tool▁call▁begin|>",
    "<|tool_call_begin|>",
];

const DEEPSEEK_CALL_END: &[&str] = &[
    "<｜tool▁call▁end｜>",
    "<｜tool_call_end｜>",
    "<｜tool call end｜>",
    "<｜tool\\_call\\_end｜>",
    "<|tool▁call▁end|>",
    "<|tool_call_end|>",
];

const DEEPSEEK_SEP: &[&str] =
    &["<｜tool▁sep｜>", "<｜tool_sep｜>", "<｜tool sep｜>", "<｜tool\\_sep｜>", "<|tool▁sep|>", "<|tool_sep|>"];
