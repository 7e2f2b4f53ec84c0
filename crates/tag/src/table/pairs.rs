//! Calls whose parameters are pairs of elements: `<arg_key>a</arg_key><arg_value>1</arg_value>`.

use super::{ANYWHERE, LINES, around, keys, params, prompts};
use crate::dialect::{Dialect, Form, Header, Part, Section};

pub(super) const GLM45: Dialect = Dialect {
    name: "glm45",
    aliases: &["glm", "glm4.5", "glm4.6", "glm-4.5", "glm-4.6"],
    models: "GLM 4.5 and 4.6",
    forms: &[ARG_KEYS_IN_LINES],
    framing: &around::GLM,
    prompt: &prompts::HERMES,
};

pub(super) const GLM47: Dialect = Dialect {
    name: "glm47",
    aliases: &["glm4.7", "glm-4.7", "glm5", "glm-5", "iquest-q1"],
    models: "GLM 4.7 and 5, IQuest Q1",
    forms: &[ARG_KEYS],
    framing: &around::GLM_OPENED,
    prompt: &prompts::HERMES,
};

pub(super) const LING3: Dialect = Dialect {
    name: "ling3",
    aliases: &["ling", "ling-3", "ring"],
    models: "Ling 3",
    forms: &[ARG_KEYS_IN_LINES],
    framing: &around::LING,
    prompt: &prompts::HERMES,
};

pub(super) const SPARK25: Dialect = Dialect {
    name: "spark25",
    aliases: &["spark", "spark2.5"],
    models: "Spark 2.5",
    forms: &[ARG_KEYS],
    framing: &around::THINK_TO_CALL,
    prompt: &prompts::HERMES,
};

pub(super) const POOLSIDE: Dialect = Dialect {
    name: "poolside-v1",
    aliases: &["poolside", "laguna"],
    models: "Laguna",
    forms: &[ARG_KEYS_IN_LINES],
    framing: &around::THINK_TO_CALL,
    prompt: &prompts::HERMES,
};

pub(super) const HUNYUAN_V3: Dialect = Dialect {
    name: "hunyuan-v3",
    aliases: &["hy-v3", "hunyuan3"],
    models: "HY V3",
    forms: &[
        Form {
            section: Some(Section { open: &["<tool_calls>"], close: &["</tool_calls>"], ..LINES }),
            call: &[
                Part::Mark(&["<tool_call>"]),
                Part::Space(""),
                Part::Name { until: &["<tool_sep>", "<arg_key>", "</tool_call>", "\n", "\r\n"], header: Header::Name },
                Part::Maybe { marks: &["<tool_sep>"], write: true },
                Part::Params(&params::ARG_KEYS_IN_LINES),
                Part::Space("\n"),
                Part::Mark(&["</tool_call>"]),
            ],
            ..ANYWHERE
        },
        SUFFIXED,
    ],
    framing: &around::HUNYUAN,
    prompt: &prompts::HERMES,
};

pub(super) const HUNYUAN_V4: Dialect = Dialect {
    name: "hunyuan-v4",
    aliases: &["hy-v4", "hunyuan4"],
    models: "HY V4",
    forms: &[
        Form {
            section: Some(Section {
                open: &["<tool_calls>"],
                close: &["</tool_calls>"],
                optional: true,
                inside: "",
                between: "",
            }),
            ..ARG_KEYS
        },
        SUFFIXED,
    ],
    framing: &around::HUNYUAN,
    prompt: &prompts::HERMES,
};

pub(super) const K2_HORIZON: Dialect = Dialect {
    name: "k2-horizon",
    aliases: &["k2-ifm", "ifm"],
    models: "K2 Horizon",
    forms: &[
        Form {
            section: Some(HORIZON_CALLS),
            call: &[
                Part::Mark(&["<ifm|tool_call>"]),
                Part::Space(""),
                Part::Name { until: &["<ifm|arg_key>", "</ifm|tool_call>", "\n", "\r\n"], header: Header::Name },
                Part::Params(&params::IFM),
                Part::Space(""),
                Part::Mark(&["</ifm|tool_call>"]),
            ],
            ..ANYWHERE
        },
        Form {
            section: Some(HORIZON_CALLS),
            call: &[
                Part::Mark(&["<ifm|tool_call>"]),
                Part::Space(""),
                Part::Calls(&keys::OBJECT),
                Part::Space(""),
                Part::Maybe { marks: &["</ifm|tool_call>"], write: true },
            ],
            ..ANYWHERE
        },
    ],
    framing: &around::THINK_TO_CALL,
    prompt: &prompts::ARRAY,
};

const HORIZON_CALLS: Section =
    Section { open: &["<ifm|tool_calls>"], close: &["</ifm|tool_calls>"], optional: true, inside: "", between: "" };

/// Both of HY's, as the tokenizers of its published models spell every tag.
const SUFFIXED: Form = Form {
    section: Some(Section { open: &["<tool_calls:opensource>"], close: &["</tool_calls:opensource>"], ..LINES }),
    call: &[
        Part::Mark(&["<tool_call:opensource>"]),
        Part::Space(""),
        Part::Name {
            until: &["<tool_sep:opensource>", "<arg_key:opensource>", "</tool_call:opensource>", "\n", "\r\n"],
            header: Header::Name,
        },
        Part::Maybe { marks: &["<tool_sep:opensource>"], write: true },
        Part::Params(&params::ARG_KEYS_SUFFIXED),
        Part::Space("\n"),
        Part::Mark(&["</tool_call:opensource>"]),
    ],
    ..ANYWHERE
};

/// What the name in `<tool_call>NAME` ends with.
const ARG_KEY: &[&str] = &["<arg_key>", "</tool_call>", "</iquest_tool_call>", "\n", "\r\n"];

/// Keys and values in elements, without white space.
const ARG_KEYS: Form = Form {
    call: &[
        Part::Mark(&["<tool_call>", "<iquest_tool_call>"]),
        Part::Space(""),
        Part::Name { until: ARG_KEY, header: Header::Name },
        Part::Params(&params::ARG_KEYS),
        Part::Space(""),
        Part::Mark(&["</tool_call>", "</iquest_tool_call>"]),
    ],
    between: "",
    ..ANYWHERE
};

/// The same in lines.
const ARG_KEYS_IN_LINES: Form = Form {
    call: &[
        Part::Mark(&["<tool_call>"]),
        Part::Space(""),
        Part::Name { until: ARG_KEY, header: Header::Name },
        Part::Params(&params::ARG_KEYS_IN_LINES),
        Part::Space("\n"),
        Part::Mark(&["</tool_call>"]),
    ],
    ..ANYWHERE
};
