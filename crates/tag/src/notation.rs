//! Dialects as text: the files in `dialects/`, from which the build script generates the table, and
//! users' files. `docs/new-dialect.md` describes the notation.
//!
//! A file is TOML. Like the table, its dialects stay in memory until the process ends, because a
//! run reads only a few files. The build script compiles this module too, so the module uses no
//! other module except `dialect`.

mod call;
mod entry;
mod form;
mod parameter;
mod scan;

use crate::dialect::{
    Dialect, ParamForm, Prompt, PromptReasoning, ReasoningEnd, TextFraming, ToolListStyle,
};
pub(crate) use crate::notation::entry::Fault;
pub use crate::notation::entry::NotationError;
use crate::notation::entry::{NotationRow, around, keep, lines, marker, one};
use crate::notation::form::{FORM_KEYS, check};
use crate::notation::scan::MarkerSpellings;

/// The maximum length of a file, in bytes.
const MAX_FILE: usize = 256 * 1024;
/// The maximum number of dialects in a file.
const MAX_DIALECTS: usize = 100;

/// The keys of a dialect, except those of its form.
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

/// Parses files, given by name and text, and returns their dialects in the order of the files.
/// Dialects may extend each other and those of `known`, but must not have the same names.
///
/// # Errors
/// Returns the first mistake.
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
    // A dialect is parsed after the dialect that it extends.
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

/// Returns the parameter with this notation, or `None` if the notation is invalid.
pub(crate) fn parameter(text: &str) -> Option<ParamForm> {
    parameter::read(text, &MarkerSpellings::default()).ok()
}

/// Parses one dialect. The inner error means that its base is not parsed yet.
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

/// The default framing: models of every dialect may reason in `<think>`.
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
    let markers = |key: &str, base| Ok(row.list(key, marker)?.unwrap_or(base));
    Ok(TextFraming {
        reasoning: row.list("reasoning", pair)?.unwrap_or(base.reasoning),
        prefilled: opened.unwrap_or(base.prefilled),
        call_ends_reasoning: row
            .word("call_ends_reasoning", &ends)?
            .unwrap_or(base.call_ends_reasoning),
        dropped: markers("dropped", base.dropped)?,
        dropped_first: markers("dropped_first", base.dropped_first)?,
        foreign: markers("foreign", base.foreign)?,
        foreign_lines: markers("foreign_lines", base.foreign_lines)?,
        tokens: markers("tokens", base.tokens)?,
        messages: row.flag("messages")?.unwrap_or(base.messages),
    })
}

/// The default way to show tools and results.
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

/// Parses two markers separated by `…`.
fn pair(text: &str) -> Result<(&'static str, &'static str), String> {
    match text.split_once('…') {
        Some((open, close)) if !close.contains('…') => Ok((marker(open)?, marker(close)?)),
        _ => Err(format!(
            "'{text}' is not a pair of markers; expected such as <think>…</think>"
        )),
    }
}

/// Parses two numbers.
fn late(text: &str) -> Result<(u8, u8), String> {
    let numbers = text
        .split_once(' ')
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    numbers.ok_or_else(|| format!("'{text}' is not two numbers; expected such as '0 16'"))
}

/// Parses the list of tools between its markers.
fn tools(text: &str) -> Result<(&'static str, ToolListStyle, &'static str), String> {
    let lists = [
        ("{lines}", ToolListStyle::Lines),
        ("{array}", ToolListStyle::OneArray),
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

#[cfg(test)]
mod tests {
    use crate::CallPiece;
    use crate::Dialect;
    use crate::Dialects;
    use crate::Look;
    use crate::Outlet;
    use crate::Parser;
    use crate::PromptCall;
    use proptest::prelude::*;
    use std::rc::Rc;

    /// Returns the line and the message of a file's error.
    fn error(text: &str) -> String {
        let error = Dialects::default()
            .add("f.toml", text)
            .expect_err(text)
            .to_string();
        error
            .strip_prefix("f.toml line ")
            .expect("the file and the line")
            .to_owned()
    }

    #[test]
    fn a_mistake_has_its_line_and_what_was_expected() {
        let call = "name = 'x'\ncall = ";
        for (text, want) in [
            ("", "1: it has no 'name'; expected one"),
            ("name = 1", "1: name: integer; expected a string"),
            (
                "name = 'A b'\n",
                "1: name: 'A b' is not a name; expected a-z",
            ),
            ("name = 'auto'\n", "1: name: 'auto' is not a name"),
            (
                "name = 'x'",
                "1: it has neither 'call' nor 'extends'; expected one of them",
            ),
            ("name = 'x'\nname = 'y'", "2: duplicate key"),
            (
                "name = 'x'\n\nextends = 'nobody'",
                "3: extends: no dialect 'nobody' is known here",
            ),
            (
                "name = 'x'\nextends = 'x'",
                "2: extends: no dialect 'x' is known here, or it extends this one",
            ),
            (
                "[[dialect]]\nname = 'x'\nextends = 'y'\n[[dialect]]\nname = 'y'\nextends = 'x'\n",
                "3: extends: no dialect 'y' is known here, or it extends this one; expected a dialect of",
            ),
            (
                "[[dialect]]\nname = 'x'\nextends = 'hermes'\n[[dialect]]\nname = 'x'\nextends = 'hermes'",
                "4: 'x' is a name",
            ),
            (
                "name = 'x'\naliases = ['qwen']\nextends = 'hermes'",
                "1: 'qwen' is a name of the dialect 'hermes' already",
            ),
            (
                "colour = 'red'",
                "1: unknown key 'colour'; expected one of name, aliases,",
            ),
            (
                "[[dialect]]\nname='x'\ncolour='red'",
                "3: unknown key 'colour'",
            ),
            (
                "name = 'x'\nextends = 'hermes'\ndropped = [1]",
                "3: dropped: integer; expected a string",
            ),
            (
                "name = 'x'\nextends = 'hermes'\ndropped = [\n 'a',\n '']",
                "5: dropped: a marker is empty",
            ),
            (
                "name = 'x'\nextends = 'hermes'\ndropped = '<a>'",
                "3: dropped: string; expected an array",
            ),
            (
                "name = 'x'\nextends = 'hermes'\ndropped = [' ']",
                "3: dropped: a marker is white space",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nreasoning = ['<a>']",
                "3: reasoning: '<a>' is not a pair of markers",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nreasoning = ['a…a']",
                "1: reasoning: 'a' both opens and closes it",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nreasoning_opened = 'yes'",
                "3: reasoning_opened: 'yes' is unknown; expected one of no,",
            ),
            (
                "name = 'x'\nextends = 'hermes'\ntools = '<tools>'",
                "3: tools: '<tools>' has no place for the tools",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nresult = '<r>'",
                "3: result: '<r>' has no place for the result's text",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nresults = '<r>{result}'",
                "3: results: '<r>{result}' does not have {result} twice",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nparameter = '<p>'",
                "1: 'parameter' without 'call'; expected both",
            ),
            (
                "name = 'x'\nextends = 'hermes'\nmessages = 'no'",
                "3: messages: string; expected true or false",
            ),
            (
                &format!("{call}''"),
                "1: call: it has the arguments 0 times",
            ),
            (
                &format!("{call}'<a>{{arguments}}'"),
                "1: call: it has the name 0 times; expected one",
            ),
            (
                &format!("{call}'<a>{{name, arguments}}{{arguments}}'"),
                "1: call: it has the arguments 2 times",
            ),
            (
                &format!("{call}'<a>{{name'"),
                "2: call: '{' has no '}'; expected it, or '\\{' for the character itself",
            ),
            (
                &format!("{call}'<a>{{arguments}}<b>{{name}}<c>'"),
                "1: call: the name follows the arguments",
            ),
            (
                &format!("{call}'<a>{{name}}'"),
                "2: call: nothing ends a name or id",
            ),
            (
                &format!("{call}'<a> {{name, arguments}}'"),
                "2: call: the marker '<a> ' has white space at an end; expected ⏎, ␣ or ·",
            ),
            (
                &format!("{call}'<a>{{name}}⏎{{parameters}}<b>'"),
                "2: call: {parameters} without 'parameter'",
            ),
            (
                &format!("{call}'<a>{{nam}}'"),
                "2: call: the slot {nam} is unknown; expected {name}",
            ),
            (
                &format!("{call}'<a>{{f(a=1)}}'"),
                "2: call: the call {f(a=1)} is not understood",
            ),
            (
                &format!("{call}'?<a>{{name, arguments}}'"),
                "2: call: '?' follows no marker",
            ),
            (
                &format!("{call}'(<a>){{name, arguments}}'"),
                "1: call: it does not begin with a marker",
            ),
            (&format!("{call}'{{text}}<a>{{name}}<b>'"), "1: call: "),
            (
                &format!("{call}'a{{name, arguments}}'"),
                "1: call: 'a' is found in any text; expected a longer marker",
            ),
            (
                &format!("{call}'<think>{{name, arguments}}'"),
                "1: '<think>' opens calls and is a marker of reasoning",
            ),
            (
                &format!("{call}'<a>{{name, arguments}}'\nspellings = [['<b>', '<c>']]"),
                "3: spellings: no marker is written '<b>'",
            ),
            (
                &format!("{call}'<a>{{name, arguments}}'\nspellings = [['<a>', '<a>b']]"),
                "1: spellings: '<a>' begins another spelling",
            ),
            (
                &format!("{call}'<a>{{name, arguments}}'\nspellings = [['<a>']]"),
                "3: spellings: a list of fewer than two",
            ),
            (
                &format!("{call}'<a>{{name, arguments}}'\ncalls = '<b>{{call}}'"),
                "3: calls: '<b>{call}' does not have {call} twice",
            ),
            (
                &format!("{call}'<a>{{name, arguments}}'\ncalls = '<b>{{call}}{{call}}<b>'"),
                "1: calls: the same marker opens",
            ),
            (
                &format!("{call}'<a>{{name}}⏎{{parameters}}<b>'\nparameter = '<p>'"),
                "3: parameter: it has no {value}",
            ),
            (
                &format!("{call}'<a>{{name}}⏎{{parameters}}<b>'\nparameter = '{{value}}'"),
                "3: parameter: '{value}' is not understood",
            ),
            (
                &format!(
                    "{call}'<a>{{name}}⏎{{parameters}}<b>'\nparameter = '<p={{name}}>⏎{{value}}</p>'"
                ),
                "3: parameter: expected ⏎ on both",
            ),
        ] {
            let found = error(text);
            assert!(found.starts_with(want), "{text}\n{found}\nnot {want}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let many = |n: usize, text: &str| text.repeat(n);
        for (text, want) in [
            (many(300_000, "#"), "1: the file is too long"),
            (
                format!("name = '{}'", many(4000, "x")),
                &format!(
                    "1: name: '{}…{}' is not a name",
                    many(293, "x"),
                    many(238, "x")
                ),
            ),
            (
                format!("name = '{}'", many(5000, "x")),
                "1: name: the string is too long",
            ),
            (
                many(101, "[[dialect]]\nname = 'x'\n"),
                "201: the file has too many dialects",
            ),
            (
                format!(
                    "name = 'x'\nextends = 'hermes'\ndropped = [{}]",
                    many(65, "'<a>',")
                ),
                "3: dropped: 65 values",
            ),
            (
                format!(
                    "name = 'x'\nextends = 'hermes'\ndropped = ['{}']",
                    many(257, "<")
                ),
                "3: dropped: a marker has more than 256",
            ),
            (
                format!(
                    "name = 'x'\ncall = '<a>{{name, arguments}}'\nalso = [{}]",
                    many(16, "{ call = '<b>{name, arguments}' },")
                ),
                "1: also: 16",
            ),
            (format!("a = {}{}", many(5000, "["), many(5000, "]")), "1: "),
            (
                format!("name = 'x'\ncall = '{}'", many(2000, "{(")),
                "2: call: '{' has no '}'",
            ),
        ] {
            let found = error(&text);
            assert!(found.starts_with(want), "{found}\nnot {want}");
        }
    }

    #[test]
    fn what_is_not_given_is_as_in_the_dialect_that_is_extended() {
        let mut dialects = Dialects::default();
        let text = "[[dialect]]\nname = 'b'\nextends = 'a'\ndropped = []\n[[dialect]]\nname = 'a'\nextends = 'qwen'\nreasoning_opened = 'no'\n";
        dialects.add("f.toml", text).expect("no mistake");
        let hermes = Dialect::named("hermes").expect("a dialect of the table");
        let [b, a] = dialects.own() else {
            panic!("{dialects:?}")
        };
        assert_eq!(
            (a.forms, a.prompt, a.framing.dropped),
            (hermes.forms, hermes.prompt, hermes.framing.dropped)
        );
        assert!(
            !a.may_begin_in_reasoning()
                && !b.may_begin_in_reasoning()
                && b.framing.dropped.is_empty()
        );
        assert!(a.aliases.is_empty() && a.source.is_empty());
    }

    /// Counts the text and the emitted calls.
    #[derive(Default)]
    struct Count {
        text: usize,
        done: usize,
    }

    impl Outlet for Count {
        fn content(&mut self, text: &str) {
            self.text += text.len();
        }
        fn reasoning(&mut self, text: &str) {
            self.text += text.len();
        }
        fn call(&mut self, piece: CallPiece<'_>) {
            self.done += usize::from(piece.done);
        }
        fn retract(&mut self, _index: i64, _reason: &'static str) {}
        fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
    }

    /// Reads a text with a dialect alone and together with the table, and returns how many calls
    /// the first reading found.
    fn read(dialects: &Dialects, dialect: &Dialect, text: &str) -> usize {
        let counts = [dialect.name, "auto"].map(|names| {
            let look = Rc::new(Look::among(dialects, names).expect("a known name"));
            let mut parser = Parser::new(look, None, Some(""));
            let mut count = Count::default();
            text.split_inclusive(|_| true)
                .for_each(|piece| parser.push(piece, &mut count));
            parser.finish(false, &mut count);
            count.done
        });
        counts[0]
    }

    #[test]
    fn a_marker_of_other_characters_cannot_be_read_in_a_result() {
        let mut dialects = Dialects::default();
        let text = "name = 'x'\ncall = '◁call▷{name, arguments}◁/call▷'\nreasoning = ['🜂…🜄']";
        dialects.add("f.toml", text).expect("no mistake");
        let dialect = dialects.own()[0];
        let call = dialect.calls(&[PromptCall {
            id: "",
            name: "f",
            arguments: "{}",
        }]);
        assert_eq!(read(&dialects, dialect, &call), 1);
        let result = dialect.results(&[crate::PromptResult {
            id: "",
            name: "f",
            text: &format!("{call}🜂"),
        }]);
        assert_eq!(read(&dialects, dialect, &result), 0);
        assert!(
            !result.contains("◁call") && !result.contains('🜂'),
            "{result}"
        );
        let inner = result
            .split_once('>')
            .and_then(|(_, rest)| rest.strip_suffix("</tool_result>"))
            .expect("the frame");
        assert_eq!(
            serde_json::from_str::<String>(inner).ok(),
            Some(format!("{call}🜂"))
        );
    }

    /// The marker begins a section, which the end of the text makes text again.
    #[test]
    fn a_marker_that_begins_with_white_space_is_not_read_without_end() {
        let mut dialects = Dialects::default();
        let text = "name = 'x'\ncall = '{name, arguments}'\ncalls = '⏎|⏎{call}⏎{call}⏎|⏎'";
        dialects.add("f.toml", text).expect("no mistake");
        for text in ["text\n|\n", "\n|\n", "\n|\n{\"name\": \"f\"}\n|\n"] {
            assert_eq!(read(&dialects, dialects.own()[0], text), 0, "{text}");
        }
    }

    /// Generates valid and invalid notations of calls.
    fn notation() -> impl Strategy<Value = String> {
        let pieces = vec![
            "<a>",
            "</a>",
            "[",
            "]",
            "{name}",
            "{arguments}",
            "{name, arguments}",
            "[{name, arguments}]",
            "{parameters}",
            "{text}",
            "{id}",
            "{author}",
            "{count}",
            "{name(a=1)}",
            "[{name(a=1)}]",
            "{name(a=1)⏎}",
            "{call:name{a:!x!}}",
            "⏎",
            "␣",
            "·",
            "¦",
            "?",
            "(<b>)",
            "\\",
            "{",
            "}",
            "(",
            " ",
            "x",
            "✿",
            "<a n=\"{name}\">",
            "<f={name}>",
            "{functions.name:n}",
            "🜂",
        ];
        prop::collection::vec(proptest::sample::select(pieces), 1..7)
            .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Any file results in an error or in a dialect that can read texts.
        #[test]
        fn no_notation_panics(call in notation(), calls in notation(), parameter in notation(), text in "[<a>{}()x\\PC]{0,20}") {
            let file = format!("name = 'x'\ncall = '{call}'\nparameter = '⏎<p={{name}}>{{value}}</p>'\n");
            let more = format!("{file}calls = '{calls}{{call}}⏎{{call}}{calls}'\n");
            let third = format!("name = 'x'\ncall = '<a>{{name}}⏎{{parameters}}</a>'\nparameter = '{parameter}{{value}}{parameter}'\n");
            for file in [file, more, third] {
                let mut dialects = Dialects::default();
                if dialects.add("f.toml", &file).is_ok() {
                    let dialect = dialects.own()[0];
                    let call = dialect.calls(&[PromptCall { id: "1", name: "f", arguments: r#"{"a": "x"}"# }]);
                    for text in [&text, &call, &format!("{call}{text}{call}"), &call.chars().take(9).collect()] {
                        read(&dialects, dialect, text);
                    }
                    let _ = crate::lint::Lint::new(&Look::among(&dialects, "x").expect("a known name")).finds(&call);
                }
            }
        }
    }
}
