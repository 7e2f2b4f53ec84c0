//! The calls that an engine finds while it reads, kept in order until they may be emitted.

use json::ToolList;

/// How far a reader came in the text that it was given, and what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStep {
    /// It took this many bytes; the rest is given again at once.
    On(usize),
    /// It took this many bytes and needs more. The rest, if there is one, may be the beginning of a
    /// marker or of a word: it is given again with more text after it.
    More(usize),
    /// A call is complete after this many bytes; the rest is given again at once.
    Whole(usize),
    /// What it reads ends after this many bytes.
    Done(usize),
    /// The text is given again from this many bytes before this piece.
    Back(usize),
    /// After this many bytes the text is not what the reader expects, for this reason.
    Fail(usize, Why),
}

impl ReadStep {
    /// The same step for a text that begins `n` bytes before.
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

/// The reasons why a text is not a call, each with its words: the end of a sentence, for a warning.
macro_rules! reasons {
    ($($reason:ident: $words:literal,)+) => {
        /// Why a text is not a call. What is done about it never depends on the words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Why {
            $(#[doc = $words] $reason,)+
            /// The arguments are not a literal, in the words of its reader.
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

// `NoCall` is a message without a call, as the dialect allows: the one reason that needs no warning.
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

/// What an engine needs of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The tools of the request, where they are known.
    pub tools: Option<&'a ToolList>,
    /// The form is found in ordinary text, too, so that only a call of a listed tool counts.
    pub strict: bool,
}

impl Context<'_> {
    /// Whether a call of this name is read. Where the tools are known, a call of another name is
    /// read to its end, too, so that nothing inside it is taken for a call; the parser then
    /// releases it as text.
    pub(crate) fn accepts(&self, name: &str) -> bool {
        match self.tools {
            Some(tools) if self.strict => tools.knows(name),
            Some(_) => !name.is_empty(),
            None => !self.strict && is_name(name),
        }
    }

    /// The reason why a name is not accepted.
    pub(crate) fn refusal(&self, name: &str) -> Why {
        if self.tools.is_some() && !name.is_empty() {
            Why::NoTool
        } else {
            Why::InvalidName
        }
    }

    /// The reason why the beginning of a text cannot become an accepted name.
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

    /// The tool that a model means by this name, see [`ToolList::meant`]; without a list the name
    /// without a namespace. [`FoundCalls::written`] has to know of a name that is not the tool's.
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

/// Whether a text has the form of a tool's name: 1 to 128 letters, digits and `_ - . : /`, with a
/// letter or `_` first.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= 128
        && name.chars().all(is_name_char)
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether the name of a tool may have this character.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}

/// What the warning says that has a name as the model wrote it.
pub(crate) const NAME_REPAIRED: &str =
    "the name of the call is not a tool's, and is read as the one tool that it can mean";

/// A part of a call that an engine found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A call begins: its name ends here in [`FoundCalls::text`].
    Name(usize),
    /// Its id ends here.
    Id(usize),
    /// A piece of its arguments ends here, and this is what the engine could see of their end.
    Arguments(usize, ArgumentsEnd),
    /// The call is complete.
    Done,
    /// What is wrong with a call that can be read nevertheless: the code and the message of a
    /// warning. The text that it is about ends here.
    Note(usize, &'static str, &'static str),
}

/// Where the arguments end, as far as the engine can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArgumentsEnd {
    /// It does not follow them: their brackets decide.
    #[default]
    Unknown,
    /// They go on after the last piece.
    Later,
    /// The last piece ends them.
    Here,
}

impl From<bool> for ArgumentsEnd {
    /// Of an engine that knows whether the last piece ends them.
    fn from(ends: bool) -> ArgumentsEnd {
        if ends {
            ArgumentsEnd::Here
        } else {
            ArgumentsEnd::Later
        }
    }
}

/// The calls that an engine found and that were not emitted yet, in one buffer that is reused.
#[derive(Debug, Default)]
pub(crate) struct FoundCalls {
    /// Where the arguments of the last call end, seen from the next piece of them.
    pub end: ArgumentsEnd,
    /// The name that the model wrote for the next call, where it is not the tool's own.
    pub written: Option<String>,
    /// In order. The text of each begins where the one before ends.
    pub ops: Vec<Op>,
    /// The texts of all of them.
    pub text: String,
}

impl FoundCalls {
    /// A call begins.
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

    /// The next call is that of the listed tool `name`, for which the model wrote `written`.
    pub(crate) fn written(&mut self, written: &str, name: &str, context: &Context<'_>) {
        let differs = written != name && context.lists(name);
        self.written = differs.then(|| written.to_owned());
    }

    /// The call's id, where it comes after the name.
    pub(crate) fn id(&mut self, id: &str) {
        self.text.push_str(id);
        self.ops.push(Op::Id(self.text.len()));
    }

    /// The next piece of the call's arguments, which together are the text of a JSON object.
    pub(crate) fn arguments(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.wrote();
        }
    }

    /// The next piece of the arguments, from an engine that follows them to their end.
    pub(crate) fn arguments_until(&mut self, piece: &str, end: ArgumentsEnd) {
        self.end = end;
        self.arguments(piece);
    }

    /// What was appended to [`FoundCalls::text`] since the last part is the next piece of the
    /// arguments.
    pub(crate) fn wrote(&mut self) {
        let op = Op::Arguments(self.text.len(), self.end);
        match self.ops.last_mut() {
            Some(last @ Op::Arguments(..)) => *last = op,
            _ => self.ops.push(op),
        }
    }

    /// The call is complete.
    pub(crate) fn done(&mut self) {
        self.ops.push(Op::Done);
    }

    /// Something is wrong with the call, for a warning.
    pub(crate) fn note(&mut self, what: &'static str) {
        self.note_of(what, "");
    }

    /// Something is wrong with this text of the call, for a warning that shows it.
    pub(crate) fn note_of(&mut self, what: &'static str, text: &str) {
        self.text.push_str(text);
        self.ops.push(Op::Note(self.text.len(), "tag_note", what));
    }

    /// All calls were emitted.
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.text.clear();
    }
}
