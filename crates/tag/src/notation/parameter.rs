//! How one tagged parameter is written: `⏎<parameter={name}>⏎{value}⏎</parameter>`.

use crate::dialect::{ParamForm, Style, Typing};
use crate::notation::entry::keep;
use crate::notation::scan::NotationToken::{self, Cut, Slot, Space, Text};
use crate::notation::scan::{MarkerSpellings, scan};

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
        is_xml: xml,
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
    let kept = |a: &String, b: &String| (keep(&**a), keep(&**b));
    let is_name = |slot: &String| slot == "name";
    match tokens {
        [
            Text(open),
            Slot(a),
            Text(end),
            Slot(_),
            Text(close),
            Slot(b),
            Text(last),
        ] if is_name(a) && is_name(b) => {
            let prefix = open.strip_suffix('<')?;
            let same = end == ">" && last == ">" && close.strip_suffix("</")? == prefix;
            let prefix = keep(prefix);
            same.then_some((Style::Element { prefix }, Typing::Schema))
        }
        [Text(open), Slot(a), Text(end), Slot(_), Text(close)] if is_name(a) => {
            let style = match attribute(open) {
                Some((open, name)) => named(spellings, open, name, end, close)?,
                None => {
                    let (open, end) = kept(open, end);
                    let close = keep(&**close);
                    Style::Equals { open, end, close }
                }
            };
            Some((style, Typing::Schema))
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
        ] if is_name(a) && attribute(open).is_some() => {
            let (open, name) = attribute(open)?;
            let (blank, flag) = attribute(next.strip_prefix('"')?)?;
            let typing = match &**b {
                "is_string" => Typing::Flag(keep(flag)),
                "type" => Typing::Named(keep(flag)),
                _ => return None,
            };
            let style = named(spellings, open, name, end, close)?;
            blank.is_empty().then_some((style, typing))
        }
        _ => pair(tokens),
    }
}

/// An element with the name, perhaps one with the type, and one with the value.
fn pair(tokens: &[NotationToken]) -> Option<(Style, Typing)> {
    let kept = |a: &String, b: &String| (keep(&**a), keep(&**b));
    let [
        Text(key),
        Slot(name),
        Text(key_end),
        gap @ (Space(_) | Cut),
        kind @ ..,
        Text(value),
        Slot(_),
        Text(value_end),
    ] = tokens
    else {
        return None;
    };
    let kind = match kind {
        [] => None,
        [Text(kind), Slot(b), Text(end), second] if b == "type" && gap == second => {
            Some(kept(kind, end))
        }
        _ => return None,
    };
    let gap = match gap {
        Space(space) => keep(&**space),
        _ => "",
    };
    let style = Style::Pair {
        key: kept(key, key_end),
        kind,
        value: kept(value, value_end),
        gap,
    };
    (name == "name").then_some((style, Typing::Schema))
}

/// Tags with the name in an attribute, where the quotation mark after the name begins `end`.
fn named(
    spellings: &MarkerSpellings,
    open: &str,
    name: &str,
    end: &str,
    close: &str,
) -> Option<Style> {
    Some(Style::Attribute {
        open: spellings.of(open),
        end: keep(end.strip_prefix('"')?),
        close: spellings.of(close),
        name: keep(name),
    })
}

/// What is before an attribute that opens at the end of the text, and its name: `<p name="`.
pub(super) fn attribute(text: &str) -> Option<(&str, &str)> {
    let (open, name) = text.strip_suffix("=\"")?.rsplit_once(' ')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    (!name.is_empty() && name.chars().all(plain)).then_some((open, name))
}
