//! The table of dialects: a row each, in the order of their names; but of two that look alike the more usual one comes first,
//! since it is taken where the text leaves open which is meant.

mod around;
mod attribute;
mod element;
mod equals;
mod expressions;
mod header;
mod json;
mod keys;
mod pairs;
mod params;
mod prompts;
mod text;

use crate::dialect::{Dialect, Form, Needs, Scope, Section};

pub(crate) static ALL: &[Dialect] = &[
    element::ANTHROPIC_2024,
    attribute::ANTHROPIC,
    json::APERTUS,
    json::APRIEL,
    json::COHERE_COMMAND,
    json::COHERE_R_PLUS,
    header::DEEPSEEK_R1,
    header::DEEPSEEK_V3,
    header::DEEPSEEK_V31,
    attribute::DEEPSEEK_V32,
    attribute::DEEPSEEK_V4,
    attribute::DEEPSEEK_V41,
    attribute::DOTS,
    json::ERNIE45,
    text::FENCED_JSON,
    json::FIREFUNCTION,
    header::FUNCTIONARY_V31,
    header::FUNCTIONARY_V32,
    expressions::FUNCTION_GEMMA,
    expressions::GEMMA4,
    header::GIGACHAT3,
    pairs::GLM45,
    pairs::GLM47,
    json::GRANITE_20B_FC,
    json::GRANITE3,
    json::GRANITE4,
    header::HARMONY,
    json::HERMES,
    json::HUNYUAN_A13B,
    pairs::HUNYUAN_V3,
    pairs::HUNYUAN_V4,
    json::INKLING,
    json::INTERNLM2,
    json::JAMBA,
    pairs::K2_HORIZON,
    header::KIMI_K2,
    attribute::KIMI_K3,
    text::LANGCHAIN_XML,
    expressions::LFM2,
    pairs::LING3,
    json::LLAMA3_JSON,
    expressions::LLAMA4,
    json::LMSTUDIO,
    json::LONGCAT,
    attribute::MINICPM5,
    attribute::MINIMAX_M2,
    element::MINIMAX_M3,
    header::MISTRAL_V11,
    header::MISTRAL_V13,
    json::MISTRAL_V3,
    attribute::MUSE_ATEM,
    json::NEMOTRON,
    expressions::OLMO3,
    json::PHI4_MINI,
    header::PLAMO3,
    pairs::POOLSIDE,
    expressions::PYTHONIC,
    text::QWEN_AGENT,
    equals::QWEN3_CODER,
    equals::MIMO,
    text::REACT,
    json::SARASHINA,
    equals::SEED_OSS,
    pairs::SPARK25,
    attribute::STEP3,
    equals::STEP3P5,
    expressions::TOOL_CODE,
    header::TOOL_NAME_TAG,
    json::XLAM,
];

/// Dialects whose text is read as another's where none is named, since nothing in it tells them apart.
pub(crate) static READ_AS: &[(&str, &str)] = &[("mimo-xml", "qwen3-coder-xml")];

/// What most forms have in common; the call is always their own.
const ANYWHERE: Form = Form { section: None, call: &[], between: "\n", scope: Scope::Anywhere, needs: Needs::Listed };

/// What bare forms have in common: nothing marks them, so they begin the message and name a known tool.
const MESSAGE: Form = Form { scope: Scope::Message, needs: Needs::Known, ..ANYWHERE };

/// A section whose calls stand in lines; its markers are always its own.
const LINES: Section = Section { open: &[], close: &[], optional: true, inside: "\n", between: "\n" };

/// The dialect of prompts that name none.
pub const DEFAULT: &str = "tool-name-tag";

impl Dialect {
    /// The dialect of this name or alias.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        Dialect::all().iter().find(|d| d.name == name || d.aliases.contains(&name))
    }

    /// The whole table, mostly in the order of the names: of two that look alike the more usual one comes first.
    pub fn all() -> &'static [Dialect] {
        ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Part;
    use std::collections::HashSet;

    const REQUIRED: &str = "anthropic-xml apertus apriel cohere-command cohere-r-plus deepseek-r1 deepseek-v3 deepseek-v31 \
        deepseek-v32 deepseek-v4 deepseek-v41 fenced-json firefunction-v2 functionary-v3.1 functionary-v3.2 gemma4 gigachat3 \
        glm45 glm47 granite3 granite4 harmony hermes kimi-k2 kimi-k3 langchain-xml lfm2 ling3 llama3-json llama4-pythonic \
        lmstudio minicpm5-xml minimax-m2 minimax-m3 mistral-v11-args mistral-v13-compact mistral-v3-json-array muse-atem \
        nemotron-toolcall pythonic qwen3-coder-xml react seed-oss spark25 step3p5-xml tool-name-tag \
        functiongemma granite-20b-fc hunyuan-a13b hunyuan-v3 hunyuan-v4 inkling internlm2 jamba k2-horizon longcat mimo-xml \
        olmo3-pythonic phi4-mini plamo3 poolside-v1 sarashina step3 xlam ernie45 tool-code qwen-agent anthropic-2024 dots";

    #[test]
    fn every_name_stands_once() {
        let mut seen = HashSet::new();
        for dialect in ALL {
            for name in std::iter::once(&dialect.name).chain(dialect.aliases) {
                assert!(seen.insert(*name), "{name} stands twice");
                assert!(Dialect::named(name).is_some_and(|d| d.name == dialect.name));
            }
        }
    }

    #[test]
    fn the_rows_are_in_the_order_of_their_names() {
        // MiMo writes what Qwen 3 Coder writes, but means the white space in it.
        let names: Vec<_> = ALL.iter().map(|d| d.name).filter(|name| *name != "mimo-xml").collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn every_required_dialect_is_there() {
        let missing: Vec<_> = REQUIRED.split_whitespace().filter(|n| !ALL.iter().any(|d| d.name == *n)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(Dialect::named(DEFAULT).is_some());
    }

    #[test]
    fn forms_that_stand_anywhere_begin_with_a_marker() {
        for dialect in ALL {
            for form in dialect.forms {
                let marked = matches!(form.call.first(), Some(Part::Mark(_) | Part::Tag(_)));
                let section = form.section.as_ref();
                assert!(
                    marked || form.scope == Scope::Message || section.is_some_and(|s| !s.optional),
                    "{}: {:?}",
                    dialect.name,
                    form.call
                );
                assert!(
                    section.is_none_or(|s| !s.optional || marked),
                    "{}: an optional section needs markers",
                    dialect.name
                );
            }
        }
    }

    /// Where a text is cut after the shorter of two spellings, the longer one would not be seen.
    #[test]
    fn no_spelling_is_the_beginning_of_another() {
        for dialect in ALL {
            for part in dialect.forms.iter().flat_map(|form| form.call) {
                let (Part::Mark(marks) | Part::Maybe { marks, .. }) = part else { continue };
                let twice = |a: &&str| marks.iter().filter(|b| b.starts_with(*a)).count() > 1;
                assert!(!marks.iter().any(twice), "{}: {marks:?}", dialect.name);
            }
        }
    }

    #[test]
    fn only_messages_do_without_forms() {
        for dialect in ALL {
            assert!(dialect.framing.messages || !dialect.forms.is_empty(), "{}", dialect.name);
        }
    }
}
