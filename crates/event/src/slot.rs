//! The positions of the members of a line.

use crate::Raw;
use std::borrow::Cow;

/// The fields of the most frequent events. The scanner identifies them while it parses a line, so
/// that machines do not compare keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineField {
    Text,
    Index,
    ToolId,
    ToolName,
    Arguments,
    Done,
    Provider,
    /// Any other field; it is identified by its key.
    Other,
}

impl LineField {
    /// Returns the field that a key names.
    #[inline]
    pub(crate) const fn of(key: &[u8]) -> LineField {
        match key {
            b"text" => LineField::Text,
            b"index" => LineField::Index,
            b"tool_id" => LineField::ToolId,
            b"tool_name" => LineField::ToolName,
            b"arguments" => LineField::Arguments,
            b"done" => LineField::Done,
            b"provider" => LineField::Provider,
            _ => LineField::Other,
        }
    }
}

/// The position of a value in its line. `u32` is sufficient, because `--max-line` limits lines to
/// less than 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineValue {
    pub start: u32,
    pub end: u32,
    pub is_escaped: bool,
}

/// The position of a member in its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineSlot {
    pub value: LineValue,
    /// The distances, in bytes, from the start and from the end of the key to the start of the
    /// value. They are the same in all lines of a template.
    pub key: (u32, u32),
    pub key_escaped: bool,
    pub field: LineField,
}

impl LineValue {
    #[inline]
    pub(crate) fn get(self, line: &str) -> Raw<'_> {
        Raw::checked(
            &line[self.start as usize..self.end as usize],
            self.is_escaped,
        )
    }

    /// Returns the text between the quotes of a string, and whether it has escapes. Returns `None`
    /// if the value is not a string.
    #[inline(always)]
    pub(crate) fn string(self, line: &str) -> Option<(&str, bool)> {
        let start = self.start as usize;
        let end = self.end as usize;
        if line.as_bytes().get(start) != Some(&b'"') {
            return None;
        }
        line.get(start + 1..end - 1)
            .map(|inside| (inside, self.is_escaped))
    }

    /// Returns the length of a string without escapes, and without its quotes. Returns `None` for
    /// any other value.
    #[inline(always)]
    pub(crate) fn plain_len(self, line: &str) -> Option<usize> {
        let is_plain = !self.is_escaped && line.as_bytes().get(self.start as usize) == Some(&b'"');
        is_plain.then(|| (self.end - self.start) as usize - 2)
    }
}

impl LineSlot {
    #[inline(always)]
    fn key_bounds(&self) -> (usize, usize) {
        let (start, end) = self.key;
        let value = self.value.start;
        ((value - start) as usize, (value - end) as usize)
    }

    #[inline]
    pub(crate) fn key(self, line: &str) -> Cow<'_, str> {
        let (start, end) = self.key_bounds();
        if self.key_escaped {
            Raw::checked(&line[start..end], true)
                .str()
                .unwrap_or_default()
        } else {
            Cow::Borrowed(&line[start + 1..end - 1])
        }
    }

    #[inline]
    pub(crate) fn has_key(&self, line: &str, key: &str) -> bool {
        if self.key_escaped {
            self.key(line) == key
        } else {
            let (start, end) = self.key_bounds();
            &line.as_bytes()[start + 1..end - 1] == key.as_bytes()
        }
    }
}

/// The members of a line, without `type` and the members that any event can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineMembers<'a> {
    pub line: &'a str,
    pub slots: &'a [LineSlot],
}

impl<'a> LineMembers<'a> {
    #[inline]
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = LineMember<'a>> {
        self.slots.iter().map(move |slot| LineMember {
            line: self.line,
            slot,
        })
    }
}

/// One member of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineMember<'a> {
    line: &'a str,
    slot: &'a LineSlot,
}

impl<'a> LineMember<'a> {
    /// Whether this member has the key `name`. `field` must be the result of [`LineField::of`] for
    /// `name`.
    #[inline(always)]
    pub(crate) fn is(self, field: LineField, name: &str) -> bool {
        self.slot.field == field
            && (field != LineField::Other || self.slot.has_key(self.line, name))
    }

    #[inline(always)]
    pub(crate) fn value(self) -> Raw<'a> {
        self.slot.value.get(self.line)
    }

    #[inline(always)]
    pub(crate) fn string(self) -> Option<(&'a str, bool)> {
        self.slot.value.string(self.line)
    }
}
