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

/// The position of a member in its line. `u32` is sufficient, because `--max-line` limits lines to
/// less than 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineSlot {
    pub key: (u32, u32),
    pub value: (u32, u32),
    pub key_escaped: bool,
    pub value_escaped: bool,
    pub field: LineField,
}

impl LineSlot {
    #[inline]
    pub(crate) fn value(self, line: &str) -> Raw<'_> {
        Raw::checked(
            &line[self.value.0 as usize..self.value.1 as usize],
            self.value_escaped,
        )
    }

    /// Returns the text between the quotes of a string, and whether it has escapes. Returns `None`
    /// if the value is not a string.
    #[inline(always)]
    pub(crate) fn string(self, line: &str) -> Option<(&str, bool)> {
        let start = self.value.0 as usize;
        let end = self.value.1 as usize;
        if line.as_bytes().get(start) != Some(&b'"') {
            return None;
        }
        line.get(start + 1..end - 1)
            .map(|inside| (inside, self.value_escaped))
    }

    #[inline]
    pub(crate) fn key(self, line: &str) -> Cow<'_, str> {
        if self.key_escaped {
            Raw::checked(&line[self.key.0 as usize..self.key.1 as usize], true)
                .str()
                .unwrap_or_default()
        } else {
            Cow::Borrowed(&line[self.key.0 as usize + 1..self.key.1 as usize - 1])
        }
    }

    #[inline]
    pub(crate) fn has_key(&self, line: &str, key: &str) -> bool {
        if self.key_escaped {
            self.key(line) == key
        } else {
            &line.as_bytes()[self.key.0 as usize + 1..self.key.1 as usize - 1] == key.as_bytes()
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
    pub(crate) fn iter(self) -> impl Iterator<Item = LineMember<'a>> {
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
        self.slot.value(self.line)
    }

    #[inline(always)]
    pub(crate) fn string(self) -> Option<(&'a str, bool)> {
        self.slot.string(self.line)
    }
}
