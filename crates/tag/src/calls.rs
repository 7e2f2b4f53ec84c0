//! The calls that an engine finds, kept in order until they may be emitted.

use json::ToolList;

/// How much of the given text a reader consumed, and what it expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStep {
    /// The reader consumed this many bytes; the rest must be passed again at once.
    On(usize),
    /// The reader consumed this many bytes and needs more text. The rest may be the beginning of a
    /// marker or a word, and must be passed again, followed by more text.
    More(usize),
    /// A call is complete after this many bytes; the rest must be passed again at once.
    Whole(usize),
    /// The reader's input ends after this many bytes.
    Done(usize),
    /// The text must be passed again, from this many bytes before this piece.
    Back(usize),
    /// The text is invalid after this many bytes, for this reason.
    Fail(usize, Why),
}

impl ReadStep {
    /// Returns the same step for a text that begins `n` bytes earlier.
    pub(crate) fn after(self, n: usize) -> ReadStep {
        match self {
            ReadStep::On(m) => ReadStep::On(n + m),
            ReadStep::More(m) => ReadStep::More(n + m),
            ReadStep::Whole(m) => ReadStep::Whole(n + m),
            ReadStep::Done(m) => ReadStep::Done(n + m),
            ReadStep::Back(m) => m
                .checked_sub(n)
                .map_or_else(|| ReadStep::On(n - m), ReadStep::Back),
            ReadStep::Fail(m, why) => ReadStep::Fail(n + m, why),
        }
    }
}

/// The reasons why a text is not a call, each with the end of a sentence for a warning.
macro_rules! reasons {
    ($($reason:ident: $words:literal,)+) => {
        /// Why a text is not a call. The handling never depends on the wording.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Why {
            $(#[doc = $words] $reason,)+
            /// The arguments are not a literal, in the words of the literal reader.
            Literal(&'static str),
        }

        impl std::fmt::Display for Why {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Why::$reason => $words,)+
                    Why::Literal(words) => words,
                })
            }
        }
    };
}

// `NoCall` is a message without a call, which the dialect allows. It is the only reason that needs
// no warning.
reasons! {
    NoTool: "the tool is not in the list",
    InvalidName: "the name of the tool is invalid",
    NoNameEnd: "the name of the tool is not followed by the expected marker",
    NoCall: "the message contains no call",
    NoMark: "a marker of the dialect is missing",
    NoSection: "the opening marker of the section is missing",
    LongGap: "the white space before the next marker is too long",
    LongId: "the id is too long",
    NoIdEnd: "the id is not followed by its marker",
    NoTag: "the tag is missing",
    InvalidTag: "the start tag is invalid",
    NamelessTag: "the tag has no name",
    NoTaker: "the call has no name, and not exactly one tool takes its arguments",
    NoName: "the call has no name",
    TwoNames: "the call has two names",
    NameNotString: "the name is not a string",
    NoArguments: "the call has no arguments",
    TwoArguments: "the call has arguments twice",
    NotJsonObject: "the arguments are not a JSON object",
    NotObject: "the arguments are not an object",
    NotJsonString: "the arguments are a string that is not JSON",
    NameAfter: "the name does not follow the arguments",
    InvalidJson: "the JSON is invalid",
    InvalidKey: "a key is not a JSON string",
    LongWord: "a key, name or id in the JSON is too long",
    OtherMembers: "the JSON has members that a call does not have",
    InvalidFunction: "the member \"function\" is neither an object nor a name",
    EmptyObject: "an object contains no call",
    NoList: "the list of calls is missing",
    EmptyList: "the list contains no call",
    NoComma: "a call is followed by neither a comma nor the closing bracket",
    NoParameter: "neither a parameter nor the end of the call follows",
    TooManyParameters: "the input is free text, but the tool takes more than one string",
    EndInArguments: "the text ends inside the arguments",
    EndInCall: "the text ends before the call is complete",
}

impl Why {
    /// Whether a call failed at its name.
    pub(crate) fn is_about_name(self) -> bool {
        matches!(self, Why::NoTool | Why::InvalidName | Why::NoNameEnd)
    }
}

/// The request's data that an engine needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The tools of the request, or `None` if unknown.
    pub tools: Option<&'a ToolList>,
    /// Whether only a call of a listed tool counts, because the form also occurs in ordinary text.
    pub strict: bool,
}

impl Context<'_> {
    /// Whether a call of this name is read. Even if the tools are known, a call of an unlisted tool
    /// is read to its end, so that its content is not mistaken for a call; the parser then releases
    /// it as text.
    pub(crate) fn accepts(&self, name: &str) -> bool {
        match self.tools {
            Some(tools) if self.strict => tools.knows(name),
            Some(_) => !name.is_empty(),
            None => !self.strict && is_name(name),
        }
    }

    /// Returns why a name is not accepted.
    pub(crate) fn refusal(&self, name: &str) -> Why {
        if self.tools.is_some() && !name.is_empty() {
            Why::NoTool
        } else {
            Why::InvalidName
        }
    }

    /// Returns why a text cannot begin an accepted name.
    pub(crate) fn refusal_of_start(&self, start: &str) -> Why {
        if is_name(start) {
            self.refusal(start)
        } else {
            Why::NoNameEnd
        }
    }

    /// Whether the request lists a tool of this name.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.tools.is_some_and(|tools| tools.knows(name))
    }

    /// Returns the tool that a model means by this name, see [`ToolList::meant`]; without a list,
    /// the name without its namespace. Pass a name that is not the tool's own to
    /// [`FoundCalls::written`].
    pub(crate) fn known<'n>(&self, name: &'n str) -> Option<&'n str>
    where
        Self: 'n,
    {
        let meant = self.tools.and_then(|tools| tools.meant(name));
        meant.or_else(|| {
            let short = json::without_namespace(name);
            Some(short.unwrap_or(name)).filter(|name| self.accepts(name))
        })
    }

    /// Whether this can be the beginning of an accepted name.
    pub(crate) fn may_become(&self, start: &str) -> bool {
        let short = json::without_namespace(start);
        let begins = |start: &str| {
            self.tools
                .is_some_and(|tools| tools.names().any(|name| name.starts_with(start)))
        };
        let is_listed = || {
            json::NAMESPACES
                .iter()
                .any(|space| space.starts_with(start))
                || begins(start)
                || short.is_some_and(begins)
        };
        let has_form =
            || start.is_empty() || is_name(short.filter(|s| !s.is_empty()).unwrap_or(start));
        !self.strict && has_form() || self.tools.is_some() && is_listed()
    }
}

/// Whether a text is a valid tool name: 1 to 128 letters, digits and `_ - . : /`, beginning with a
/// letter or `_`.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= 128
        && name.chars().all(is_name_char)
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether a tool name may contain this character.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}

/// The message of the warning that contains a name as the model wrote it.
pub(crate) const NAME_REPAIRED: &str =
    "the name of the call is not a tool's, and is read as the one tool that it can mean";

/// A part of a call that an engine found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A call begins; its name ends at this offset in [`FoundCalls::text`].
    Name(usize),
    /// The call's id ends at this offset.
    Id(usize),
    /// A piece of the arguments ends at this offset; the second field says whether the arguments
    /// end here.
    Arguments(usize, ArgumentsEnd),
    /// The call is complete.
    Done,
    /// A problem of a call that can be parsed nevertheless: the code and the message of a warning.
    /// The text that the warning is about ends at this offset.
    Note(usize, &'static str, &'static str),
}

/// Where the arguments end, as far as the engine knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArgumentsEnd {
    /// The engine does not track the end; the arguments' brackets decide.
    #[default]
    Unknown,
    /// The arguments continue after the last piece.
    Later,
    /// The arguments end with the last piece.
    Here,
}

impl From<bool> for ArgumentsEnd {
    /// Converts the answer of an engine that knows whether the last piece ends the arguments.
    fn from(ends: bool) -> ArgumentsEnd {
        if ends {
            ArgumentsEnd::Here
        } else {
            ArgumentsEnd::Later
        }
    }
}

/// The calls that an engine found and that were not emitted yet, in one reused buffer.
#[derive(Debug, Default)]
pub(crate) struct FoundCalls {
    /// Where the last call's arguments end, relative to their next piece.
    pub end: ArgumentsEnd,
    /// The name that the model wrote for the next call; `None` if it is the tool's own name.
    pub written: Option<String>,
    /// The parts in order. The text of each part begins where the previous one ends.
    pub ops: Vec<Op>,
    /// The texts of all parts.
    pub text: String,
}

impl FoundCalls {
    /// Begins a call.
    pub(crate) fn begin(&mut self, name: &str, id: Option<&str>) {
        self.end = ArgumentsEnd::Unknown;
        self.text.push_str(name);
        self.ops.push(Op::Name(self.text.len()));
        if let Some(id) = id {
            self.text.push_str(id);
            self.ops.push(Op::Id(self.text.len()));
        }
        if let Some(written) = self.written.take() {
            self.text.push_str(&written);
            let note = Op::Note(self.text.len(), "name_repaired", NAME_REPAIRED);
            self.ops.push(note);
        }
    }

    /// Declares that the next call is for the listed tool `name`, which the model wrote as
    /// `written`.
    pub(crate) fn written(&mut self, written: &str, name: &str, context: &Context<'_>) {
        let differs = written != name && context.lists(name);
        self.written = differs.then(|| written.to_owned());
    }

    /// Adds the call's id if the id follows the name.
    pub(crate) fn id(&mut self, id: &str) {
        self.text.push_str(id);
        self.ops.push(Op::Id(self.text.len()));
    }

    /// Adds the next piece of the call's arguments, which together are the text of a JSON object.
    pub(crate) fn arguments(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.wrote();
        }
    }

    /// Adds the next piece of the arguments, for an engine that tracks their end.
    pub(crate) fn arguments_until(&mut self, piece: &str, end: ArgumentsEnd) {
        self.end = end;
        self.arguments(piece);
    }

    /// Adds the text that was appended to [`FoundCalls::text`] since the last part as the next
    /// piece of the arguments.
    pub(crate) fn wrote(&mut self) {
        let op = Op::Arguments(self.text.len(), self.end);
        match self.ops.last_mut() {
            Some(last @ Op::Arguments(..)) => *last = op,
            _ => self.ops.push(op),
        }
    }

    /// Marks the call as complete.
    pub(crate) fn done(&mut self) {
        self.ops.push(Op::Done);
    }

    /// Adds a warning about the call.
    pub(crate) fn note(&mut self, what: &'static str) {
        self.note_of(what, "");
    }

    /// Adds a warning about this text of the call, which the warning shows.
    pub(crate) fn note_of(&mut self, what: &'static str, text: &str) {
        self.text.push_str(text);
        self.ops.push(Op::Note(self.text.len(), "tag_note", what));
    }

    /// Removes all calls after they were emitted.
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.text.clear();
    }
}
