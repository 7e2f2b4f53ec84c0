//! The table of dialects, which the build script makes of the files in `dialects/`: in the order of
//! the names; but of two that look alike the more usual one comes first, since it is taken where
//! the text leaves open which is meant.

use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use crate::dialect::params::{ParamForm, Style, Trim, Typing};
use crate::dialect::prompt::{Prompt, ToolListStyle};
use crate::dialect::{
    CallKeys, CallPart, CallShape, Dialect, Form, FreeText, KnownTool, NameForm, PromptReasoning,
    ReasoningEnd, Scope, Section, StartTag, TextFraming,
};

static ALL: &[Dialect] = include!(concat!(env!("OUT_DIR"), "/dialects.rs"));

/// The dialect of prompts that name none.
pub const DEFAULT: &str = "tool-name-tag";

impl Dialect {
    /// The dialect of the table that has this name or alias.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        Dialect::all().iter().find(|d| d.is_named(name))
    }

    /// The whole table, mostly in the order of the names: of two that look alike the more usual one
    /// comes first.
    pub fn all() -> &'static [Dialect] {
        ALL
    }
}

/// The dialects that a name can mean: those of users' files, and those of the table.
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    own: Vec<&'static Dialect>,
}

impl Dialects {
    /// Adds dialects of a file. They stay in memory until the process ends, as the table does.
    pub(crate) fn extend(&mut self, read: Vec<Dialect>) {
        self.own.extend(&*read.leak());
    }

    /// Those of users' files.
    pub fn own(&self) -> &[&'static Dialect] {
        &self.own
    }

    /// All of them. The user's own come first: of two that look alike the first is taken.
    pub fn all(&self) -> impl Iterator<Item = &'static Dialect> {
        self.own.iter().copied().chain(ALL)
    }

    /// The dialect of the family that a model belongs to by its name, such as
    /// `Qwen/Qwen3-Coder-30B-A3B-Instruct`: the one whose longest name or alias the model's name
    /// begins with, signs aside.
    pub fn of_model(&self, model: &str) -> Option<&'static Dialect> {
        let letters = |name: &str| -> String {
            name.chars()
                .filter(|c| c.is_alphanumeric())
                .flat_map(char::to_lowercase)
                .collect()
        };
        let model = letters(model.rsplit('/').next().unwrap_or(model));
        let length = |dialect: &Dialect| {
            let names = dialect
                .aliases
                .iter()
                .copied()
                .chain([dialect.name])
                .map(letters);
            names
                .filter(|name| name.len() > 2 && model.starts_with(name))
                .map(|name| name.len())
                .max()
        };
        let fitting = self
            .all()
            .enumerate()
            .filter_map(|(n, d)| Some((length(d)?, std::cmp::Reverse(n), d)));
        fitting
            .max_by_key(|(length, n, _)| (*length, *n))
            .map(|(.., d)| d)
    }

    /// The dialect of this name or alias.
    pub fn named(&self, name: &str) -> Option<&'static Dialect> {
        self.all().find(|d| d.is_named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation;

    const REQUIRED: &str = "anthropic-xml apertus apriel cohere-command cohere-r-plus deepseek-r1 deepseek-v3 deepseek-v31 \
        deepseek-v32 deepseek-v4 deepseek-v41 fenced-json firefunction-v2 functionary-v3.1 functionary-v3.2 gemma4 gigachat3 \
        glm45 glm47 granite3 granite4 harmony hermes kimi-k2 kimi-k3 langchain-xml lfm2 ling3 llama3-json llama4-pythonic \
        lmstudio minicpm5-xml minimax-m2 minimax-m3 mistral-v11-args mistral-v13-compact mistral-v3-json-array muse-atem \
        nemotron-toolcall pythonic qwen3-coder-xml react seed-oss spark25 step3p5-xml tool-name-tag \
        functiongemma granite-20b-fc hunyuan-a13b hunyuan-v3 hunyuan-v4 inkling internlm2 jamba k2-horizon longcat mimo-xml \
        olmo3-pythonic phi4-mini plamo3 poolside-v1 sarashina step3 xlam ernie45 tool-code qwen-agent anthropic-2024 dots \
        beam longcat2 minimax-m1 solar-open";

    #[test]
    fn the_rows_are_in_the_order_of_their_names() {
        // MiMo writes what Qwen 3 Coder writes, but means the white space in it.
        let names: Vec<_> = ALL
            .iter()
            .filter(|d| d.read_as.is_none())
            .map(|d| d.name)
            .collect();
        assert!(names.is_sorted(), "{names:?}");
        for dialect in ALL {
            let usual = dialect
                .read_as
                .map(|name| Dialect::named(name).expect("a dialect of the table"));
            let at = |name: &str| ALL.iter().position(|d| d.name == name);
            assert!(
                usual.is_none_or(|usual| at(usual.name) < at(dialect.name)),
                "{}",
                dialect.name
            );
        }
    }

    #[test]
    fn a_models_name_tells_its_family() {
        let of = |model: &str| {
            Dialects::default()
                .of_model(model)
                .map_or("none", |d| d.name)
        };
        for (model, dialect) in [
            ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-coder-xml"),
            ("qwen2.5:7b", "hermes"),
            ("meta-llama/Llama-3.3-70B-Instruct", "llama3-json"),
            ("llama4-scout", "llama4-pythonic"),
            ("openai/gpt-oss-20b", "harmony"),
            ("zai-org/GLM-4.7", "glm47"),
            ("DeepSeek-V3.1-Terminus", "deepseek-v31"),
            ("gpt-4o", "none"),
            ("m", "none"),
            ("", "none"),
        ] {
            assert_eq!(of(model), dialect, "{model}");
        }
    }

    #[test]
    fn every_required_dialect_is_there() {
        let missing: Vec<_> = REQUIRED
            .split_whitespace()
            .filter(|n| !ALL.iter().any(|d| d.name == *n))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(Dialect::named(DEFAULT).is_some());
    }

    #[test]
    fn every_dialect_has_models_and_a_source() {
        for dialect in ALL {
            let reasons = ["none", "no template", "toolpipe's own"];
            let is_given = dialect.source.starts_with("https://")
                || reasons.iter().any(|r| dialect.source.starts_with(r));
            assert!(
                is_given && !dialect.models.is_empty(),
                "{}: {}",
                dialect.name,
                dialect.source
            );
        }
    }

    /// The build script writes the table as Rust: nothing of the files may be lost in it.
    #[test]
    fn the_files_read_back_as_the_table() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dialects");
        let files: Vec<(String, String)> = std::fs::read_dir(folder)
            .expect("the folder")
            .map(|entry| entry.expect("a file").path())
            .map(|path| {
                (
                    path.display().to_string(),
                    std::fs::read_to_string(&path).expect("a file"),
                )
            })
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(file, text)| (&file[..], &text[..]))
            .collect();
        let read = notation::read(&files, &[]).expect("files without mistakes");
        assert_eq!(read.len(), ALL.len());
        for dialect in &read {
            assert_eq!(Some(dialect), Dialect::named(dialect.name));
        }
    }
}
