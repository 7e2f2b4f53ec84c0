//! Parses the notation of one tagged parameter: `⏎<parameter={name}>⏎{value}⏎</parameter>`.

use crate::dialect::{ParamForm, ParamPiece, TagStyle, Typing};
use crate::notation::entry::{all, keep};
use crate::notation::scan::NotationToken::{self, Cut, Slot, Space, Text};
use crate::notation::scan::{MarkerSpellings, scan};

/// Parses the notation of a parameter. The call determines what may follow the last parameter.
pub(super) fn read(text: &str, spellings: &MarkerSpellings) -> Result<ParamForm, String> {
    let tokens = scan(text)?;
    let piece = |token: &NotationToken| match token {
        Text(text) | Space(text) => Some(ParamPiece::Text(keep(&**text))),
        Slot(slot) => Some(ParamPiece::Slot(keep(&**slot))),
        _ => None,
    };
    let mut form = ParamForm {
        written: all(tokens.iter().filter_map(piece).collect()),
        open: &[],
        close: &[],
        style: TagStyle::Element { prefix: "" },
        call_closers: &[],
        is_xml: tokens.contains(&Slot("xml".to_owned())),
        typing: Typing::Schema,
        is_on_lines: false,
    };
    let (head, close) = around_value(&tokens, &mut form.is_on_lines)?;
    shape(&mut form, head, close, spellings)
        .ok_or_else(|| format!("'{text}' is not understood; expected {EXPECTED}"))?;
    Ok(form)
}

const EXPECTED: &str = "such as <p={name}>{value}</p>, <p name=\"{name}\">{value}</p>, <k>{name}</k>¦<v>{value}</v>, \
    <{name}>{value}</{name}> or [[{name}]]{value}[[/{name}]]";

/// Returns the tokens before and after the value, without white space at the ends.
fn around_value<'t>(
    tokens: &'t [NotationToken],
    is_on_lines: &mut bool,
) -> Result<(&'t [NotationToken], &'t [NotationToken]), String> {
    let is_value =
        |token: &NotationToken| matches!(token, Slot(slot) if slot == "value" || slot == "xml");
    let Some(at) = tokens.iter().position(is_value) else {
        return Err("it has no {value}; expected one".to_owned());
    };
    let head = &tokens[..at];
    let close = &tokens[at + 1..];
    let head = match head {
        [Space(_), head @ ..] => head,
        head => head,
    };
    match (head, close) {
        ([head @ .., Space(a)], [Space(b), close @ ..]) if a == b && a == "\n" => {
            *is_on_lines = true;
            Ok((head, close))
        }
        ([.., Space(_)], _) | (_, [Space(_), ..]) => {
            Err("expected ⏎ on both sides of {value}, or no white space".to_owned())
        }
        both => Ok(both),
    }
}

/// Sets the columns of a parameter with these tokens before and after its value.
fn shape(
    form: &mut ParamForm,
    head: &[NotationToken],
    close: &[NotationToken],
    spellings: &MarkerSpellings,
) -> Option<()> {
    let [Text(open), Slot(name), Text(end), more @ ..] = head else {
        return None;
    };
    let mut open = &**open;
    let mut is_fit = name == "name";
    form.style = match (attribute(open), more, close) {
        (_, [], [Text(close), Slot(b), Text(last)]) => {
            form.open = all(vec![keep(open)]);
            let element = open.strip_suffix('<');
            let element = element.filter(|prefix| close.strip_suffix("</") == Some(*prefix));
            form.style = match element.filter(|_| end == ">" && last == ">") {
                Some(prefix) => TagStyle::Element {
                    prefix: keep(prefix),
                },
                None => TagStyle::Repeated {
                    end: keep(&**end),
                    close: (keep(&**close), keep(&**last)),
                },
            };
            // A closing marker that equals an opening marker would begin another parameter.
            return (is_fit && b == "name" && &**close != open).then_some(());
        }
        (Some((tag, name)), [] | [Slot(_), Text(_)], _) => {
            let mut end = end;
            // `<p name="{name}" string="{is_string}">`, `<p name="{name}" type="{type}">`.
            if let [Slot(slot), Text(last)] = more {
                let (blank, own) = attribute(end.strip_prefix('"')?)?;
                is_fit &= blank.is_empty();
                form.typing = match &**slot {
                    "is_string" => Typing::Flag(keep(own)),
                    "type" => Typing::Named(keep(own)),
                    _ => return None,
                };
                end = last;
            }
            open = tag;
            TagStyle::Attribute {
                end: keep(end.strip_prefix('"')?),
                name: keep(name),
            }
        }
        (_, more, _) => {
            // An element with the name, an optional element with the type, and an element with the
            // value.
            let (kind, value) = match more {
                [] => (None, ""),
                [Space(_) | Cut, Text(value)] => (None, &**value),
                [
                    gap @ (Space(_) | Cut),
                    Text(kind),
                    Slot(b),
                    Text(end),
                    second,
                    Text(value),
                ] if b == "type" && gap == second => {
                    (Some((keep(&**kind), keep(&**end))), &**value)
                }
                _ => return None,
            };
            TagStyle::Plain {
                end: keep(&**end),
                kind,
                value: keep(value),
            }
        }
    };
    let [Text(close)] = close else {
        return None;
    };
    form.open = spellings.of(open);
    form.close = spellings.of(close);
    is_fit.then_some(())
}

/// Splits a text that ends with the opening of an attribute, such as `<p name="`, into the text
/// before the attribute and the attribute's name.
pub(super) fn attribute(text: &str) -> Option<(&str, &str)> {
    let (open, name) = text.strip_suffix("=\"")?.rsplit_once(' ')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    (!name.is_empty() && name.chars().all(plain)).then_some((open, name))
}
