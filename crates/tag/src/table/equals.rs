//! Calls whose tool and parameters are named after an equals sign: `<function=f><parameter=a>1</parameter></function>`.

use super::{ANYWHERE, around, params, prompts};
use crate::dialect::{Dialect, Form, Header, Part};

/// `<function=NAME>` with its parameters, inside an outer tag, which models forget.
macro_rules! function_equals {
    ($open:literal, $close:literal, $params:expr) => {
        [
            Form {
                call: &[
                    Part::Mark(&[$open]),
                    Part::Space("\n"),
                    Part::Mark(&["<function=", "<function ="]),
                    Part::Name { until: &[">"], header: Header::Name },
                    Part::Mark(&[">"]),
                    Part::Params($params),
                    Part::Space("\n"),
                    // Some close the outer tag only.
                    Part::Mark(&["</function>", $close]),
                    Part::Space("\n"),
                    Part::Maybe { marks: &[$close], write: true },
                ],
                ..ANYWHERE
            },
            Form {
                call: &[
                    Part::Mark(&["<function=", "<function ="]),
                    Part::Name { until: &[">"], header: Header::Name },
                    Part::Mark(&[">"]),
                    Part::Params($params),
                    Part::Space("\n"),
                    // Some close the outer tag only.
                    Part::Mark(&["</function>", $close]),
                    Part::Space("\n"),
                    Part::Maybe { marks: &[$close], write: false },
                ],
                ..ANYWHERE
            },
        ]
    };
}

pub(super) const QWEN3_CODER: Dialect = Dialect {
    name: "qwen3-coder-xml",
    aliases: &["qwen3-coder", "qwen-xml", "qwen3.5", "qwen3.6", "nemotron3", "nemotron-3-nano", "k-exaone", "nanbeige"],
    models: "Qwen 3 Coder, Qwen 3.5 and later, Nemotron 3 Nano, K-EXAONE 2, MiniCPM-V, Nanbeige",
    forms: &QWEN,
    framing: &around::THINK_TO_CALL,
    prompt: &prompts::HERMES,
};

pub(super) const STEP3P5: Dialect = Dialect {
    name: "step3p5-xml",
    aliases: &["step3p5", "step-3.5", "step3.7", "step5"],
    models: "Step 3.5, 3.7 and 5",
    forms: &QWEN,
    framing: &around::OPENED,
    prompt: &prompts::HERMES,
};

pub(super) const MIMO: Dialect = Dialect {
    name: "mimo-xml",
    aliases: &["mimo", "mimo-v2"],
    models: "MiMo",
    forms: &function_equals!("<tool_call>", "</tool_call>", &params::MIMO),
    framing: &around::THINK_TO_CALL,
    prompt: &prompts::HERMES,
};

pub(super) const SEED_OSS: Dialect = Dialect {
    name: "seed-oss",
    aliases: &["seed", "seed_oss"],
    models: "Seed-OSS",
    forms: &function_equals!("<seed:tool_call>", "</seed:tool_call>", &params::SEED),
    framing: &around::SEED,
    prompt: &prompts::HERMES,
};

const QWEN: [Form; 2] = function_equals!("<tool_call>", "</tool_call>", &params::QWEN);
