//! Dialects as text: the files of `dialects/`, from which the build script makes the table, and
//! those of users. `docs/new-dialect.md` describes the notation.
//!
//! A file is TOML. What it reads to is kept for the rest of the process, as the table itself is: a
//! run reads a few files. Plain data: the build script compiles these files too.

mod call;
mod check;
mod entry;
mod error;
mod form;
mod kept;
mod parameter;
mod scan;
mod spellings;
#[cfg(test)]
mod tests;

use crate::dialect::prompt::{Prompt, ToolListStyle};
use crate::dialect::{Dialect, PromptReasoning, ReasoningEnd, TextFraming};
use check::check;
pub(crate) use entry::Fault;
use entry::NotationRow;
pub use error::NotationError;
use form::FORM_KEYS;
use kept::{around, keep, lines, marker, one};

/// The longest file, in bytes.
const MAX_FILE: usize = 256 * 1024;
/// The most dialects in a file.
const MAX_DIALECTS: usize = 100;

/// The keys of a dialect beside those of its form.
const KEYS: &[&str] = &[
    "name",
    "aliases",
    "models",
    "source",
    "extends",
    "read_as",
    "late",
    "spellings",
    "also",
    "reasoning",
    "reasoning_opened",
    "call_ends_reasoning",
    "dropped",
    "dropped_first",
    "foreign",
    "foreign_lines",
    "tokens",
    "messages",
    "tools",
    "result",
    "results",
];

/// Reads files, each with its name, into dialects in the order of the files. They may extend each
/// other and those of `known`, but not have their names.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) fn read(
    files: &[(&str, &str)],
    known: &[&Dialect],
) -> Result<Vec<Dialect>, NotationError> {
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for (file, text) in files {
        documents.push((
            *file,
            *text,
            entry::parse(text, MAX_FILE).map_err(|fault| fault.of(file, text))?,
        ));
    }
    for (file, text, document) in &documents {
        let found = entry::rows(text, document, "dialect", MAX_DIALECTS)
            .map_err(|fault| fault.of(file, text))?;
        rows.extend(found.into_iter().map(|row| (*file, row)));
    }
    // A dialect is read after the one that it extends.
    let mut read: Vec<Option<Dialect>> = rows.iter().map(|_| None).collect();
    while read.iter().any(Option::is_none) {
        let mut waits = None;
        let mut found = false;
        for n in 0..rows.len() {
            let (file, row) = &rows[n];
            if read[n].is_some() {
                continue;
            }
            let dialects = known.iter().copied().chain(read.iter().flatten());
            match dialect(row, dialects).map_err(|fault| fault.of(file, row.text))? {
                Ok(dialect) => (read[n], found) = (Some(dialect), true),
                Err(fault) => waits = waits.or(Some(fault.of(file, row.text))),
            }
        }
        if let Some(fault) = waits.filter(|_| !found) {
            return Err(fault);
        }
    }
    let read: Vec<Dialect> = read.into_iter().flatten().collect();
    for (n, dialect) in read.iter().enumerate() {
        let (file, row) = &rows[n];
        let others = || known.iter().copied().chain(&read[..n]);
        for name in std::iter::once(&dialect.name).chain(dialect.aliases) {
            if let Some(other) = others().find(|d| d.is_named(name)) {
                let why = format!(
                    "'{name}' is a name of the dialect '{}' already; expected another name",
                    other.name
                );
                return Err(Fault::new(row.at, why).of(file, row.text));
            }
        }
    }
    Ok(read)
}

/// Reads one dialect; the inner error is that of a base that is not read yet.
fn dialect<'d>(
    row: &NotationRow<'_>,
    known: impl Iterator<Item = &'d Dialect>,
) -> Result<Result<Dialect, Fault>, Fault> {
    row.expect(&[KEYS, FORM_KEYS].concat())?;
    let name = row
        .read("name", name)?
        .ok_or_else(|| row.fault("it has no 'name'; expected one"))?;
    let base = match row.text("extends")? {
        None => None,
        Some(wanted) => match { known }.find(|d| d.is_named(wanted.value)) {
            Some(base) => Some(base),
            None => {
                return Ok(Err(wanted.fault(format!(
                    "extends: no dialect '{}' is known here, or it extends this one; expected a dialect of \
                     tag-parse --list-dialects, or one of this file",
                    wanted.value
                ))));
            }
        },
    };
    let framing = framing(row, base.map_or(NO_FRAMING, |base| *base.framing))?;
    let forms = match (form::read(row, framing.messages)?, base) {
        (Some(forms), _) => forms,
        (None, Some(base)) => base.forms,
        (None, None) if framing.messages => &[],
        (None, None) => {
            return Err(row.fault("it has neither 'call' nor 'extends'; expected one of them"));
        }
    };
    let dialect = Dialect {
        name,
        aliases: row.list("aliases", self::name)?.unwrap_or_default(),
        models: row.text("models")?.map_or("", |models| keep(models.value)),
        source: row.text("source")?.map_or("", |source| keep(source.value)),
        late: row.read("late", late)?.unwrap_or_default(),
        read_as: row.text("read_as")?.map(|name| keep(name.value)),
        forms,
        framing: one(framing),
        prompt: one(prompt(row, base.map_or(PROMPT, |base| *base.prompt))?),
    };
    check(&dialect).map_err(|why| row.fault(why))?;
    Ok(Ok(dialect))
}

/// What surrounds calls where a file is silent: models of every dialect may think in `<think>`.
const NO_FRAMING: TextFraming = TextFraming {
    reasoning: &[("<think>", "</think>")],
    prefilled: PromptReasoning::No,
    call_ends_reasoning: ReasoningEnd::Never,
    dropped: &[],
    dropped_first: &[],
    foreign: &[],
    foreign_lines: &[],
    tokens: &[],
    messages: false,
};

fn framing(row: &NotationRow<'_>, base: TextFraming) -> Result<TextFraming, Fault> {
    let opened = row.word(
        "reasoning_opened",
        &[
            ("no", PromptReasoning::No),
            ("perhaps", PromptReasoning::Perhaps),
            ("usually", PromptReasoning::Usually),
        ],
    )?;
    let ends = [
        ("never", ReasoningEnd::Never),
        ("unless closed", ReasoningEnd::UnlessClosed),
        ("always", ReasoningEnd::Always),
    ];
    Ok(TextFraming {
        reasoning: row.list("reasoning", pair)?.unwrap_or(base.reasoning),
        prefilled: opened.unwrap_or(base.prefilled),
        call_ends_reasoning: row
            .word("call_ends_reasoning", &ends)?
            .unwrap_or(base.call_ends_reasoning),
        dropped: row.list("dropped", marker)?.unwrap_or(base.dropped),
        dropped_first: row
            .list("dropped_first", marker)?
            .unwrap_or(base.dropped_first),
        foreign: row.list("foreign", marker)?.unwrap_or(base.foreign),
        foreign_lines: row
            .list("foreign_lines", marker)?
            .unwrap_or(base.foreign_lines),
        tokens: row.list("tokens", marker)?.unwrap_or(base.tokens),
        messages: row.flag("messages")?.unwrap_or(base.messages),
    })
}

/// How tools and results are shown where a file is silent.
const PROMPT: Prompt = Prompt {
    open: "<tools>\n",
    close: "\n</tools>",
    list: ToolListStyle::Lines,
    result: "<tool_result name=\"{name}\">{result}</tool_result>",
    results: ("", ""),
    between: "\n",
};

fn prompt(row: &NotationRow<'_>, base: Prompt) -> Result<Prompt, Fault> {
    let mut prompt = base;
    if let Some((open, list, close)) = row.read("tools", tools)? {
        (prompt.open, prompt.list, prompt.close) = (open, list, close);
    }
    if let Some((open, between, close)) = row.read("results", |text| around(text, "{result}"))? {
        (prompt.results, prompt.between) = ((open, close), between);
    }
    if let Some(result) = row.read("result", result)? {
        prompt.result = result;
    }
    Ok(prompt)
}

fn name(text: &str) -> Result<&'static str, String> {
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let fits = !text.is_empty() && text.len() <= 64 && text.chars().all(plain) && text != "auto";
    if fits {
        Ok(keep(text))
    } else {
        Err(format!(
            "'{text}' is not a name; expected a-z, 0-9, '-', '_' and '.', not auto"
        ))
    }
}

/// Two markers, with what is between them as `…`.
fn pair(text: &str) -> Result<(&'static str, &'static str), String> {
    match text.split_once('…') {
        Some((open, close)) if !close.contains('…') => Ok((marker(open)?, marker(close)?)),
        _ => Err(format!(
            "'{text}' is not a pair of markers; expected such as <think>…</think>"
        )),
    }
}

/// Two numbers.
fn late(text: &str) -> Result<(u8, u8), String> {
    let numbers = text
        .split_once(' ')
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers.ok_or_else(|| format!("'{text}' is not two numbers; expected such as '0 16'"))
}

/// The list of tools between its markers.
fn tools(text: &str) -> Result<(&'static str, ToolListStyle, &'static str), String> {
    let lists = [
        ("{lines}", ToolListStyle::Lines),
        ("{array}", ToolListStyle::Array),
        ("{typescript}", ToolListStyle::TypeScript),
    ];
    for (slot, list) in lists {
        if let Some((open, close)) = text.split_once(slot) {
            return Ok((keep(lines(open)), list, keep(lines(close))));
        }
    }
    Err(format!(
        "'{text}' has no place for the tools; expected {{lines}}, {{array}} or {{typescript}} in it"
    ))
}

fn result(text: &str) -> Result<&'static str, String> {
    match text.contains("{result}") {
        true => Ok(keep(lines(text))),
        false => Err(format!(
            "'{text}' has no place for the result's text; expected {{result}} in it"
        )),
    }
}
