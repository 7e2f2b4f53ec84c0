//! Calls in fences, in lines of prose, and in tags round plain text.

use super::expressions::TOOL_CODE_FENCE;
use super::{ANYWHERE, around, header::LINE, keys, prompts};
use crate::dialect::{Dialect, Form, FreeText, Header, Needs, Part, Scope};

pub(super) const FENCED_JSON: Dialect = Dialect {
    name: "fenced-json",
    aliases: &["json-fence", "fenced", "markdown"],
    models: "any model that follows instructions",
    forms: &[JSON_FENCE, TOOL_CODE_FENCE],
    framing: &around::THINK,
    prompt: &prompts::FENCE,
};

pub(super) const LANGCHAIN_XML: Dialect = Dialect {
    name: "langchain-xml",
    aliases: &["langchain", "xml-agent"],
    models: "any model that LangChain's XML agent prompts",
    forms: &[Form {
        call: &[
            Part::Mark(&["<tool>"]),
            Part::Name { until: &["</tool>"], header: Header::Name },
            Part::Mark(&["</tool>"]),
            Part::Space(""),
            Part::Mark(&["<tool_input>"]),
            Part::Free(&FreeText { until: &["</tool_input>"], optional: true, escapes: LANGCHAIN_ESCAPES }),
            Part::Maybe { marks: &["</tool_input>"], write: true },
        ],
        ..ANYWHERE
    }],
    framing: &around::LANGCHAIN,
    prompt: &prompts::LANGCHAIN,
};

pub(super) const REACT: Dialect = Dialect {
    name: "react",
    aliases: &["langchain-react", "mrkl"],
    models: "any model that a ReAct agent prompts",
    forms: &[
        Form {
            call: &[
                Part::Mark(&["Action"]),
                Part::Count,
                Part::Mark(&[":"]),
                Part::Space(" "),
                Part::Name { until: LINE, header: Header::Name },
                Part::Space("\n"),
                Part::Mark(&["Action Input"]),
                Part::Count,
                Part::Mark(&[":"]),
                Part::Space(" "),
                Part::Free(&FreeText {
                    until: &["\nObservation", "\nAction", "\nThought", "\nFinal Answer", "\nQuestion:"],
                    optional: false,
                    escapes: &[],
                }),
            ],
            scope: Scope::Line,
            needs: Needs::Known,
            ..ANYWHERE
        },
        QWEN_AGENT_LINES,
    ],
    framing: &around::THINK,
    prompt: &prompts::OBSERVATION,
};

pub(super) const QWEN_AGENT: Dialect = Dialect {
    name: "qwen-agent",
    aliases: &["qwen-fncall"],
    models: "Qwen 1.5 and 2, and any model that Qwen-Agent prompts",
    forms: &[QWEN_AGENT_LINES],
    framing: &around::QWEN_AGENT,
    prompt: &prompts::QWEN_AGENT,
};

/// A fence round JSON.
pub(super) const JSON_FENCE: Form = Form {
    call: &[
        Part::Mark(&["```json", "```tool"]),
        Part::Maybe { marks: &["_call"], write: false },
        Part::Space("\n"),
        Part::Calls(&keys::OBJECT),
        Part::Space("\n"),
        Part::Maybe { marks: &["```"], write: true },
    ],
    ..FENCE
};

/// The tags that LangChain's agent spells with other brackets in what it gives back to the model, so that the model does too.
const LANGCHAIN_ESCAPES: &[(&str, &str)] = &[
    ("[[tool]]", "<tool>"),
    ("[[/tool]]", "</tool>"),
    ("[[tool_input]]", "<tool_input>"),
    ("[[/tool_input]]", "</tool_input>"),
    ("[[observation]]", "<observation>"),
    ("[[/observation]]", "</observation>"),
];

/// What fences have in common.
const FENCE: Form = Form { scope: Scope::Line, needs: Needs::Known, ..ANYWHERE };

const QWEN_AGENT_LINES: Form = Form {
    call: &[
        Part::Mark(&["✿FUNCTION✿"]),
        Part::Space(""),
        Part::Mark(&[":"]),
        Part::Space(" "),
        Part::Name { until: LINE, header: Header::Name },
        Part::Space("\n"),
        Part::Mark(&["✿ARGS✿"]),
        Part::Space(""),
        Part::Mark(&[":"]),
        Part::Space(" "),
        Part::Free(&FreeText {
            until: &["\n✿RESULT✿", "\n✿FUNCTION✿", "\n✿RETURN✿"], optional: false, escapes: &[]
        }),
        Part::Space(""),
        Part::Maybe { marks: &["✿RESULT✿"], write: false },
        Part::Maybe { marks: &[":"], write: false },
    ],
    scope: Scope::Line,
    ..ANYWHERE
};
