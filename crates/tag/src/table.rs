//! The table of dialects, which the build script generates from the files in `dialects/`, and the
//! dialects of users' files. The table is sorted by name, except that the more common of two
//! similar dialects comes first, because the first dialect wins if the text fits both.

use crate::dialect::{CallPart, Dialect, Form, KnownTool, TagStyle, letters};

/// The table's rows, in the names that `Debug` writes.
mod rows {
    use crate::dialect::*;
    use {ArgumentStyle::*, CallPart::*, CallShape::*, KnownTool::*, NameForm::*, ParamPiece::*};
    use {PromptReasoning::*, ReasoningEnd::*, Scope::*, TagStyle::*, ToolListStyle::*, Typing::*};

    pub(super) static ALL: &[Dialect] = include!(concat!(env!("OUT_DIR"), "/dialects.rs"));
}
use rows::ALL;

/// The [`letters`] of all names and aliases in the table, sorted, with the indexes of their dialects.
/// Computed by the build script, so that a request converts no name but the model's.
static FAMILIES: &[(&str, usize)] = include!(concat!(env!("OUT_DIR"), "/families.rs"));

/// The dialect for prompts that do not name a dialect.
pub const DEFAULT: &str = "tool-name-tag";

impl Dialect {
    /// Returns the dialect of the table with this name or alias.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        Dialect::all().iter().find(|d| d.is_named(name))
    }

    /// Returns the whole table, sorted by name except that the more common of two similar dialects
    /// comes first.
    pub fn all() -> &'static [Dialect] {
        ALL
    }
}

/// The error for a name that no dialect has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect {
    /// The name that was given.
    pub name: String,
    /// A similar name, for a suggestion.
    near: Option<&'static str>,
}

impl std::fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.is_empty() {
            return f.write_str("no name, give one of tag-parse --list-dialects, or auto");
        }
        write!(f, "unknown dialect '{}', ", self.name)?;
        match self.near {
            Some(near) => write!(f, "did you mean '{near}'? See tag-parse --list-dialects"),
            None => f.write_str("see tag-parse --list-dialects"),
        }
    }
}

impl std::error::Error for UnknownDialect {}

/// The dialects that a name can refer to: those of users' files and those of the table.
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    own: Vec<&'static Dialect>,
}

impl Dialects {
    /// Adds the dialects of a file. Like the table, they stay in memory until the process ends.
    pub(crate) fn extend(&mut self, read: Vec<Dialect>) {
        self.own.extend(&*read.leak());
    }

    /// Adds the dialects from `other`'s files, except those whose names are already present.
    pub fn merge(&mut self, other: &Dialects) {
        for dialect in &other.own {
            if !self.own.iter().any(|own| own.name == dialect.name) {
                self.own.push(dialect);
            }
        }
    }

    /// Returns the dialects of users' files.
    pub fn own(&self) -> &[&'static Dialect] {
        &self.own
    }

    /// Returns all dialects. The user's own come first, because the first of two similar dialects
    /// wins.
    pub fn all(&self) -> impl Iterator<Item = &'static Dialect> {
        self.own.iter().copied().chain(ALL)
    }

    /// Returns the dialect of the family that a model's name suggests, such as
    /// `Qwen/Qwen3-Coder-30B-A3B-Instruct`: the dialect with the longest name or alias that begins
    /// the model's name, ignoring punctuation.
    pub fn of_model(&self, model: &str) -> Option<&'static Dialect> {
        let model = letters(model.rsplit('/').next().unwrap_or(model));
        let longest = |dialect: &&'static Dialect| {
            let names = dialect.families().filter(|name| model.starts_with(name));
            Some((names.map(|name| name.len()).max()?, *dialect))
        };
        // Of names of the same length `max_by_key` returns the last: the user's first dialect.
        let own = self.own.iter().rev().filter_map(longest);
        let all = family_of(&model).into_iter().chain(own);
        all.max_by_key(|(length, _)| *length)
            .map(|(_, dialect)| dialect)
    }

    /// Returns the dialect with this name or alias.
    pub fn named(&self, name: &str) -> Option<&'static Dialect> {
        self.all().find(|d| d.is_named(name))
    }

    /// Returns the dialects that a value of the option `--dialect` names: names or aliases
    /// separated by commas. Without a value, returns the dialect of the user's file if there is
    /// exactly one. Empty for `auto`, which names no dialect.
    ///
    /// # Errors
    /// A name is unknown, or the value contains no name.
    pub fn chosen(&self, value: Option<&str>) -> Result<Vec<&'static Dialect>, UnknownDialect> {
        match (value, &self.own[..]) {
            (None, [own]) => Ok(vec![own]),
            (None | Some("auto"), _) => Ok(Vec::new()),
            (Some(names), _) => names
                .split(',')
                .map(|name| self.find(name.trim()))
                .collect(),
        }
    }

    /// Returns the dialect with this name or alias.
    ///
    /// # Errors
    /// The name is unknown. The error suggests the name that shares the longest prefix
    /// with it, of at least three letters.
    pub fn find(&self, name: &str) -> Result<&'static Dialect, UnknownDialect> {
        let shared = |other: &str| {
            let both = name.chars().zip(other.chars());
            both.take_while(|(a, b)| a == b).count()
        };
        let near = || self.all().map(|d| d.name).max_by_key(|d| shared(d));
        self.named(name).ok_or_else(|| UnknownDialect {
            name: name.to_owned(),
            near: near().filter(|d| shared(d) >= 3),
        })
    }
}

/// Returns the dialect of the table whose name or alias is the longest that begins the letters of a
/// model's name, and the length of that name.
fn family_of(model: &str) -> Option<(usize, &'static Dialect)> {
    // Of two names that begin the same text, the longer one comes later in sorted order.
    let mut sorted = FAMILIES.iter().rev();
    let (name, at) = sorted.find(|(name, _)| model.starts_with(name))?;
    Some((name.len(), &ALL[*at]))
}

// Finds the family of a chat template, by the call markers in its text.
//
// A template contains the markers that a model writes, because it renders earlier calls into the
// prompt. This holds for the Jinja template of a checkpoint (`GET /props` of llama.cpp) and for the
// Go template of Ollama (`POST /api/show`).

/// Minimum total length of a form's markers, in bytes. Shorter markers would match by chance.
const LEAST: usize = 8;

impl Dialects {
    /// Returns the dialect of the family whose chat template this is: the dialect with a call form
    /// whose markers all occur in the template. If the markers of one dialect include those of
    /// another, as with Qwen 3 Coder and Hermes, the longer list wins. Returns `None` if no dialect
    /// fits, or if several fit equally.
    pub fn of_template(&self, template: &str) -> Option<&'static Dialect> {
        let template = bare(template);
        let fitting: Vec<(Weight, &Dialect)> = self
            .all()
            .filter(|dialect| dialect.read_as.is_none())
            .filter_map(|dialect| Some((weight(dialect, &template)?, dialect)))
            .collect();
        let most = fitting.iter().map(|(weight, _)| *weight).max()?;
        let mut best = fitting
            .into_iter()
            .filter(|(weight, _)| *weight == most)
            .map(|(_, dialect)| dialect);
        best.next().filter(|_| best.next().is_none())
    }
}

/// Returns the evidence for a dialect, strongest first: whether the matching form is the one that
/// prompts show, the length of the form's markers, and the length of the tokens that frame its
/// messages. Returns `None` if no form matches.
fn weight(dialect: &Dialect, template: &str) -> Option<Weight> {
    // Forms that also occur in prose, such as code in a fence, appear in the examples of many
    // templates.
    let forms = dialect
        .forms
        .iter()
        .enumerate()
        .filter(|(_, form)| form.needs == KnownTool::Listed);
    let weights = forms.filter_map(|(at, form)| {
        let length = form_weight(form, template).filter(|length| *length >= LEAST)?;
        Some((at == 0, length))
    });
    let (is_first, length) = weights.max()?;
    let framing = dialect.framing;
    let tokens = [
        framing.dropped,
        framing.dropped_first,
        framing.foreign,
        framing.tokens,
    ]
    .into_iter()
    .flatten();
    let tokens = tokens
        .map(|token| bare(token))
        .filter(|token| template.contains(token.as_str()));
    Some((is_first, length, tokens.map(|token| token.len()).sum()))
}

type Weight = (bool, usize, usize);

/// Returns the length of the form's markers, or `None` if a required marker is not in the template.
fn form_weight(form: &Form, template: &str) -> Option<usize> {
    let mut seen: Vec<String> = Vec::new();
    let mut add = |marks: &[&str]| {
        let found = marks
            .iter()
            .map(|mark| bare(mark))
            .filter(|mark| template.contains(mark.as_str()));
        let Some(longest) = found.max_by_key(String::len) else {
            return false;
        };
        if !seen.contains(&longest) {
            seen.push(longest);
        }
        true
    };
    if form
        .section
        .as_ref()
        .is_some_and(|section| !section.optional && !add(section.open))
    {
        return None;
    }
    for part in form.call {
        let is_there = match part {
            CallPart::Mark(marks) => add(marks),
            CallPart::Tag(tag) => add(tag.open),
            CallPart::Params(params) => match params.style {
                TagStyle::Plain { value, .. } => add(params.open) && add(&[value]),
                TagStyle::Attribute { .. } => add(params.open),
                TagStyle::Repeated { close, .. } => add(params.open) && add(&[close.0]),
                TagStyle::Element { .. } => true,
            },
            // An optional marker may also be missing in a template.
            CallPart::Maybe { marks, .. } => {
                add(marks);
                true
            }
            _ => true,
        };
        if !is_there {
            return None;
        }
    }
    Some(seen.iter().map(String::len).sum())
}

/// Returns `text` without white space, including `\n` escapes in a template.
fn bare(text: &str) -> String {
    text.replace("\\n", "")
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // MiMo writes the same markers as Qwen 3 Coder, but its white space is significant.
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
    fn a_models_name_shows_its_family() {
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
    fn the_table_of_families_agrees_with_a_search_of_all_names() {
        // Compares all names with the model, without the table of families.
        let plain = |all: &Dialects, model: &str| {
            let model = letters(model);
            let names = |d: &'static Dialect| d.families().map(move |name| (name, d));
            let fitting = all.all().flat_map(names);
            let fitting: Vec<_> = fitting
                .filter(|(name, _)| model.starts_with(name))
                .collect();
            let longest = fitting.iter().map(|(name, _)| name.len()).max()?;
            let first = fitting.iter().find(|(name, _)| name.len() == longest);
            first.map(|(_, dialect)| dialect.name)
        };
        let file = ("hermes.toml", include_str!("../dialects/hermes.toml"));
        let mut own = crate::notation::read(&[file], &[]).expect("a file without mistakes");
        (own[0].name, own[0].aliases) = ("own", &["Qwen3", "gpt-4"]);
        let mut with_own = Dialects::default();
        with_own.extend(own);
        let names = ALL
            .iter()
            .flat_map(|d| d.aliases.iter().copied().chain([d.name]));
        for name in names.chain(["gpt-4o", "qwen3-coder", "é", "zzz", "0"]) {
            let longer = format!("{name}-8B-é");
            let cut: String = name.chars().take(name.chars().count() - 1).collect();
            for all in [&Dialects::default(), &with_own] {
                for model in [name, &longer, &cut] {
                    let found = all.of_model(model).map(|d| d.name);
                    assert_eq!(found, plain(all, model), "{model}");
                }
            }
        }
        assert_eq!(with_own.of_model("gpt-4o").map(|d| d.name), Some("own"));
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

    /// The build script writes the table as Rust; nothing from the files may be lost.
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
        let read = crate::notation::read(&files, &[]).expect("files without mistakes");
        assert_eq!(read.len(), ALL.len());
        for dialect in &read {
            assert_eq!(Some(dialect), Dialect::named(dialect.name));
        }
    }
}

#[cfg(test)]
mod template_tests {
    use super::*;

    #[test]
    fn a_template_is_of_the_one_family_whose_calls_it_writes() {
        for (template, dialect) in [
            // Jinja, as served by llama.cpp.
            (
                r#"{{- '<|im_start|>system\n# Tools\n<tools>' }}…{{- '\n<tool_call>\n{"name": "' }}{{ name }}{{- '}\n</tool_call>' }}{{- '<|im_end|>\n' }}"#,
                "hermes",
            ),
            (
                r#"{{- '<tool_call>\n<function=' + name + '>\n' }}{{- '<parameter=' + key + '>\n' }}…</parameter>\n</function>\n</tool_call><seed:think>"#,
                "none",
            ),
            (
                r#"'<seed:tool_call>\n<function=' + name + '>\n<parameter=' + key + '>' + value + '</parameter>\n</function>\n</seed:tool_call>'"#,
                "seed-oss",
            ),
            (
                r#"'<|start_header_id|>ipython<|end_header_id|>\n\n' … '<|python_tag|>' + name + '.call(' … '<|eom_id|>' '<|eot_id|>'"#,
                "llama3-json",
            ),
            (
                r#"'<|tool_call>call:' + name + '{' … '}<tool_call|>' '<|turn>user' '<turn|>'"#,
                "gemma4",
            ),
            (
                "<|tool_calls_section_begin|><|tool_call_begin|>{{ id }}<|tool_call_argument_begin|>{{ arguments }}<|tool_call_end|><|tool_calls_section_end|>",
                "kimi-k2",
            ),
            // Go, as served by Ollama.
            (
                "{{ .Role }}<|im_end|>{{ range .ToolCalls }}<tool_call>\n{\"name\": \"{{ .Function.Name }}\", \"arguments\": {{ .Function.Arguments }}}\n</tool_call>{{ end }}<|im_start|>user",
                "hermes",
            ),
            // Markers shared by several families: GLM, Ling, Spark and others write the same.
            (
                r#"'<tool_call>' + name + '\n<arg_key>' + key + '</arg_key>\n<arg_value>' + value + '</arg_value>\n</tool_call>'"#,
                "none",
            ),
            (
                "For example:\n```json\n{\"name\": \"f\"}\n```\nAction: f\nAction Input: {}",
                "none",
            ),
            ("{{ .Prompt }}", "none"),
            (
                "{% for message in messages %}{{ message.content }}{% endfor %}",
                "none",
            ),
            ("", "none"),
        ] {
            let found = Dialects::default()
                .of_template(template)
                .map_or("none", |dialect| dialect.name);
            assert_eq!(found, dialect, "{template}");
        }
    }
}
