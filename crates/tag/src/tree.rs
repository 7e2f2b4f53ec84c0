//! Elements inside elements, as the objects and arrays that a schema asks for: `<a><x>1</x></a>` is
//! `{"x":1}`.

use crate::dialect::params::ParamForm;
use crate::mark::{Match, starts};
use crate::params::element_name;
use json::{Conversion, JsonType, ValueType};

/// How deep elements may nest; deeper ones are text.
const MAX_DEPTH: u32 = 64;

/// Appends the JSON of the text of an element that consists of elements, where the schema asks for
/// an object or an array. `prefix` precedes each tag. An object has a member for each element; an
/// array has an item for each, whatever its name. Returns whether all values fit the schema;
/// `None`, with nothing appended, where the text or the schema is another.
pub(crate) fn convert(
    text: &str,
    prefix: &str,
    typed: &ValueType<'_>,
    form: &ParamForm,
    out: &mut String,
) -> Option<Conversion> {
    let start = out.len();
    let converted = Tree { prefix, form }.inside(text, typed, 0, out);
    if converted.is_none() {
        out.truncate(start);
    }
    converted
}

struct Tree<'a> {
    prefix: &'a str,
    form: &'a ParamForm,
}

impl Tree<'_> {
    fn inside(
        &self,
        text: &str,
        typed: &ValueType<'_>,
        depth: u32,
        out: &mut String,
    ) -> Option<Conversion> {
        let (object, array) = (
            typed.allows(JsonType::Object),
            typed.allows(JsonType::Array),
        );
        let bare = text.trim_ascii();
        if typed.only_string() || !(object || array) || depth >= MAX_DEPTH {
            return None;
        }
        if bare.is_empty() && typed.allows(JsonType::String) {
            return None;
        }
        let children = self.children(bare)?;
        let items = array && (!object || children.iter().all(|(name, _)| *name == "item"));
        let mut converted = Conversion::Fits;
        out.push(if items { '[' } else { '{' });
        for (n, (name, inner)) in children.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            let typed = if items {
                typed.items()
            } else {
                typed.property(name)
            };
            if !items {
                out.push_str(&event::quoted(name));
                out.push(':');
            }
            let whole = self.inside(inner, &typed, depth + 1, out);
            if whole.unwrap_or_else(|| typed.convert(&self.form.plain(inner), out))
                == Conversion::Misfit
            {
                converted = Conversion::Misfit;
            }
        }
        out.push(if items { ']' } else { '}' });
        Some(converted)
    }

    /// The elements that a text consists of: their names and their texts.
    fn children<'t>(&self, text: &'t str) -> Option<Vec<(&'t str, &'t str)>> {
        let mut rest = text;
        let mut children = Vec::new();
        while !rest.is_empty() {
            let tag = rest.strip_prefix(self.prefix)?.strip_prefix('<')?;
            let name = element_name(tag);
            let after = tag[name.len()..].trim_ascii_start();
            if name.is_empty() {
                return None;
            }
            if let Some(after) = after.strip_prefix("/>") {
                children.push((name, ""));
                rest = after.trim_ascii_start();
                continue;
            }
            let body = after.strip_prefix('>')?;
            let (inner, after) = self.body(name, body)?;
            children.push((name, inner));
            rest = after.trim_ascii_start();
        }
        Some(children)
    }

    /// The text before the closing tag that belongs to `name`, and the text after it. Elements of
    /// the same name may nest.
    fn body<'t>(&self, name: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
        let (open, close) = (
            format!("{}<{name}>", self.prefix),
            format!("{}</{name}>", self.prefix),
        );
        let first = open.as_bytes()[0];
        let (mut at, mut depth) = (0, 0);
        loop {
            at += memchr::memchr(first, &text.as_bytes()[at..])?;
            let rest = &text[at..];
            if let Match::Full(length) = starts(&close, rest) {
                if depth == 0 {
                    return Some((&text[..at], &rest[length..]));
                }
                depth -= 1;
            } else if rest.starts_with(&open) {
                depth += 1;
            } else if self.form.cdata && rest.starts_with("<![CDATA[") {
                at += rest.find("]]>")?;
            }
            at += 1;
        }
    }
}
