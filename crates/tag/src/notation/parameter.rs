//! How one tagged parameter is written: `⏎<parameter={name}>⏎{value}⏎</parameter>`.

use super::kept::keep;
use super::scan::NotationToken::{self, Cut, Slot, Space, Text};
use super::scan::scan;
use super::spellings::MarkerSpellings;
use crate::dialect::params::{ParamForm, Style, Trim, Typing};

/// Reads the notation of a parameter. The call decides what may follow the last one.
pub(super) fn read(text: &str, spellings: &MarkerSpellings) -> Result<ParamForm, String> {
    let mut tokens = scan(text)?;
    let mut before = String::new();
    if let Some(Space(space)) = tokens.first() {
        before.clone_from(space);
        tokens.remove(0);
    }
    let (round, xml) = value(&mut tokens)?;
    let (style, typing) = style(&tokens, spellings)
        .ok_or_else(|| format!("'{text}' is not understood; expected {EXPECTED}"))?;
    Ok(ParamForm {
        style,
        call_closers: &[],
        trim: if round.is_empty() {
            Trim::None
        } else {
            Trim::OneNewline
        },
        cdata: xml,
        entities: xml,
        typing,
        before: keep(before),
        round: keep(round),
    })
}

const EXPECTED: &str = "such as <p={name}>{value}</p>, <p name=\"{name}\">{value}</p>, <k>{name}</k>¦<v>{value}</v> or \
    <{name}>{value}</{name}>";

/// Removes the white space around the value. Gives that white space, and whether the value is XML
/// text.
fn value(tokens: &mut Vec<NotationToken>) -> Result<(String, bool), String> {
    let is_value =
        |token: &NotationToken| matches!(token, Slot(slot) if slot == "value" || slot == "xml");
    let Some(at) = tokens.iter().position(is_value) else {
        return Err("it has no {value}; expected one".to_owned());
    };
    let xml = tokens[at] == Slot("xml".to_owned());
    let round = match (
        at.checked_sub(1).and_then(|at| tokens.get(at)),
        tokens.get(at + 1),
    ) {
        (Some(Space(a)), Some(Space(b))) if a == b && a == "\n" => a.clone(),
        (Some(Space(_)), _) | (_, Some(Space(_))) => {
            return Err("expected ⏎ on both sides of {value}, or no white space".to_owned());
        }
        _ => return Ok((String::new(), xml)),
    };
    tokens.remove(at + 1);
    tokens.remove(at - 1);
    Ok((round, xml))
}

fn style(tokens: &[NotationToken], spellings: &MarkerSpellings) -> Option<(Style, Typing)> {
    let is = |slot: &String, name: &str| slot == name;
    Some(match tokens {
        [
            Text(open),
            Slot(a),
            Text(end),
            Slot(_),
            Text(close),
            Slot(b),
            Text(last),
        ] if is(a, "name") && is(b, "name") => {
            let prefix = open.strip_suffix('<')?;
            let same = end == ">" && last == ">" && close.strip_suffix("</")? == prefix;
            (
                Style::Element {
                    prefix: keep(prefix),
                },
                same.then_some(Typing::Schema)?,
            )
        }
        [Text(open), Slot(a), Text(end), Slot(_), Text(close)] if is(a, "name") => {
            match attribute(open) {
                Some((open, name)) => (
                    named(spellings, open, name, end.strip_prefix('"')?, close),
                    Typing::Schema,
                ),
                None => (
                    Style::Equals {
                        open: keep(&**open),
                        end: keep(&**end),
                        close: keep(&**close),
                    },
                    Typing::Schema,
                ),
            }
        }
        // `<p name="{name}" string="{is_string}">`, `<p name="{name}" type="{type}">`.
        [
            Text(open),
            Slot(a),
            Text(next),
            Slot(b),
            Text(end),
            Slot(_),
            Text(close),
        ] if is(a, "name") && attribute(open).is_some() => {
            let (open, name) = attribute(open)?;
            let (blank, flag) = attribute(next.strip_prefix('"')?)?;
            let typing = match &**b {
                "is_string" => Typing::Flag(keep(flag)),
                "type" => Typing::Named(keep(flag)),
                _ => return None,
            };
            (
                named(spellings, open, name, end.strip_prefix('"')?, close),
                blank.is_empty().then_some(typing)?,
            )
        }
        [
            Text(key),
            Slot(a),
            Text(key_end),
            gap @ (Space(_) | Cut),
            Text(value),
            Slot(_),
            Text(value_end),
        ] if is(a, "name") => {
            let (key, value) = (
                (keep(&**key), keep(&**key_end)),
                (keep(&**value), keep(&**value_end)),
            );
            (
                Style::Pair {
                    key,
                    kind: None,
                    value,
                    gap: written(gap),
                },
                Typing::Schema,
            )
        }
        [
            Text(key),
            Slot(a),
            Text(key_end),
            gap @ (Space(_) | Cut),
            Text(kind),
            Slot(b),
            Text(kind_end),
            second @ (Space(_) | Cut),
            Text(value),
            Slot(_),
            Text(value_end),
        ] if is(a, "name") && is(b, "type") && gap == second => {
            let (key, value) = (
                (keep(&**key), keep(&**key_end)),
                (keep(&**value), keep(&**value_end)),
            );
            let kind = Some((keep(&**kind), keep(&**kind_end)));
            (
                Style::Pair {
                    key,
                    kind,
                    value,
                    gap: written(gap),
                },
                Typing::Schema,
            )
        }
        _ => return None,
    })
}

fn named(spellings: &MarkerSpellings, open: &str, name: &str, end: &str, close: &str) -> Style {
    Style::Attribute {
        open: spellings.of(open),
        end: keep(end),
        close: spellings.of(close),
        name: keep(name),
    }
}

/// What is before an attribute that opens at the end of the text, and its name: `<p name="`.
pub(super) fn attribute(text: &str) -> Option<(&str, &str)> {
    let (open, name) = text.strip_suffix("=\"")?.rsplit_once(' ')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    (!name.is_empty() && name.chars().all(plain)).then_some((open, name))
}

fn written(gap: &NotationToken) -> &'static str {
    match gap {
        Space(space) => keep(&**space),
        _ => "",
    }
}
