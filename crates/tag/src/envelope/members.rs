//! What the members of an object mean: the name, the arguments and the id of a call.
//!
//! Members that the dialect does not have are kept until the object ends. Where the call has no
//! arguments by then, they are the arguments if the tool's schema agrees: one member with the name
//! that other APIs use, or all of them beside the name, as
//! <https://github.com/NousResearch/hermes-agent/issues/110436> has it. A call never runs without
//! what the model gave.

use crate::calls::{ArgumentsEnd, Context, FoundCalls, Why};
use crate::dialect::{CallKeys, CallShape};
use event::{Raw, cut};
use json::Balance;

/// The keys of the arguments in the calls of other APIs and agents: Anthropic's `input`, Gemini's
/// `args`, and their relatives.
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
/// The value of a member `type` that says that the object is a call.
const TYPES: [&str; 4] = ["function", "tool_use", "function_call", "tool_call"];
const LEFT_OUT: &str = "left out members that a call does not have";

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
    /// The members that the dialect does not have, as JSON with commas between.
    others: String,
    /// Where the last of them begins in `others`.
    last: usize,
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
            others: String::new(),
            last: 0,
            name: None,
            id: None,
            has_begun: false,
            has_arguments: false,
            is_deep: false,
        }
    }

    /// Whether the name of a tool was read that counts.
    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// An object begins.
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
            match self.has_arguments {
                true => MemberRole::Other,
                false => MemberRole::Arguments,
            }
        } else if self.keys.id.contains(&key) {
            MemberRole::Id
        } else if key == "function" {
            MemberRole::Function
        } else if context.strict && !matches!(key, "type" | "index") && !ARGUMENTS.contains(&key) {
            // Data of another kind shows by its first key, so that it is not held back.
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

    /// Whether the last member of `others` says nothing but that the object is a call, or which one.
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

    /// The arguments that the members beside the name are, if the tool's schema agrees. Without a
    /// list of tools an object counts that has one of the usual names.
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
    /// Leaves out the members beside the arguments, with a note. A parameter of the tool among them
    /// refuses the call: which of the two the model meant is unknown.
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
