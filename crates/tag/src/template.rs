//! The family that a chat template is of, by the markers of calls that are in its text.
//!
//! A template holds what a model writes, since it puts earlier calls back into the prompt: the
//! Jinja of a checkpoint (`GET /props` of llama.cpp) and the Go template of Ollama
//! (`POST /api/show`) alike.

use crate::dialect::params::Style;
use crate::dialect::{CallPart, Dialect, Form, KnownTool};
use crate::table::Dialects;

/// The least length of a form's markers together, in bytes. Shorter ones are found by chance.
const LEAST: usize = 8;

impl Dialects {
    /// The dialect of the family whose chat template this is: the one of which all markers of a
    /// form of calls are in it. Where the markers of one contain those of another, as those of Qwen
    /// 3 Coder contain those of Hermes, the longer list counts. `None` where none fits, or several
    /// do.
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

/// What speaks for a dialect, the strongest first: whether the form that fits is the one which its
/// prompts show, the length of the form's markers, and that of the tokens which frame its messages.
/// `None` if no form fits.
fn weight(dialect: &Dialect, template: &str) -> Option<Weight> {
    // Forms that prose can have, such as code in a fence, are in the examples of many templates.
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

/// The length of the form's markers; `None` where one that each call has is not in the template.
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
                Style::Equals { open, .. } => add(&[open]),
                Style::Attribute { open, .. } => add(open),
                Style::Pair { key, value, .. } => add(&[key.0]) && add(&[value.0]),
                Style::Element { .. } => true,
            },
            // It may be missing, in a template, too.
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

/// `text` without white space, also where a template writes it as `\n`.
fn bare(text: &str) -> String {
    text.replace("\\n", "")
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_of_the_one_family_whose_calls_it_writes() {
        for (template, dialect) in [
            // Jinja, as llama.cpp has it.
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
            // Go, as Ollama has it.
            (
                "{{ .Role }}<|im_end|>{{ range .ToolCalls }}<tool_call>\n{\"name\": \"{{ .Function.Name }}\", \"arguments\": {{ .Function.Arguments }}}\n</tool_call>{{ end }}<|im_start|>user",
                "hermes",
            ),
            // The markers of several families: GLM, Ling, Spark and others write the same.
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
