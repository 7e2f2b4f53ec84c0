//! What the members of an object mean: the name, the arguments and the id of a call.

use crate::calls::{ArgumentsEnd, Context, FoundCalls, Why};
use crate::dialect::{CallKeys, CallShape};
use event::{Raw, cut};
use json::Balance;

/// The longest name, key or id, in bytes.
const LONGEST: usize = 512;
/// How much of arguments is held back that come before a name, where nothing marks them as a
/// call's.
const KEPT: usize = 4096;

/// Why the text is not a call, and after how many bytes that is clear.
pub(super) type EnvelopeFailure = (usize, Why);

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberRole {
    Name,
    Arguments,
    Id,
    /// OpenAI's `"function": {"name": …}`: the object inside is the call.
    Function,
    Other,
}

/// How a value is read.
pub(super) enum ValueKind {
    /// To its closing bracket or quotation mark.
    Balanced,
    /// To the next byte that cannot be part of a number, `true`, `false` or `null`.
    Word,
    /// It is an object whose members are the call's.
    Members,
}

/// The members of one object; see the module.
#[derive(Debug)]
pub(super) struct CallMembers {
    pub keys: &'static CallKeys,
    role: MemberRole,
    /// Inside the member `function`.
    pub is_nested: bool,
    /// The value at hand is a string.
    is_string: bool,
    /// A key, name, id or word so far, with its quotation marks.
    word: String,
    /// Arguments that are held back: for a name, or for the end of the string that they are in, as
    /// Granite 4 writes them (<https://github.com/vllm-project/vllm/pull/54964>).
    kept: String,
    name: Option<String>,
    id: Option<String>,
    /// The call was emitted.
    has_begun: bool,
    has_arguments: bool,
    /// Arguments, or a value of some length, were read: what is inside them must not be read as
    /// something else.
    pub is_deep: bool,
}

impl CallMembers {
    /// No member.
    pub(super) fn new(keys: &'static CallKeys) -> CallMembers {
        CallMembers {
            keys,
            role: MemberRole::Other,
            is_nested: false,
            is_string: false,
            word: String::new(),
            kept: String::new(),
            name: None,
            id: None,
            has_begun: false,
            has_arguments: false,
            is_deep: false,
        }
    }

    /// An object begins.
    pub(super) fn restart(&mut self) {
        self.clear_call();
        (self.has_arguments, self.is_deep) = (false, false);
    }

    fn clear_call(&mut self) {
        (self.name, self.id, self.has_begun) = (None, None, false);
    }

    /// Whether each member is a call: `{NAME: ARGUMENTS}`.
    pub(super) fn is_single(&self) -> bool {
        self.keys.shape == CallShape::Single && !self.is_nested
    }

    /// Whether the bytes of the value at hand are arguments that are emitted as they come.
    #[inline]
    pub(super) fn is_streaming(&self) -> bool {
        self.role == MemberRole::Arguments && self.has_begun && !self.is_string
    }

    /// A key or a word begins.
    pub(super) fn begin_word(&mut self) {
        self.word.clear();
    }

    /// More of a key or a word.
    pub(super) fn add_to_word(&mut self, piece: &str) -> Result<(), EnvelopeFailure> {
        let room = LONGEST.saturating_sub(self.word.len());
        if piece.len() > room {
            return Err((cut(piece, room).len(), Why::LongWord));
        }
        self.word.push_str(piece);
        Ok(())
    }

    /// The key is complete.
    pub(super) fn end_key(
        &mut self,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), Why> {
        let key = Raw::parse(&self.word)
            .ok()
            .and_then(|raw| raw.str())
            .ok_or(Why::InvalidKey)?;
        let key = key.as_ref();
        self.role = if self.is_single() {
            let name = key.to_owned();
            self.restart_call(name);
            self.begin(context, calls)?;
            MemberRole::Arguments
        } else if self.keys.name.contains(&key) {
            MemberRole::Name
        } else if self.keys.arguments.contains(&key) {
            if self.has_arguments {
                MemberRole::Other
            } else {
                MemberRole::Arguments
            }
        } else if self.keys.id.contains(&key) {
            MemberRole::Id
        } else if key == "function" {
            MemberRole::Function
        } else if context.strict && !matches!(key, "type" | "index") {
            // Data of another kind shows by its first key, so that it is not held back.
            return Err(Why::OtherMembers);
        } else {
            MemberRole::Other
        };
        Ok(())
    }

    fn restart_call(&mut self, name: String) {
        self.clear_call();
        (self.name, self.has_arguments, self.role) = (Some(name), false, MemberRole::Arguments);
    }

    /// The first byte of a value.
    pub(super) fn begin_value(
        &mut self,
        first: u8,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<ValueKind, Why> {
        self.word.clear();
        self.is_string = first == b'"';
        let is_balanced = Balance::begins(first);
        match (self.role, first) {
            (MemberRole::Function, b'{') if !self.is_nested => {
                self.is_nested = true;
                return Ok(ValueKind::Members);
            }
            // Some models write the name there.
            (MemberRole::Function, b'"') => self.role = MemberRole::Name,
            (MemberRole::Function, _) => {
                return Err(Why::InvalidFunction);
            }
            (MemberRole::Name | MemberRole::Id, _) if !self.is_string && is_balanced => {
                return Err(Why::NameNotString);
            }
            (MemberRole::Arguments, _) if context.strict && !matches!(first, b'{' | b'"') => {
                return Err(Why::NotObject);
            }
            (MemberRole::Arguments, _) if !self.is_string => self.begin(context, calls)?,
            _ => {}
        }
        self.is_deep |= is_balanced && (self.role == MemberRole::Arguments || !self.is_string);
        Ok(if is_balanced {
            ValueKind::Balanced
        } else {
            ValueKind::Word
        })
    }

    /// More of a string or a container, and whether it ends with this.
    pub(super) fn add(
        &mut self,
        piece: &str,
        ends: bool,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), EnvelopeFailure> {
        match self.role {
            MemberRole::Name | MemberRole::Id => self.add_to_word(piece),
            MemberRole::Arguments if self.is_streaming() => {
                calls.arguments_until(piece, ends.into());
                Ok(())
            }
            MemberRole::Arguments => {
                let room = KEPT.saturating_sub(self.kept.len());
                if context.strict && !self.has_begun && piece.len() > room {
                    return Err((cut(piece, room).len(), Why::NameAfter));
                }
                self.kept.push_str(piece);
                Ok(())
            }
            MemberRole::Function | MemberRole::Other => Ok(()),
        }
    }

    /// The value is complete.
    pub(super) fn end_value(
        &mut self,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), Why> {
        match self.role {
            MemberRole::Name => {
                let name = Raw::parse(&self.word)
                    .ok()
                    .and_then(|raw| raw.str())
                    .ok_or(Why::NameNotString)?;
                if self.name.is_some() {
                    return Err(Why::TwoNames);
                }
                self.name = Some(name.into_owned());
                self.begin(context, calls)
            }
            MemberRole::Id => {
                let id = Raw::parse(&self.word).ok();
                self.id = id.map(|raw| {
                    raw.str()
                        .map_or_else(|| raw.text().to_owned(), |s| s.into_owned())
                });
                self.id.take_if(|id| id.is_empty() || id == "null");
                // After the arguments it would be taken for the id of another call.
                if let Some(id) = self
                    .id
                    .as_deref()
                    .filter(|_| self.has_begun && !self.has_arguments)
                {
                    calls.id(id);
                }
                Ok(())
            }
            MemberRole::Arguments => self.end_arguments(context, calls),
            MemberRole::Function | MemberRole::Other => Ok(()),
        }
    }

    fn end_arguments(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        self.has_arguments = true;
        if !self.word.is_empty() {
            // `null` means no arguments; whoever checks the call judges any other word.
            let word = std::mem::take(&mut self.word);
            if self.is_single() && word != "null" {
                // The value ends the call here, so that nothing after it could take it back.
                return Err(Why::NotObject);
            }
            self.kept
                .push_str(if word == "null" { "{}" } else { &word });
        } else if self.is_string {
            let text = Raw::parse(&self.kept)
                .ok()
                .and_then(|raw| raw.str())
                .map(|s| s.into_owned());
            let Some(text) = text else {
                return Err(Why::NotJsonString);
            };
            if context.strict && !text.trim_start().starts_with('{') {
                return Err(Why::NotObject);
            }
            self.kept = if text.trim().is_empty() {
                "{}".to_owned()
            } else {
                text
            };
            self.begin(context, calls)?;
        }
        if self.has_begun && !self.kept.is_empty() {
            calls.arguments_until(&self.kept, ArgumentsEnd::Here);
            self.kept.clear();
        }
        if self.is_single() {
            calls.done();
            self.clear_call();
        }
        Ok(())
    }

    /// Emits the call, once its name is known.
    fn begin(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        let Some(name) = self.name.as_deref() else {
            return Ok(());
        };
        let written = name;
        let name = context.known(name).ok_or_else(|| context.refusal(name))?;
        // A strict reading waits for the arguments: any data may have an object with a name.
        if self.has_begun
            || (context.strict && self.role != MemberRole::Arguments && !self.has_arguments)
        {
            return Ok(());
        }
        calls.written(written, name, context);
        calls.begin(name, self.id.as_deref());
        self.has_begun = true;
        if self.has_arguments {
            calls.arguments_until(&self.kept, ArgumentsEnd::Here);
            self.kept.clear();
        }
        Ok(())
    }

    /// The object has ended, outside `function`.
    pub(super) fn end(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        if self.keys.shape == CallShape::Single {
            return if self.has_arguments {
                Ok(())
            } else {
                Err(Why::EmptyObject)
            };
        }
        if !self.has_begun {
            return Err(Why::NoName);
        }
        if !self.has_arguments {
            if context.strict {
                return Err(Why::NoArguments);
            }
            calls.arguments_until("{}", ArgumentsEnd::Here);
        }
        calls.done();
        Ok(())
    }
}
