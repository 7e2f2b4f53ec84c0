//! The keys of one form: how calls are written, one after the other, and where they may begin.

use super::entry::{Fault, NotationRow};
use super::kept::{all, around, keep, marker};
use super::spellings::MarkerSpellings;
use super::{call, parameter};
use crate::dialect::params::ParamForm;
use crate::dialect::{CallPart, Form, KnownTool, Scope, Section};

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
/// The most forms of a dialect.
const MAX_FORMS: usize = 16;

/// What is before, between and after two calls.
type Around = (&'static str, &'static str, &'static str);

/// The forms of a dialect: its own, and those in `also`, which have its `calls` and `parameter`
/// unless they give theirs. `None` where it gives none. `begins`: they count only where a message
/// begins.
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
    let (calls, parameter) = (calls(row)?, parameters(row, &spellings)?);
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
    // Without a marker a call can be distinguished from text only where a message begins, and by a
    // known tool.
    let bare = !marked && section.is_none();
    let scope = match row.flag("line_start")? {
        _ if bare || begins => Scope::Message,
        Some(true) => Scope::Line,
        _ => Scope::Anywhere,
    };
    let known = row.flag("known_tools")?.unwrap_or(bare);
    let form = Form {
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

/// The markers around all calls, if there are any.
fn section(
    open: &str,
    between: &'static str,
    close: &str,
    optional: bool,
    spellings: &MarkerSpellings,
) -> Result<Option<Section>, String> {
    let (open, close) = (
        unspaced(open, str::trim_end),
        unspaced(close, str::trim_start),
    );
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

/// A marker without the white space at one end, and that white space.
fn unspaced(text: &str, trim: impl Fn(&str) -> &str) -> (&str, String) {
    let marker = trim(text);
    (marker, text.replacen(marker, "", 1))
}

/// A tag that is escaped in free text, as `ESCAPE means TAG`.
fn escape(text: &str) -> Result<(&'static str, &'static str), String> {
    let (escape, tag) = text
        .split_once(" means ")
        .ok_or_else(|| format!("'{text}' is not an escape; expected such as '[[a]] means <a>'"))?;
    Ok((marker(escape)?, marker(tag)?))
}
