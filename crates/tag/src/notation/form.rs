//! Parses the keys of one form: how calls are written and separated, and where they may begin.

use crate::dialect::{
    CallPart, Dialect, Form, KnownTool, ParamForm, Scope, Section, TagStyle, first,
};
use crate::notation::entry::{Fault, NotationRow, all, around, keep, marker};
use crate::notation::scan::MarkerSpellings;
use crate::notation::{call, parameter};
use std::collections::BTreeSet;

/// The keys of a form.
pub(super) const FORM_KEYS: &[&str] = &[
    "call",
    "calls",
    "parameter",
    "line_start",
    "known_tools",
    "text_ends",
    "text_escapes",
];
/// The maximum number of forms of a dialect.
const MAX_FORMS: usize = 16;

/// The text before, between and after two calls.
type Around = (&'static str, &'static str, &'static str);

/// Returns the forms of a dialect: its own, and those in `also`, which inherit its `calls` and
/// `parameter` unless they set their own. `None` if the dialect sets no form. `begins` means that
/// the forms count only at the beginning of a message.
pub(super) fn read(row: &NotationRow<'_>, begins: bool) -> Result<Option<&'static [Form]>, Fault> {
    let spellings = MarkerSpellings::read(row)?;
    if row.text("call")?.is_none() {
        let lone = FORM_KEYS
            .iter()
            .chain(&["also", "spellings"])
            .find(|key| row.has(key));
        return lone.map_or(Ok(None), |key| {
            Err(row.fault(format!("'{key}' without 'call'; expected both")))
        });
    }
    let first = form(row, &spellings, begins, None, None)?;
    let calls = calls(row)?;
    let parameter = parameters(row, &spellings)?;
    let also = row.tables("also")?.unwrap_or_default();
    if also.len() >= MAX_FORMS {
        return Err(row.fault(format!(
            "also: {} forms; expected at most {}",
            also.len(),
            MAX_FORMS - 1
        )));
    }
    let mut forms = vec![first];
    for row in &also {
        row.expect(FORM_KEYS)?;
        forms.push(form(row, &spellings, begins, calls, parameter)?);
    }
    spellings.expect_used()?;
    Ok(Some(all(forms)))
}

fn calls(row: &NotationRow<'_>) -> Result<Option<Around>, Fault> {
    row.read("calls", |text| around(text, "{call}"))
}

fn parameters(
    row: &NotationRow<'_>,
    spellings: &MarkerSpellings,
) -> Result<Option<ParamForm>, Fault> {
    row.read("parameter", |text| parameter::read(text, spellings))
}

fn form(
    row: &NotationRow<'_>,
    spellings: &MarkerSpellings,
    begins: bool,
    around: Option<Around>,
    parameter: Option<ParamForm>,
) -> Result<Form, Fault> {
    let more = call::More {
        spellings,
        parameter: parameters(row, spellings)?.or(parameter),
        text_ends: row.list("text_ends", marker)?,
        text_escapes: row.list("text_escapes", escape)?.unwrap_or_default(),
    };
    let parts = row.read("call", |text| call::read(text, &more))?;
    let call = parts.ok_or_else(|| row.fault("it has no 'call'; expected one"))?;
    let marked = matches!(call.first(), Some(CallPart::Mark(_) | CallPart::Tag(_)));
    let (open, between, close) = calls(row)?.or(around).unwrap_or(("", "\n", ""));
    let section = section(open, between, close, marked, spellings)
        .map_err(|why| row.fault(format!("calls: {why}")))?;
    // Without a marker a call can be distinguished from text only at the beginning of a message,
    // and by a known tool.
    let bare = !marked && section.is_none();
    let scope = match row.flag("line_start")? {
        _ if bare || begins => Scope::Message,
        Some(true) => Scope::Line,
        _ => Scope::Anywhere,
    };
    let known = row.flag("known_tools")?.unwrap_or(bare);
    let form = Form {
        residue: residue(call, section.as_ref()),
        between: if section.is_some() { "\n" } else { between },
        section,
        call,
        scope,
        needs: if known {
            KnownTool::Known
        } else {
            KnownTool::Listed
        },
    };
    // The header of a message marks a call.
    let is_message = form.body().is_some();
    Ok(if is_message {
        Form {
            scope: Scope::Anywhere,
            needs: KnownTool::Listed,
            ..form
        }
    } else {
        form
    })
}

/// Returns the texts that show that a call's marker was left over, see [`Form::residue`].
fn residue(call: &'static [CallPart], section: Option<&Section>) -> &'static [&'static str] {
    let parts = call.iter().flat_map(|part| match part {
        CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => *marks,
        CallPart::Tag(tag) => tag.open,
        CallPart::Params(params) => params.call_closers,
        _ => &[],
    });
    let around = section.into_iter();
    let marks = parts.chain(around.flat_map(|s| s.open.iter().chain(s.close)));
    let tokens = marks.flat_map(|mark| {
        let first = mark.find("|>").map(|at| &mark[..at + 2]);
        let last = mark.rfind("<|").map(|at| &mark[at..]);
        let prefix = mark.rfind('<').filter(|_| mark.starts_with(']'));
        [
            Some(*mark),
            first,
            last,
            prefix.map(|at| &mark[..at]),
            prefix.map(|at| &mark[at..]),
        ]
    });
    let tokens = tokens.flatten().filter(|mark| is_of_calls(mark));
    let tokens = tokens.map(|mark| mark.strip_suffix(['>', ']']).unwrap_or(mark));
    let tokens: BTreeSet<&str> = tokens.collect();
    all(tokens.into_iter().collect())
}

/// Whether a marker's name refers to calls, or the marker is a control token.
fn is_of_calls(mark: &str) -> bool {
    let names_calls = |mark: String| {
        let words = ["tool", "function", "invoke", "call"];
        words.iter().any(|word| mark.contains(word))
    };
    mark.len() > 5
        && mark.starts_with(['<', '[', ']'])
        && (mark.contains(['|', '｜', ']']) || names_calls(mark.to_ascii_lowercase()))
}

/// Returns the markers around all calls, or `None` if there are none.
fn section(
    open: &str,
    between: &'static str,
    close: &str,
    optional: bool,
    spellings: &MarkerSpellings,
) -> Result<Option<Section>, String> {
    let open = unspaced(open, str::trim_end);
    let close = unspaced(close, str::trim_start);
    let ((open, inside), (close, after)) = (open, close);
    match (open, close) {
        ("", "") => return Ok(None),
        ("", _) => {
            return Err(
                "it has a closing marker and no opening one; expected both, or none".to_owned(),
            );
        }
        _ if inside != after => {
            return Err(
                "expected the same white space after the first marker and before the last"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let close = if close.is_empty() {
        &[]
    } else {
        spellings.of(marker(close)?)
    };
    Ok(Some(Section {
        open: spellings.of(marker(open)?),
        close,
        optional,
        inside: keep(inside),
        between,
    }))
}

/// Returns a marker without the white space at one end, and that white space.
fn unspaced(text: &str, trim: impl Fn(&str) -> &str) -> (&str, String) {
    let marker = trim(text);
    (marker, text.replacen(marker, "", 1))
}

/// Parses a tag that is escaped in free text, written as `ESCAPE means TAG`.
fn escape(text: &str) -> Result<(&'static str, &'static str), String> {
    let (escape, tag) = text
        .split_once(" means ")
        .ok_or_else(|| format!("'{text}' is not an escape; expected such as '[[a]] means <a>'"))?;
    Ok((marker(escape)?, marker(tag)?))
}

// Rules for every dialect.

/// Checks that the dialect can be read and written.
pub(super) fn check(dialect: &Dialect) -> Result<(), String> {
    for (open, close) in dialect.framing.reasoning {
        if open == close {
            return Err(format!(
                "reasoning: '{open}' both opens and closes it; expected two markers"
            ));
        }
    }
    for form in dialect.forms {
        form_fits(form, dialect)?;
    }
    Ok(())
}

fn form_fits(form: &Form, dialect: &Dialect) -> Result<(), String> {
    parts_fit(form, dialect)?;
    begins_with_marker(form, dialect)?;
    form.call.iter().try_for_each(spellings_fit)?;
    markers_fit(form, dialect)
}

/// Checks that a call has its name and its arguments once, in this order.
fn parts_fit(form: &Form, dialect: &Dialect) -> Result<(), String> {
    let (mut names, mut bodies, mut holds_both) = (0, 0, 0);
    let mut is_late = false;
    for part in form.call {
        match part {
            CallPart::Name { .. } | CallPart::Tag(_) => {
                is_late |= names == 0 && bodies > holds_both;
                names += 1;
            }
            CallPart::Arguments | CallPart::Params(_) | CallPart::Free(_) => bodies += 1,
            CallPart::Calls(_) | CallPart::Expression(_) => {
                bodies += 1;
                holds_both += 1;
            }
            _ => {}
        }
    }
    if bodies != 1 {
        return Err(format!(
            "call: it has the arguments {bodies} times; expected one of {{arguments}}, {{parameters}}, \
            {{text}}, {{name, arguments}} and an expression such as {{name(a=1)}}"
        ));
    }
    // In dialects with messages the header may hold the name.
    let times = holds_both + names;
    if times != 1 && !(dialect.framing.messages && names == 1) {
        return Err(format!("call: it has the name {times} times; expected one"));
    }
    if is_late {
        return Err("call: the name follows the arguments; expected it before them".to_owned());
    }
    Ok(())
}

/// Checks that a marker shows where a call begins.
fn begins_with_marker(form: &Form, dialect: &Dialect) -> Result<(), String> {
    if form.body().is_some() && !dialect.framing.messages {
        return Err(
            "call: it has the header of a message; expected 'messages = true' beside it".to_owned(),
        );
    }
    match form.call.get(form.body().unwrap_or(0).saturating_sub(1)) {
        Some(
            CallPart::Space(_)
            | CallPart::Maybe { .. }
            | CallPart::Count
            | CallPart::Id { .. }
            | CallPart::Free(_)
            | CallPart::Params(_)
            | CallPart::Arguments,
        ) => Err(
            "call: it does not begin with a marker; expected a marker, {name} or {name, arguments}"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Checks that the spellings of a marker differ, and that opening and closing markers have equally
/// many.
fn spellings_fit(part: &CallPart) -> Result<(), String> {
    // If a text is cut after the shorter of two spellings, the longer spelling would be missed.
    let marks = part.marks().unwrap_or_default();
    let longer = |a: &&&str| marks.iter().any(|b| b != *a && b.starts_with(**a));
    if let Some(mark) = marks.iter().find(longer) {
        return Err(format!(
            "spellings: '{mark}' begins another spelling of its marker; expected none to"
        ));
    }
    match part {
        CallPart::Params(ParamForm {
            style: TagStyle::Plain { .. } | TagStyle::Attribute { .. },
            open,
            close,
            ..
        }) if open.len() != close.len() => Err(
            "spellings: the parameter's markers differ in number; expected as many of both"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Checks that call markers differ from reasoning markers and do not occur in ordinary text.
fn markers_fit(form: &Form, dialect: &Dialect) -> Result<(), String> {
    let openers = first(form.call);
    let reasoning = |mark: &&&str| {
        let mut pairs = dialect.framing.reasoning.iter();
        pairs.any(|(open, close)| mark == &open || mark == &close)
    };
    let section = form.section.iter().flat_map(|section| section.open);
    if let Some(mark) = openers.iter().chain(section).find(reasoning) {
        return Err(format!(
            "'{mark}' opens calls and is a marker of reasoning; expected different ones"
        ));
    }
    if form
        .section
        .as_ref()
        .is_some_and(|s| s.close.iter().any(|close| s.open.contains(close)))
    {
        return Err("calls: the same marker opens and closes them; expected two".to_owned());
    }
    let word =
        |mark: &&&str| mark.len() == 1 || mark.chars().all(char::is_alphanumeric) && mark.len() < 3;
    match openers.iter().find(word) {
        Some(mark) if form.scope == Scope::Anywhere => Err(format!(
            "call: '{mark}' is found in any text; expected a longer marker"
        )),
        _ => Ok(()),
    }
}
