//! Calls that are JSON with the name inside, between markers.

use super::{ANYWHERE, MESSAGE, around, keys, prompts};
use crate::dialect::{Dialect, Form, FreeText, Header, Needs, Part, Scope};

pub(super) const HERMES: Dialect = Dialect {
    name: "hermes",
    aliases: &["qwen", "qwen2.5", "qwen3", "qwq", "nous", "reka", "trinity"],
    models: "Hermes 2 and 3, Qwen 2.5, Qwen 3, QwQ, Reka Edge, Trinity, and many others",
    forms: &[TOOL_CALL],
    framing: &around::THINK,
    prompt: &prompts::HERMES,
};

pub(super) const GRANITE4: Dialect = Dialect {
    name: "granite4",
    aliases: &["granite", "granite4.1"],
    models: "Granite 4.0 and 4.1",
    forms: &[TOOL_CALL],
    framing: &around::GRANITE,
    prompt: &prompts::HERMES,
};

pub(super) const ERNIE45: Dialect = Dialect {
    name: "ernie45",
    aliases: &["ernie", "ernie4.5"],
    models: "ERNIE 4.5 and X1",
    forms: &[TOOL_CALL],
    framing: &around::ERNIE,
    prompt: &prompts::HERMES,
};

pub(super) const LMSTUDIO: Dialect = Dialect {
    name: "lmstudio",
    aliases: &["lm-studio"],
    models: "models without a format of their own in LM Studio",
    forms: &[Form {
        call: &[
            Part::Mark(&["[TOOL_REQUEST]"]),
            Part::Space(""),
            Part::Calls(&keys::OBJECT),
            Part::Space(""),
            Part::Maybe { marks: &["[END_TOOL_REQUEST]"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::THINK,
    prompt: &prompts::LMSTUDIO,
};

pub(super) const LONGCAT: Dialect = Dialect {
    name: "longcat",
    aliases: &["longcat-flash"],
    models: "LongCat Flash",
    forms: &[Form {
        call: &[
            Part::Mark(&["<longcat_tool_call>"]),
            Part::Space(""),
            Part::Calls(&keys::OBJECT),
            Part::Space(""),
            Part::Maybe { marks: &["</longcat_tool_call>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::LONGCAT,
    prompt: &prompts::HERMES,
};

pub(super) const GRANITE_20B_FC: Dialect = Dialect {
    name: "granite-20b-fc",
    aliases: &["granite-20b-functioncalling"],
    models: "Granite 20B function calling",
    forms: &[Form {
        call: &[Part::Mark(&["<function_call>"]), Part::Space(" "), Part::Calls(&keys::OBJECT)],
        ..ANYWHERE
    }],
    framing: &around::GRANITE,
    prompt: &prompts::GRANITE,
};

pub(super) const INTERNLM2: Dialect = Dialect {
    name: "internlm2",
    aliases: &["internlm", "internlm2.5", "intern-s1"],
    models: "InternLM 2 and 2.5, Intern S1",
    forms: &[Form {
        call: &[
            Part::Mark(&["<|action_start|>"]),
            Part::Space(" "),
            Part::Mark(&["<|plugin|>"]),
            Part::Space("\n"),
            Part::Calls(&keys::PARAMETERS),
            Part::Space(""),
            Part::Maybe { marks: &["<|action_end|>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::INTERN,
    prompt: &prompts::HERMES,
};

pub(super) const LLAMA3_JSON: Dialect = Dialect {
    name: "llama3-json",
    aliases: &["llama3", "llama3.1", "llama3.2", "llama3.3", "llama", "llama4-json"],
    models: "Llama 3.1, 3.2 and 3.3, Llama 4 with JSON calls",
    forms: &[
        Form { call: &[Part::Calls(&keys::PARAMETERS)], between: "; ", ..MESSAGE },
        Form {
            call: &[Part::Mark(&["<|python_tag|>"]), Part::Space(""), Part::Calls(&keys::PARAMETERS)],
            between: "; ",
            ..ANYWHERE
        },
        super::header::FUNCTION_EQUALS,
        super::expressions::BUILT_IN,
    ],
    framing: &around::LLAMA_THINK,
    prompt: &prompts::LLAMA,
};

pub(super) const INKLING: Dialect = Dialect {
    name: "inkling",
    aliases: &["tml-inkling"],
    models: "Inkling",
    forms: &[
        Form {
            call: &[
                Part::Mark(&["<|message_model|><|content_invoke_tool_json|>", "<|content_invoke_tool_json|>"]),
                Part::Space(""),
                Part::Calls(&keys::ARGS),
                Part::Space(""),
                Part::Maybe { marks: &["<|end_message|>"], write: true },
            ],
            between: "",
            ..ANYWHERE
        },
        // The header may name an author, mostly the tool.
        Form {
            call: &[
                Part::Mark(&["<|message_model|>"]),
                Part::Author { until: &["<|content_invoke_tool_json|>"] },
                Part::Mark(&["<|content_invoke_tool_json|>"]),
                Part::Space(""),
                Part::Calls(&keys::ARGS),
                Part::Space(""),
                Part::Maybe { marks: &["<|end_message|>"], write: true },
            ],
            between: "",
            ..ANYWHERE
        },
        // What is no JSON has its name there.
        Form {
            call: &[
                Part::Mark(&["<|message_model|>"]),
                Part::Name { until: &["<|content_invoke_tool_text|>"], header: Header::Name },
                Part::Mark(&["<|content_invoke_tool_text|>"]),
                Part::Free(&FreeText { until: &["<|end_message|>"], optional: false, escapes: &[] }),
                Part::Maybe { marks: &["<|end_message|>"], write: true },
            ],
            between: "",
            ..ANYWHERE
        },
        // The same as the second, where the header's marker stood in the prompt.
        Form {
            call: &[
                Part::Author { until: &["<|content_invoke_tool_json|>"] },
                Part::Mark(&["<|content_invoke_tool_json|>"]),
                Part::Space(""),
                Part::Calls(&keys::ARGS),
                Part::Space(""),
                Part::Maybe { marks: &["<|end_message|>"], write: true },
            ],
            between: "",
            ..MESSAGE
        },
    ],
    framing: &around::INKLING,
    prompt: &prompts::ARRAY,
};

pub(super) const MISTRAL_V3: Dialect = Dialect {
    name: "mistral-v3-json-array",
    aliases: &["mistral-v3", "mistral", "mistral-nemo"],
    models: "Mistral 7B 0.3, Mixtral 8x22B, Mistral Nemo, Large 2407, Small 2409",
    forms: &[Form {
        call: &[
            Part::Mark(&["[TOOL_CALLS]"]),
            Part::Space(" "),
            Part::Calls(&keys::ARRAY),
            Part::Maybe { marks: &["[/TOOL_CALLS]"], write: false },
        ],
        ..ANYWHERE
    }],
    framing: &around::MISTRAL,
    prompt: &prompts::MISTRAL,
};

pub(super) const GRANITE3: Dialect = Dialect {
    name: "granite3",
    aliases: &["granite3.0", "granite3.1"],
    models: "Granite 3.0 and 3.1",
    forms: &[Form {
        call: &[
            Part::Mark(&["<|tool_call|>", "<tool_call>"]),
            Part::Space(""),
            Part::Calls(&keys::ARRAY),
            Part::Maybe { marks: &["</tool_call>"], write: false },
        ],
        ..ANYWHERE
    }],
    framing: &around::GRANITE,
    prompt: &prompts::GRANITE,
};

pub(super) const JAMBA: Dialect = Dialect {
    name: "jamba",
    aliases: &["jamba1.5"],
    models: "Jamba 1.5 and later",
    forms: &[TOOL_CALLS],
    framing: &around::JAMBA,
    prompt: &prompts::AVAILABLE,
};

pub(super) const HUNYUAN_A13B: Dialect = Dialect {
    name: "hunyuan-a13b",
    aliases: &["hunyuan"],
    models: "Hunyuan A13B",
    forms: &[TOOL_CALLS],
    framing: &around::HUNYUAN,
    prompt: &prompts::AVAILABLE,
};

pub(super) const APRIEL: Dialect = Dialect {
    name: "apriel",
    aliases: &["apriel1.5", "apriel1.6"],
    models: "Apriel 1.5 and 1.6",
    forms: &[TOOL_CALLS],
    framing: &around::APRIEL,
    prompt: &prompts::AVAILABLE,
};

pub(super) const NEMOTRON: Dialect = Dialect {
    name: "nemotron-toolcall",
    aliases: &["nemotron", "nemotron-nano-v2", "llama-nemotron", "deci"],
    models: "Nemotron Nano 2, Llama Nemotron Super and Nano",
    forms: &[Form {
        call: &[
            Part::Mark(&["<TOOLCALL>"]),
            Part::Space(""),
            Part::Calls(&keys::ARRAY),
            Part::Space(""),
            Part::Maybe { marks: &["</TOOLCALL>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::LLAMA_THINK,
    prompt: &prompts::NEMOTRON,
};

pub(super) const PHI4_MINI: Dialect = Dialect {
    name: "phi4-mini",
    aliases: &["phi4", "phi-4-mini"],
    models: "Phi 4 mini",
    forms: &[
        FUNCTOOLS,
        Form {
            call: &[
                Part::Mark(&["<|tool_call|>"]),
                Part::Space(""),
                Part::Calls(&keys::ARRAY),
                Part::Space(""),
                Part::Maybe { marks: &["<|/tool_call|>"], write: true },
            ],
            ..ANYWHERE
        },
    ],
    framing: &around::PHI,
    prompt: &prompts::ARRAY,
};

pub(super) const FIREFUNCTION: Dialect = Dialect {
    name: "firefunction-v2",
    aliases: &["firefunction"],
    models: "FireFunction 2",
    forms: &[FUNCTOOLS],
    framing: &around::LLAMA,
    prompt: &prompts::ARRAY,
};

pub(super) const XLAM: Dialect = Dialect {
    name: "xlam",
    aliases: &["xlam2"],
    models: "xLAM 1 and 2",
    forms: &[
        Form { call: &[Part::Calls(&keys::ARRAY)], ..MESSAGE },
        Form { call: &[Part::Mark(&["[TOOL_CALLS]"]), Part::Space(""), Part::Calls(&keys::ARRAY)], ..ANYWHERE },
        Form {
            call: &[
                Part::Mark(&["<tool_call>"]),
                Part::Space(""),
                Part::Calls(&keys::ARRAY),
                Part::Space(""),
                Part::Maybe { marks: &["</tool_call>"], write: true },
            ],
            ..ANYWHERE
        },
        super::text::JSON_FENCE,
    ],
    framing: &around::LLAMA_THINK,
    prompt: &prompts::ARRAY,
};

pub(super) const SARASHINA: Dialect = Dialect {
    name: "sarashina",
    aliases: &["sarashina2.2"],
    models: "Sarashina 2.2",
    forms: &[Form { call: &[Part::Calls(&keys::PYTHON)], ..MESSAGE }],
    framing: &around::MISTRAL,
    prompt: &prompts::ARRAY,
};

pub(super) const COHERE_COMMAND: Dialect = Dialect {
    name: "cohere-command",
    aliases: &["cohere", "command-a", "command-r7b", "cohere2"],
    models: "Command R7B, Command A, Cohere 2 MoE",
    forms: &[Form {
        call: &[
            Part::Mark(&["<|START_ACTION|>"]),
            Part::Space("\n"),
            Part::Calls(&keys::COHERE),
            Part::Space("\n"),
            Part::Maybe { marks: &["<|END_ACTION|>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::COHERE,
    prompt: &prompts::COHERE,
};

pub(super) const COHERE_R_PLUS: Dialect = Dialect {
    name: "cohere-r-plus",
    aliases: &["command-r-plus", "command-r"],
    models: "Command R and R+",
    forms: &[Form {
        call: &[
            Part::Mark(&["Action"]),
            Part::Mark(&[":"]),
            Part::Space("\n"),
            Part::Mark(&["```json"]),
            Part::Space("\n"),
            Part::Calls(&keys::COHERE_R),
            Part::Space("\n"),
            Part::Maybe { marks: &["```"], write: true },
        ],
        scope: Scope::Line,
        needs: Needs::Known,
        ..ANYWHERE
    }],
    framing: &around::COHERE_R,
    prompt: &prompts::COHERE_R,
};

pub(super) const APERTUS: Dialect = Dialect {
    name: "apertus",
    aliases: &["swiss-ai"],
    models: "Apertus 8B and 70B",
    forms: &[Form {
        call: &[
            Part::Mark(&["<|tools_prefix|>"]),
            Part::Space(""),
            Part::Calls(&keys::SINGLE),
            Part::Space(""),
            Part::Maybe { marks: &["<|tools_suffix|>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::APERTUS,
    prompt: &prompts::ARRAY,
};

/// `<tool_call>` round one object.
pub(super) const TOOL_CALL: Form = Form {
    call: &[
        Part::Mark(&["<tool_call>"]),
        Part::Space("\n"),
        Part::Calls(&keys::OBJECT),
        Part::Space("\n"),
        Part::Maybe { marks: &["</tool_call>"], write: true },
    ],
    ..ANYWHERE
};

/// `<tool_calls>` round an array.
const TOOL_CALLS: Form = Form {
    call: &[
        Part::Mark(&["<tool_calls>"]),
        Part::Space(""),
        Part::Calls(&keys::ARRAY),
        Part::Space(""),
        Part::Maybe { marks: &["</tool_calls>"], write: true },
    ],
    ..ANYWHERE
};

/// An array after a word.
const FUNCTOOLS: Form =
    Form { call: &[Part::Mark(&["functools"]), Part::Space(""), Part::Calls(&keys::ARRAY)], ..ANYWHERE };
