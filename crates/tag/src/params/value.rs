//! Reads one value. The value is emitted as it arrives if it can only be a string, and held back
//! until its end if its type depends on its text.

use crate::calls::FoundCalls;
use crate::dialect::{ParamForm, TagStyle};
use crate::mark::{Match, starts};
use crate::params::element_name;
use crate::params::head::TypeHint;
use event::Raw;
use json::{Conversion, JsonType, ValueType};
use std::borrow::Cow;

const MISFIT: &str = "a value is not of the type that its parameter asks for and stays a string";

/// One value being read.
#[derive(Debug)]
pub(super) struct ParamValue {
    form: &'static ParamForm,
    hint: TypeHint,
    /// Whether the value is a string that is emitted as it arrives.
    is_streaming: bool,
    /// A line end that is removed if the value ends after it.
    pending: String,
    /// The text that is held back.
    held: String,
    /// The state at which the value may have ended: the length of `held`, and `pending`; `None`
    /// while the value has not ended.
    mark: Option<(usize, String)>,
    scratch: Vec<u8>,
}

impl ParamValue {
    /// Creates the value of a parameter with this hint and this schema.
    pub(super) fn new(
        form: &'static ParamForm,
        hint: TypeHint,
        typed: &ValueType<'_>,
        calls: &mut FoundCalls,
    ) -> ParamValue {
        let is_streaming = match hint {
            TypeHint::String => true,
            TypeHint::Json => false,
            TypeHint::Unknown => typed.only_string(),
        };
        if is_streaming {
            calls.arguments("\"");
        }
        ParamValue {
            form,
            hint,
            is_streaming,
            pending: String::new(),
            held: String::new(),
            mark: None,
            scratch: Vec::new(),
        }
    }

    /// Whether the value is emitted as it arrives. The caller must then decode its entities and
    /// CDATA sections first.
    pub(super) fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// Reads the next piece of the value's text.
    pub(super) fn text(&mut self, piece: &str, calls: &mut FoundCalls) {
        if piece.is_empty() {
            return;
        }
        if self.pending == "\r" && piece == "\n" {
            self.pending.push('\n');
            return;
        }
        let mut kept = piece;
        if self.form.is_on_lines {
            kept = kept.strip_suffix('\n').unwrap_or(kept);
            kept = kept.strip_suffix('\r').unwrap_or(kept);
        }
        self.keep_pending(calls);
        self.emit(kept, calls);
        self.pending.push_str(&piece[kept.len()..]);
    }

    /// Reads the next piece of a CDATA section, from which no line end is removed.
    pub(super) fn data(&mut self, piece: &str, calls: &mut FoundCalls) {
        self.keep_pending(calls);
        self.emit(piece, calls);
    }

    fn keep_pending(&mut self, calls: &mut FoundCalls) {
        if !self.pending.is_empty() {
            let mut pending = std::mem::take(&mut self.pending);
            self.emit(&pending, calls);
            pending.clear();
            self.pending = pending;
        }
    }

    fn emit(&mut self, piece: &str, calls: &mut FoundCalls) {
        if !self.is_streaming || self.mark.is_some() {
            self.held.push_str(piece);
        } else if !piece.is_empty() {
            self.scratch.clear();
            event::push_string(&mut self.scratch, piece);
            let inner = self
                .scratch
                .get(1..self.scratch.len() - 1)
                .unwrap_or_default();
            calls.arguments(std::str::from_utf8(inner).unwrap_or_default());
        }
    }

    /// Marks a possible end of the value: the text after it is held back.
    pub(super) fn suspend(&mut self) {
        self.mark
            .get_or_insert_with(|| (self.held.len(), self.pending.clone()));
    }

    /// Whether the value may have ended.
    pub(super) fn is_suspended(&self) -> bool {
        self.mark.is_some()
    }

    /// Continues the value, because it had not ended.
    pub(super) fn resume(&mut self, calls: &mut FoundCalls) {
        if self.mark.take().is_some() && self.is_streaming {
            let held = std::mem::take(&mut self.held);
            self.emit(&held, calls);
        }
    }

    /// Ends the value at the mark, because it had ended there.
    pub(super) fn cut(&mut self) {
        if let Some((length, pending)) = self.mark.take() {
            self.held.truncate(length);
            self.pending = pending;
        }
    }

    /// Completes the value.
    pub(super) fn end(mut self, typed: &ValueType<'_>, calls: &mut FoundCalls) {
        if self.pending == "\r" {
            self.keep_pending(calls);
        }
        if self.is_streaming {
            calls.arguments("\"");
        } else if self.convert(typed, &mut calls.text) == Conversion::Misfit {
            calls.wrote();
            calls.note(MISFIT);
        } else {
            calls.wrote();
        }
    }

    fn convert(&self, typed: &ValueType<'_>, out: &mut String) -> Conversion {
        // A value that may be a string keeps its bytes, including the tags.
        if let TagStyle::Element { prefix } = self.form.style
            && !typed.allows(JsonType::String)
            && let Some(converted) = tree(&self.held, prefix, typed, self.form, out)
        {
            return converted;
        }
        let text = self.form.plain(&self.held);
        if self.hint == TypeHint::Json {
            let bare = text.trim_ascii();
            if Raw::parse(bare).is_ok() {
                out.push_str(bare);
                return Conversion::Fits;
            }
            if !typed.is_known() {
                out.push_str(&event::quoted(&text));
                return Conversion::Misfit;
            }
        }
        typed.convert(&text, out)
    }
}

// Decodes entities and CDATA sections in values.

/// The markers of text in which closing markers do not count.
pub(super) const DATA: (&str, &str) = ("<![CDATA[", "]]>");

/// The maximum length of an entity, in bytes, as in `&#x10ffff;`.
const LONGEST: usize = 10;

/// Returns the length of the entity at the beginning of `text`, and the text that it stands for.
pub(super) fn entity(text: &str) -> Match<(usize, String)> {
    let Some(rest) = text.strip_prefix('&') else {
        return Match::No;
    };
    let end = rest
        .bytes()
        .take(LONGEST - 1)
        .position(|c| !c.is_ascii_alphanumeric() && c != b'#');
    match end {
        Some(end) if rest.as_bytes()[end] == b';' => {
            let length = end + 2;
            match quick_xml::escape::unescape(&text[..length]) {
                Ok(meant) => Match::Full((length, meant.into_owned())),
                Err(_) => Match::No,
            }
        }
        None if rest.len() < LONGEST - 1 => Match::Partial,
        _ => Match::No,
    }
}

impl ParamForm {
    /// Returns the text of a whole value with its entities and CDATA sections decoded.
    pub(crate) fn plain<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.is_xml || !(text.contains(DATA.0) || text.contains('&')) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['<', '&']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some((data, after)) = rest
                .strip_prefix(DATA.0)
                .and_then(|data| data.split_once(DATA.1))
            {
                out.push_str(data);
                rest = after;
                continue;
            }
            match entity(rest) {
                Match::Full((length, meant)) => {
                    out.push_str(&meant);
                    rest = &rest[length..];
                }
                _ => {
                    out.push_str(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

// Converts nested elements to the objects and arrays that a schema declares: `<a><x>1</x></a>`
// becomes `{"x":1}`.

/// The maximum nesting of elements; deeper elements are text.
const MAX_DEPTH: u32 = 64;

/// Appends the JSON of an element's text that consists of elements, if the schema declares an
/// object or an array. `prefix` precedes each tag. An object gets a member for each element; an
/// array gets an item for each element, regardless of its name. Returns whether all values fit the
/// schema, or `None`, with nothing appended, if the text or the schema does not qualify.
pub(super) fn tree(
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
        let object = typed.allows(JsonType::Object);
        let array = typed.allows(JsonType::Array);
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

    /// Returns the names and texts of the elements that a text consists of.
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

    /// Returns the text before the closing tag that matches `name`, and the text after the tag.
    /// Elements of the same name may nest.
    fn body<'t>(&self, name: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
        let open = format!("{}<{name}>", self.prefix);
        let close = format!("{}</{name}>", self.prefix);
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
            } else if self.form.is_xml && rest.starts_with(DATA.0) {
                at += rest.find(DATA.1)?;
            }
            at += 1;
        }
    }
}
