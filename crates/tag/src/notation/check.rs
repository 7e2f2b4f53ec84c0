//! What holds for every dialect.

use crate::dialect::params::Style;
use crate::dialect::{CallPart, Dialect, Form, Scope};

/// That the dialect can be read and written.
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
    let parts = form.call;
    let count = |is: fn(&CallPart) -> bool| parts.iter().filter(|part| is(part)).count();
    let bodies = count(|part| {
        matches!(
            part,
            CallPart::Arguments
                | CallPart::Calls(_)
                | CallPart::Params(_)
                | CallPart::Expression(_)
                | CallPart::Free(_)
        )
    });
    let named = count(|part| matches!(part, CallPart::Calls(_) | CallPart::Expression(_)));
    let names = count(|part| matches!(part, CallPart::Name { .. } | CallPart::Tag(_)));
    if bodies != 1 {
        return Err(format!(
            "call: it has the arguments {bodies} times; expected one of {{arguments}}, {{parameters}}, \
            {{text}}, {{name, arguments}} and an expression such as {{name(a=1)}}"
        ));
    }
    // In dialects with messages the header may hold the name.
    if named + names != 1 && !(dialect.framing.messages && names == 1) {
        return Err(format!(
            "call: it has the name {} times; expected one",
            named + names
        ));
    }
    let body = |part: &CallPart| {
        matches!(
            part,
            CallPart::Arguments | CallPart::Params(_) | CallPart::Free(_)
        )
    };
    let name = parts
        .iter()
        .position(|part| matches!(part, CallPart::Name { .. } | CallPart::Tag(_)));
    if name
        .zip(parts.iter().position(body))
        .is_some_and(|(name, body)| name > body)
    {
        return Err("call: the name follows the arguments; expected it before them".to_owned());
    }
    if form.body().is_some() && !dialect.framing.messages {
        return Err(
            "call: it has the header of a message; expected 'messages = true' beside it".to_owned(),
        );
    }
    let begins_with = parts.get(form.body().unwrap_or(0).saturating_sub(1));
    if matches!(
        begins_with,
        Some(
            CallPart::Space(_)
                | CallPart::Maybe { .. }
                | CallPart::Count
                | CallPart::Id { .. }
                | CallPart::Free(_)
                | CallPart::Params(_)
                | CallPart::Arguments
        )
    ) {
        return Err(
            "call: it begins with nothing that marks it; expected a marker, {name} or {name, arguments}".to_owned()
        );
    }
    for part in parts {
        match part {
            // Where a text is cut after the shorter of two spellings, the longer one would not be
            // seen.
            CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => {
                let longer = |a: &&&str| marks.iter().any(|b| b != *a && b.starts_with(**a));
                if let Some(mark) = marks.iter().find(longer) {
                    return Err(format!(
                        "spellings: '{mark}' begins another spelling of its marker; expected none to"
                    ));
                }
            }
            CallPart::Params(form) => {
                if let Style::Attribute { open, close, .. } = form.style
                    && open.len() != close.len()
                {
                    return Err(
                        "spellings: the parameter's markers differ in number; expected as many of both".to_owned()
                    );
                }
            }
            _ => {}
        }
    }
    let openers: &[&str] = match parts.first() {
        Some(CallPart::Mark(marks)) => marks,
        Some(CallPart::Tag(tag)) => tag.open,
        _ => &[],
    };
    let reasoning = |mark: &&&str| {
        dialect
            .framing
            .reasoning
            .iter()
            .any(|(open, close)| mark == &open || mark == &close)
    };
    let section = form.section.iter().flat_map(|section| section.open);
    if let Some(mark) = openers.iter().chain(section).find(reasoning) {
        return Err(format!(
            "'{mark}' opens calls and is a marker of reasoning; expected different ones"
        ));
    }
    if form.section.as_ref().is_some_and(|section| {
        section
            .close
            .iter()
            .any(|close| section.open.contains(close))
    }) {
        return Err("calls: the same marker opens and closes them; expected two".to_owned());
    }
    let word =
        |mark: &&&str| mark.len() == 1 || mark.chars().all(char::is_alphanumeric) && mark.len() < 3;
    if let Some(mark) = openers
        .iter()
        .find(word)
        .filter(|_| form.scope == Scope::Anywhere)
    {
        return Err(format!(
            "call: '{mark}' is found in any text; expected a longer marker"
        ));
    }
    Ok(())
}
