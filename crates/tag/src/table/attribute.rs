//! Calls whose tool and parameters are named in attributes: `<invoke name="f"><parameter name="a">1</parameter></invoke>`.

use super::{ANYWHERE, LINES, around, keys, params, prompts};
use crate::dialect::{Dialect, Form, Part, Section, StartTag};

pub(super) const ANTHROPIC: Dialect = Dialect {
    name: "anthropic-xml",
    aliases: &["anthropic", "claude"],
    models: "Claude, and models that are prompted as it was",
    forms: &[Form {
        section: Some(Section {
            open: &["<function_calls>", "<antml:function_calls>"],
            close: &["</function_calls>", "</antml:function_calls>"],
            ..LINES
        }),
        call: &[
            Part::Tag(&StartTag { open: &["<invoke", "<antml:invoke"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::ANTHROPIC),
            Part::Space("\n"),
            Part::Mark(&["</invoke>", "</antml:invoke>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::PLAIN,
    prompt: &prompts::ANTHROPIC,
};

pub(super) const MINIMAX_M2: Dialect = Dialect {
    name: "minimax-m2",
    aliases: &["minimax", "minimax-m2.1", "minimax-m2.5"],
    models: "MiniMax M2 and later 2.x",
    forms: &[Form {
        section: Some(Section { open: &["<minimax:tool_call>"], close: &["</minimax:tool_call>"], ..LINES }),
        call: &[
            Part::Tag(&StartTag { open: &["<invoke"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::INVOKE),
            Part::Space("\n"),
            Part::Mark(&["</invoke>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::MINIMAX,
    prompt: &prompts::MINIMAX,
};

pub(super) const DOTS: Dialect = Dialect {
    name: "dots",
    aliases: &["dots.llm", "dots-llm"],
    models: "dots.llm",
    forms: &[
        Form {
            section: Some(DOTS_CALLS),
            call: &[
                Part::Tag(&StartTag { open: &["<invoke"], end: ">", name: "name", rest: "" }),
                Part::Params(&params::INVOKE),
                Part::Space("\n"),
                Part::Mark(&["</invoke>"]),
            ],
            ..ANYWHERE
        },
        Form {
            section: Some(Section { optional: false, ..DOTS_CALLS }),
            call: &[Part::Calls(&keys::OBJECT)],
            ..ANYWHERE
        },
    ],
    framing: &around::THINK,
    prompt: &prompts::MINIMAX,
};

pub(super) const MUSE_ATEM: Dialect = Dialect {
    name: "muse-atem",
    aliases: &["muse", "muse-spark", "muse-glimmer"],
    models: "Muse Spark and Glimmer",
    forms: &[Form {
        section: Some(Section { open: &["<atem:function_calls>"], close: &["</atem:function_calls>"], ..LINES }),
        call: &[
            Part::Tag(&StartTag { open: &["<atem:invoke"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::ATEM),
            Part::Space("\n"),
            Part::Mark(&["</atem:invoke>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::MUSE,
    prompt: &prompts::MUSE,
};

pub(super) const STEP3: Dialect = Dialect {
    name: "step3",
    aliases: &["step-3"],
    models: "Step 3",
    forms: &[Form {
        section: Some(Section {
            open: &["<｜tool_calls_begin｜>"],
            close: &["<｜tool_calls_end｜>"],
            optional: true,
            inside: "",
            between: "",
        }),
        call: &[
            Part::Mark(&["<｜tool_call_begin｜>"]),
            Part::Space(""),
            Part::Mark(&["function"]),
            Part::Space(""),
            Part::Mark(&["<｜tool_sep｜>"]),
            Part::Space(""),
            Part::Tag(&StartTag { open: &["<steptml:invoke"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::STEP),
            Part::Space(""),
            Part::Mark(&["</steptml:invoke>"]),
            Part::Space(""),
            Part::Maybe { marks: &["<｜tool_call_end｜>"], write: true },
            Part::Maybe { marks: &["<｜tool_sep｜>"], write: false },
        ],
        ..ANYWHERE
    }],
    framing: &around::THINK,
    prompt: &prompts::DEEPSEEK,
};

pub(super) const MINICPM5: Dialect = Dialect {
    name: "minicpm5-xml",
    aliases: &["minicpm5", "minicpm"],
    models: "MiniCPM 5",
    forms: &[Form {
        call: &[
            Part::Tag(&StartTag { open: &["<function"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::MINICPM),
            Part::Space(""),
            Part::Mark(&["</function>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::THINK,
    prompt: &prompts::HERMES,
};

pub(super) const DEEPSEEK_V32: Dialect = Dialect {
    name: "deepseek-v32",
    aliases: &["deepseek-v3.2"],
    models: "DeepSeek V3.2",
    forms: &[Form {
        section: Some(Section {
            open: &["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"],
            close: &["</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"],
            ..LINES
        }),
        call: DSML,
        ..ANYWHERE
    }],
    framing: &around::DEEPSEEK_MAY_THINK,
    prompt: &prompts::DSML,
};

pub(super) const DEEPSEEK_V4: Dialect = Dialect {
    name: "deepseek-v4",
    aliases: &["deepseek-v4-pro", "deepseek-v4-flash"],
    models: "DeepSeek V4",
    forms: &[Form {
        section: Some(Section {
            open: &["<｜DSML｜tool_calls>", "<｜DSML｜function_calls>"],
            close: &["</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"],
            ..LINES
        }),
        call: DSML,
        ..ANYWHERE
    }],
    framing: &around::DEEPSEEK_MAY_THINK,
    prompt: &prompts::DSML,
};

pub(super) const DEEPSEEK_V41: Dialect = Dialect {
    name: "deepseek-v41",
    aliases: &["deepseek-v4.1"],
    models: "DeepSeek V4.1",
    forms: &[Form {
        section: Some(Section { open: &["<｜DSML｜ calls>"], close: &["</｜DSML｜ calls>"], ..LINES }),
        call: &[
            Part::Tag(&StartTag { open: &["<｜DSML｜ invoke"], end: ">", name: "name", rest: "" }),
            Part::Params(&params::DSML_SPACED),
            Part::Space("\n"),
            Part::Mark(&["</｜DSML｜ invoke>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::DEEPSEEK_MAY_THINK,
    prompt: &prompts::DSML,
};

pub(super) const KIMI_K3: Dialect = Dialect {
    name: "kimi-k3",
    aliases: &["xtml"],
    models: "Kimi K3",
    forms: &[Form {
        section: Some(Section {
            open: &["<|open|>tools<|sep|>"],
            close: &["<|close|>tools<|sep|>"],
            optional: true,
            inside: "",
            between: "",
        }),
        call: &[
            Part::Tag(&StartTag { open: &["<|open|>call"], end: "<|sep|>", name: "tool", rest: " index=\"{n}\"" }),
            Part::Space(""),
            // Its encoder writes arguments that are no parameters so.
            Part::Maybe { marks: &["<|open|>json type=\"object\"<|sep|>", "<|open|>json<|sep|>"], write: false },
            Part::Params(&params::XTML),
            Part::Space(""),
            Part::Maybe { marks: &["<|close|>json<|sep|>"], write: false },
            Part::Space(""),
            Part::Mark(&["<|close|>call<|sep|>"]),
        ],
        ..ANYWHERE
    }],
    framing: &around::KIMI_K3,
    prompt: &prompts::KIMI_K3,
};

/// DeepSeek's own markup, as GigaChat 3.5 writes it.
pub(super) const GCML: Form = Form {
    section: Some(Section {
        open: &["<｜GCML｜tool_calls>"],
        // What ends the message may come with it.
        close: &["</｜GCML｜tool_calls>", "</｜GCML｜tool_calls><|message_sep|>"],
        ..LINES
    }),
    call: &[
        Part::Tag(&StartTag { open: &["<｜GCML｜invoke"], end: ">", name: "name", rest: "" }),
        Part::Params(&params::GCML),
        Part::Space("\n"),
        Part::Mark(&["</｜GCML｜invoke>"]),
    ],
    ..ANYWHERE
};

const DOTS_CALLS: Section = Section { open: &["<dots_function_call>"], close: &["</dots_function_call>"], ..LINES };

const DSML: &[Part] = &[
    Part::Tag(&StartTag { open: &["<｜DSML｜invoke"], end: ">", name: "name", rest: "" }),
    Part::Params(&params::DSML),
    Part::Space("\n"),
    Part::Mark(&["</｜DSML｜invoke>"]),
];
