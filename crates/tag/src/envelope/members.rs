//! Interprets the members of an object: the name, the arguments and the id of a call.
//!
//! Members that the dialect does not define are kept until the object ends. If the call has no
//! arguments by then, these members are the arguments, provided that the tool's schema allows it:
//! either one member with the name that other APIs use, or all members next to the name, as in
//! <https://github.com/NousResearch/hermes-agent/issues/110436>. A call never runs with a part of
//! the model's input missing.

use crate::calls::{ArgumentsEnd, Context, FoundCalls, Why};
use crate::dialect::{CallKeys, CallShape};
use event::{Raw, cut};
use json::Balance;

/// The keys of the arguments in other APIs and agents: Anthropic's `input`, Gemini's `args`, and
/// similar keys.
const ARGUMENTS: [&str; 10] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "params",
    "argument",
    "parameter",
    "inputs",
    "tool_input",
    "kwargs",
];
/// Values of a member `type` that mark the object as a call.
const TYPES: [&str; 4] = ["function", "tool_use", "function_call", "tool_call"];
const LEFT_OUT: &str = "left out members that a call does not have";

/// The maximum length of a name, a key or an id, in bytes.
const LONGEST: usize = 512;
/// How many bytes of arguments are held back if they precede the name and nothing marks them as the
/// arguments of a call.
const KEPT: usize = 4096;

/// Why the text is not a call, and after how many bytes this is certain.
pub(super) type EnvelopeFailure = (usize, Why);

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberRole {
    Name,
    Arguments,
    Id,
    /// OpenAI's `"function": {"name": …}`: the inner object is the call.
    Function,
    Other,
}

/// How the end of a value is found.
pub(super) enum ValueKind {
    /// The value ends at its closing bracket or quotation mark.
    Balanced,
    /// The value ends before the first byte that cannot be part of a number, `true`, `false` or
    /// `null`.
    Word,
    /// The value is an object whose members belong to the call.
    Members,
}

/// The members of one object; see the module.
#[derive(Debug)]
pub(super) struct CallMembers {
    pub keys: &'static CallKeys,
    role: MemberRole,
    /// Whether the current object is inside the member `function`.
    pub is_nested: bool,
    /// Whether the current value is a string.
    is_string: bool,
    /// The current key, name, id or word so far, with its quotation marks.
    word: String,
    /// Arguments that are held back until the name arrives, or until the end of the string that
    /// contains them, as Granite 4 writes them (<https://github.com/vllm-project/vllm/pull/54964>).
    kept: String,
    /// The members that the dialect does not define, as JSON separated by commas.
    others: String,
    /// The offset of the last of these members in `others`.
    last: usize,
    name: Option<String>,
    id: Option<String>,
    /// Whether the call was emitted.
    has_begun: bool,
    has_arguments: bool,
    /// Whether arguments or a long value were read, whose content must not be parsed in another
    /// way.
    pub is_deep: bool,
}

impl CallMembers {
    /// Creates the state without members.
    pub(super) fn new(keys: &'static CallKeys) -> CallMembers {
        CallMembers {
            keys,
            role: MemberRole::Other,
            is_nested: false,
            is_string: false,
            word: String::new(),
            kept: String::new(),
            others: String::new(),
            last: 0,
            name: None,
            id: None,
            has_begun: false,
            has_arguments: false,
            is_deep: false,
        }
    }

    /// Whether the name of an accepted tool was read.
    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// Begins an object.
    pub(super) fn restart(&mut self) {
        self.clear_call();
        (self.has_arguments, self.is_deep) = (false, false);
    }

    fn clear_call(&mut self) {
        (self.name, self.id, self.has_begun) = (None, None, false);
        self.others.clear();
    }

    /// Whether each member is a call: `{NAME: ARGUMENTS}`.
    pub(super) fn is_single(&self) -> bool {
        self.keys.shape == CallShape::Single && !self.is_nested
    }

    /// Whether the bytes of the current value are arguments that are emitted as they arrive.
    #[inline]
    pub(super) fn is_streaming(&self) -> bool {
        self.role == MemberRole::Arguments && self.has_begun && !self.is_string
    }

    /// Begins a key or a word.
    pub(super) fn begin_word(&mut self) {
        self.word.clear();
    }

    /// Adds a piece of a key or a word.
    pub(super) fn add_to_word(&mut self, piece: &str) -> Result<(), EnvelopeFailure> {
        let room = LONGEST.saturating_sub(self.word.len());
        if piece.len() > room {
            return Err((cut(piece, room).len(), Why::LongWord));
        }
        self.word.push_str(piece);
        Ok(())
    }

    /// Completes the key.
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
            match self.has_arguments {
                true => MemberRole::Other,
                false => MemberRole::Arguments,
            }
        } else if self.keys.id.contains(&key) {
            MemberRole::Id
        } else if key == "function" {
            MemberRole::Function
        } else if context.strict && !matches!(key, "type" | "index") && !ARGUMENTS.contains(&key) {
            // Other data is recognized by its first key, so that it is not held back.
            return Err(Why::OtherMembers);
        } else {
            MemberRole::Other
        };
        if self.role == MemberRole::Other {
            self.last = self.others.len();
            self.others.push_str(if self.last > 0 { "," } else { "" });
            self.others.push_str(&self.word);
            self.others.push(':');
        }
        Ok(())
    }

    fn restart_call(&mut self, name: String) {
        self.clear_call();
        (self.name, self.has_arguments, self.role) = (Some(name), false, MemberRole::Arguments);
    }

    /// Reads the first byte of a value.
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
            // Some models write the name in place of the object.
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

    /// Adds a piece of a string or a container; the piece may end the value.
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
            MemberRole::Other => {
                let room = KEPT.saturating_sub(self.others.len());
                if context.strict && piece.len() > room {
                    return Err((cut(piece, room).len(), Why::OtherMembers));
                }
                self.others.push_str(piece);
                Ok(())
            }
            MemberRole::Function => Ok(()),
        }
    }

    /// Completes the value.
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
                // An id after the arguments would be taken for the id of another call.
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
            MemberRole::Other => {
                self.others.push_str(&self.word);
                self.word.clear();
                if self.frames() {
                    self.others.truncate(self.last);
                }
                Ok(())
            }
            MemberRole::Function => Ok(()),
        }
    }

    /// Whether the last member of `others` only says that the object is a call, or which call it
    /// is.
    fn frames(&self) -> bool {
        let member = format!("{{{}}}", self.others[self.last..].trim_start_matches(','));
        let Ok(member) = Raw::parse(&member) else {
            return false;
        };
        member.entries().all(|(key, value)| match key.as_ref() {
            "type" => value
                .str()
                .is_some_and(|kind| TYPES.contains(&kind.as_ref())),
            "index" => value.text().bytes().all(|c| c.is_ascii_digit()),
            _ => false,
        })
    }

    /// Returns the members next to the name as arguments if the tool's schema allows it. Without a
    /// list of tools, only an object with one of the usual names counts. Returns `None` otherwise.
    fn arguments_of_others(&self, context: &Context<'_>) -> Option<String> {
        let flat = format!("{{{}}}", self.others);
        let object = Raw::parse(&flat).ok()?;
        let name = context.known(self.name.as_deref()?)?;
        let parameters = context.tools.map(|tools| tools.parameters(name));
        let fits = |arguments: &str| {
            let tools = context.tools.filter(|tools| tools.knows(name));
            tools.is_none_or(|tools| tools.check(name, arguments).is_ok())
        };
        let declares = |key: &str| parameters.as_ref().is_some_and(|p| p.declares(key));
        if !context.strict && object.entries().all(|(key, _)| declares(&key)) && fits(&flat) {
            return Some(flat);
        }
        let mut entries = object.entries();
        let (Some((key, value)), None) = (entries.next(), entries.next()) else {
            return None;
        };
        let arguments = match value.str() {
            Some(string) => string.into_owned(),
            None => value.text().to_owned(),
        };
        let is_object =
            arguments.trim_ascii_start().starts_with('{') && Raw::parse(&arguments).is_ok();
        (ARGUMENTS.contains(&key.as_ref()) && is_object && fits(&arguments)).then_some(arguments)
    }

    fn end_arguments(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        self.has_arguments = true;
        if !self.word.is_empty() {
            // `null` means no arguments; the later check of the call judges any other word.
            let word = std::mem::take(&mut self.word);
            if self.is_single() && word != "null" {
                // The value ends the call here, so no later text could retract it.
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

    /// Emits the call once its name is known.
    fn begin(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        let Some(name) = self.name.as_deref() else {
            return Ok(());
        };
        let written = name;
        let name = context.known(name).ok_or_else(|| context.refusal(name))?;
        // A strict reading waits for the arguments, because any data may contain an object with a
        // name.
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

    /// Ends the object, outside `function`.
    pub(super) fn end(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        if self.keys.shape == CallShape::Single {
            return if self.has_arguments {
                Ok(())
            } else {
                Err(Why::EmptyObject)
            };
        }
        if !self.others.is_empty() && !self.has_arguments && self.name.is_some() {
            let arguments = self.arguments_of_others(context);
            self.kept = arguments.ok_or(Why::OtherMembers)?;
            self.has_arguments = true;
            match self.has_begun {
                true => calls.arguments_until(&self.kept, ArgumentsEnd::Here),
                false => self.begin(context, calls)?,
            }
            calls.note("read members that the dialect does not have as the arguments");
            self.kept.clear();
            self.others.clear();
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
        if !self.others.is_empty() {
            self.leave_out(context, calls)?;
        }
        calls.done();
        Ok(())
    }
    /// Drops the members next to the arguments, with a warning. If one of them is a parameter of
    /// the tool, or a second member of arguments that is not empty, the call is rejected, because
    /// it is unknown which of the two the model meant.
    fn leave_out(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Result<(), Why> {
        let others = format!("{{{}}}", std::mem::take(&mut self.others));
        let name = self.name.as_deref().and_then(|name| context.known(name));
        let parameters = context
            .tools
            .zip(name)
            .map(|(tools, name)| tools.parameters(name));
        let object = Raw::parse(&others).map_err(|_| Why::InvalidJson)?;
        for (key, value) in object.entries() {
            let key = key.as_ref();
            let is_empty = value.is_null()
                || value.entries().next().is_none() && value.text().starts_with('{');
            if (ARGUMENTS.contains(&key) || self.keys.arguments.contains(&key)) && !is_empty {
                return Err(Why::TwoArguments);
            }
            if parameters.as_ref().is_some_and(|p| p.declares(key)) {
                return Err(Why::OtherMembers);
            }
        }
        calls.note_of(LEFT_OUT, &others);
        Ok(())
    }
}
