//! Parses the notation of one call: `<tool_call>⏎{name, arguments}⏎</tool_call>?`.

use crate::dialect::{
    ArgumentStyle, CallKeys, CallPart, CallShape, ExpressionForm, FreeText, NameForm, ParamForm,
    StartTag,
};
use crate::notation::entry::{all, keep, marker, one};
use crate::notation::parameter::attribute;
use crate::notation::scan::{MarkerSpellings, NotationToken, scan};

/// The settings that the notation of a call refers to.
pub(super) struct More<'a> {
    pub spellings: &'a MarkerSpellings,
    pub parameter: Option<ParamForm>,
    /// The markers that end free text if no marker follows it.
    pub text_ends: Option<&'static [&'static str]>,
    pub text_escapes: &'static [(&'static str, &'static str)],
}

/// Parses the notation of a call.
pub(super) fn read(text: &str, more: &More<'_>) -> Result<&'static [CallPart], String> {
    let mut reader = CallReader {
        more,
        parts: Vec::new(),
    };
    let tokens = scan(text)?;
    let mut rest = &tokens[..];
    while !rest.is_empty() {
        rest = reader.next(rest)?;
    }
    let mut parts = reader.parts;
    for n in 0..parts.len() {
        let (before, behind) = parts.split_at_mut(n + 1);
        follow(&mut before[n], behind)?;
    }
    Ok(all(parts))
}

struct CallReader<'a> {
    more: &'a More<'a>,
    parts: Vec<CallPart>,
}

impl CallReader<'_> {
    /// Parses the next part, and returns the tokens after it.
    fn next<'t>(&mut self, tokens: &'t [NotationToken]) -> Result<&'t [NotationToken], String> {
        match tokens {
            [
                NotationToken::Text(open),
                NotationToken::Slot(slot),
                rest @ ..,
            ] if slot == "name" && attribute(open).is_some() => self.tag(open, rest),
            [NotationToken::Text(text), NotationToken::Maybe, rest @ ..] => {
                let marks = self.more.spellings.of(mark(text)?);
                self.parts.push(CallPart::Maybe { marks, write: true });
                Ok(rest)
            }
            [NotationToken::Text(text), rest @ ..] => {
                self.parts
                    .push(CallPart::Mark(self.more.spellings.of(mark(text)?)));
                Ok(rest)
            }
            [NotationToken::Unwritten(text), rest @ ..] => {
                let marks = self.more.spellings.of(mark(text)?);
                self.parts.push(CallPart::Maybe {
                    marks,
                    write: false,
                });
                Ok(rest)
            }
            [NotationToken::Space(space), rest @ ..] => {
                self.parts.push(CallPart::Space(keep(&**space)));
                Ok(rest)
            }
            [NotationToken::Cut, rest @ ..] => Ok(rest),
            [NotationToken::Maybe, ..] => {
                Err("'?' follows no marker; expected '\\?' for the character itself".to_owned())
            }
            [NotationToken::Slot(slot), NotationToken::Maybe, rest @ ..] if slot == "text" => {
                self.parts.push(self.free(true));
                Ok(rest)
            }
            [NotationToken::Slot(slot), rest @ ..] => self.slot(slot, false, rest),
            [NotationToken::List(slot), rest @ ..] => self.slot(slot, true, rest),
            [] => Ok(tokens),
        }
    }

    /// Parses a start tag with the name in an attribute; `open` is the beginning of the tag.
    fn tag<'t>(
        &mut self,
        open: &str,
        tokens: &'t [NotationToken],
    ) -> Result<&'t [NotationToken], String> {
        const WRONG: &str = "the start tag does not end; expected such as <f name=\"{name}\">";
        let (open, name) = attribute(open).ok_or(WRONG)?;
        let (text, rest) = match tokens {
            [
                NotationToken::Text(a),
                NotationToken::Slot(n),
                NotationToken::Text(b),
                rest @ ..,
            ] if n == "n" => (format!("{a}{{n}}{b}"), rest),
            [NotationToken::Text(text), rest @ ..] => (text.clone(), rest),
            _ => return Err(WRONG.to_owned()),
        };
        // The tag's other attributes end with the last quote.
        let text = text.strip_prefix('"').ok_or(WRONG)?;
        let (others, end) = text.split_at(text.rfind('"').map_or(0, |at| at + 1));
        let tag = StartTag {
            open: self.more.spellings.of(mark(open)?),
            end: keep(mark(end)?),
            name: keep(name),
            rest: keep(others),
        };
        self.parts.push(CallPart::Tag(one(tag)));
        Ok(rest)
    }

    fn slot<'t>(
        &mut self,
        slot: &str,
        list: bool,
        rest: &'t [NotationToken],
    ) -> Result<&'t [NotationToken], String> {
        let part = match slot {
            "arguments" => CallPart::Arguments,
            "parameters" => {
                const NONE: &str = "{parameters} without 'parameter'; expected both";
                CallPart::Params(one(self.more.parameter.ok_or(NONE)?))
            }
            "text" => self.free(false),
            "name" => CallPart::Name {
                until: &[],
                header: NameForm::Bare,
            },
            "functions.name:n" => CallPart::Name {
                until: &[],
                header: NameForm::Counted,
            },
            "author" => CallPart::Author { until: &[] },
            "id" => CallPart::Id { until: &[] },
            "count" => CallPart::Count,
            _ if slot.contains(['(', '{']) => CallPart::Expression(one(expression(slot, list)?)),
            _ => CallPart::Calls(one(keys(slot, list)?)),
        };
        // White space may surround parts that are more than a word.
        let (before, after) = match part {
            CallPart::Arguments | CallPart::Expression(_) | CallPart::Calls(_) => (true, true),
            CallPart::Params(_) => (false, true),
            _ => (false, false),
        };
        if before
            && matches!(
                self.parts.last(),
                Some(CallPart::Mark(_) | CallPart::Tag(_) | CallPart::Maybe { .. })
            )
        {
            self.parts.push(CallPart::Space(""));
        }
        self.parts.push(part);
        if after && matches!(rest.first(), Some(NotationToken::Text(_))) {
            self.parts.push(CallPart::Space(""));
        }
        Ok(rest)
    }

    fn free(&self, optional: bool) -> CallPart {
        let until = self.more.text_ends.unwrap_or_default();
        CallPart::Free(one(FreeText {
            until,
            optional,
            escapes: self.more.text_escapes,
        }))
    }
}

fn mark(text: &str) -> Result<&str, String> {
    marker(text)?;
    match text.trim() == text {
        true => Ok(text),
        false => Err(format!(
            "the marker '{text}' has white space at an end; expected ⏎, ␣ or · between it and what follows"
        )),
    }
}

/// Completes a part that ends where the next part begins.
fn follow(part: &mut CallPart, behind: &[CallPart]) -> Result<(), String> {
    match part {
        CallPart::Name { until, .. } | CallPart::Author { until } | CallPart::Id { until } => {
            let mut ends = Vec::new();
            beginnings(behind, &mut ends);
            if ends.is_empty() {
                return Err("nothing ends a name or id; expected a marker or ⏎ after it".to_owned());
            }
            *until = all(ends);
        }
        CallPart::Params(form) => {
            const NONE: &str =
                "{parameters} without a marker after it; expected the one that ends the call";
            let call_closers = next_marks(behind).ok_or(NONE)?;
            *form = one(ParamForm {
                call_closers,
                ..**form
            });
        }
        CallPart::Free(free) if free.until.is_empty() => {
            const NONE: &str = "{text} is followed by no marker; expected one, or 'text_ends'";
            let until = behind.first().and_then(CallPart::marks).ok_or(NONE)?;
            *free = one(FreeText { until, ..**free });
        }
        _ => {}
    }
    Ok(())
}

/// Collects the markers that may begin these parts, which follow a name.
fn beginnings(parts: &[CallPart], ends: &mut Vec<&'static str>) {
    for (n, part) in parts.iter().enumerate() {
        match part {
            CallPart::Mark(marks) => return ends.extend(*marks),
            CallPart::Maybe { marks, .. } => ends.extend(*marks),
            CallPart::Space(space) if space.contains('\n') => return ends.extend(LINE_ENDS),
            CallPart::Space(_) => {}
            CallPart::Arguments => return ends.push("{"),
            CallPart::Params(form) => {
                ends.extend(form.open);
                // Without parameters the call ends directly.
                ends.extend(next_marks(&parts[n + 1..]).unwrap_or_default());
                return ends.extend(LINE_ENDS);
            }
            _ => return,
        }
    }
}

/// The line endings.
const LINE_ENDS: [&str; 2] = ["\n", "\r\n"];

/// Returns the next required marker.
fn next_marks(parts: &[CallPart]) -> Option<&'static [&'static str]> {
    parts.iter().find_map(|part| match part {
        CallPart::Mark(marks) => Some(*marks),
        _ => None,
    })
}

/// Parses the members of a JSON call: `name, arguments`, `id, name, arguments`, `name: arguments`.
/// The parser of calls also accepts other common keys.
fn keys(slot: &str, list: bool) -> Result<CallKeys, String> {
    const EXPECTED: &str = "{name}, {id}, {arguments}, {parameters}, {text}, {name, arguments}, {id, name, arguments}, \
        [{name: arguments}], [{'name', 'arguments'}], {name(a=1)} or {name{a:\"x\"}}";
    let wrong = || format!("the slot {{{slot}}} is unknown; expected {EXPECTED}");
    let members: Vec<&str> = slot.split(',').map(str::trim).collect();
    let python = list
        && members
            .iter()
            .all(|word| word.len() > 2 && word.starts_with('\'') && word.ends_with('\''));
    let plain = if list {
        CallShape::Array
    } else {
        CallShape::Object
    };
    let (id, name, arguments, shape) = match members[..] {
        ["name: arguments"] if list => (None, "name", "arguments", CallShape::Single),
        [name, arguments] if python => (
            None,
            name.trim_matches('\''),
            arguments.trim_matches('\''),
            CallShape::PythonArray,
        ),
        [name, arguments] => (None, name, arguments, plain),
        [id, name, arguments] => (Some(id), name, arguments, plain),
        _ => return Err(wrong()),
    };
    let (id, write_id) = match id {
        Some(id) => (id.trim_end_matches('?'), !id.ends_with('?')),
        None => ("id", false),
    };
    let is_key = |key: &str| {
        !key.is_empty()
            && key
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    if ![id, name, arguments].into_iter().all(is_key) {
        return Err(wrong());
    }
    let spellings = |own: &str, usual: &[&'static str]| {
        let others = usual.iter().copied().filter(|key| *key != own);
        all(std::iter::once(keep(own)).chain(others).collect())
    };
    Ok(CallKeys {
        name: spellings(name, &["name"]),
        arguments: spellings(arguments, &["arguments", "parameters"]),
        id: spellings(id, &["id"]),
        write_id,
        shape,
    })
}

/// Parses a call expression given by an example: `name(a=1)`, `call:name{a:<|"|>x<|"|>}`. A list,
/// `[{…}]`, or lines, `{…⏎}`, may contain several calls.
fn expression(slot: &str, list: bool) -> Result<ExpressionForm, String> {
    let wrong = || {
        format!(
            "the call {{{slot}}} is not understood; expected such as {{name(a=1)}}, \
             {{name(a=1)⏎}} or {{name{{a:\"x\"}}}}"
        )
    };
    let one = slot.strip_suffix(['⏎', '\n']);
    let (prefix, rest) = one.unwrap_or(slot).split_once("name").ok_or_else(wrong)?;
    let (at, open) = rest
        .char_indices()
        .find(|(_, c)| matches!(c, '(' | '{'))
        .ok_or_else(wrong)?;
    let (suffix, arguments) = rest.split_at(at);
    let arguments = match arguments {
        "(a=1)" => ArgumentStyle::Python,
        _ => {
            let value = arguments
                .strip_prefix("{a:")
                .and_then(|a| a.strip_suffix('}'))
                .ok_or_else(wrong)?;
            let (quote, same) = value
                .split_once('x')
                .filter(|(quote, same)| quote == same)
                .ok_or_else(wrong)?;
            marker(same)?;
            ArgumentStyle::Gemma { quote: keep(quote) }
        }
    };
    let separators: &[char] = match (list, one) {
        (true, _) => &[','],
        (false, Some(_)) => &['\n', ';', ','],
        (false, None) => &[],
    };
    Ok(ExpressionForm {
        arguments,
        prefix: keep(prefix),
        suffix: keep(suffix),
        open,
        list,
        separators,
    })
}
