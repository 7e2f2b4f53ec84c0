//! The columns of the table of dialects. A call is described once, as the parts in which it is
//! written; the engines read by this description, and prompts and examples are written by it.
//!
//! Plain data without logic of other files: the build script compiles it too.

/// How one family of models writes its tool calls, and how a prompt asks for them.
#[derive(Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Its name, as `--dialect` and `stream_start` have it.
    pub name: &'static str,
    /// Other usual names.
    pub aliases: &'static [&'static str],
    /// The models that write it.
    pub models: &'static str,
    /// A link to the chat template, parser or page that defines it, or the reason why no link is
    /// given.
    pub source: &'static str,
    /// How many characters after its end a name is reported: with the dialect named, and with
    /// `auto`.
    pub late: (u8, u8),
    /// The dialect that its text is read as with `auto`, since the two look the same.
    pub(crate) read_as: Option<&'static str>,
    /// How a call may be written. Prompts show the first form; models write the others too.
    pub(crate) forms: &'static [Form],
    /// Reasoning, and the tokens around calls and answers.
    pub(crate) framing: &'static TextFraming,
    /// How a prompt shows tools and results.
    pub(crate) prompt: &'static Prompt,
}

/// The letters and digits of a name of a dialect or a model, in lower case: by them alone such names
/// are compared.
pub(crate) fn letters(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

impl Dialect {
    /// The letters of its name and its aliases, but for those that are too short to show a family.
    pub(crate) fn families(&self) -> impl Iterator<Item = String> {
        let names = self.aliases.iter().copied().chain([self.name]);
        names.map(letters).filter(|name| name.len() > 2)
    }

    /// Whether this is its name or one of its aliases.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The usual pair of markers around its reasoning.
    pub fn reasoning(&self) -> Option<(&'static str, &'static str)> {
        self.framing.reasoning.first().copied()
    }

    /// Whether the prompt may end inside reasoning.
    pub fn may_begin_in_reasoning(&self) -> bool {
        self.framing.prefilled != PromptReasoning::No
    }

    /// Whether a call ends reasoning that is not closed, even if it is closed later.
    pub fn call_always_ends_reasoning(&self) -> bool {
        self.framing.call_ends_reasoning == ReasoningEnd::Always
    }

    /// Whether calls and reasoning end with the same marker.
    pub fn call_closes_reasoning(&self) -> bool {
        let closes = |mark: &&str| {
            self.framing
                .reasoning
                .iter()
                .any(|(_, close)| close == mark)
        };
        self.marks().any(|mark| closes(&mark))
    }

    /// Whether its calls, as they are written, count only where a message begins: no marker
    /// distinguishes them from text, or the prompt holds the beginning of the first message's
    /// header.
    pub fn begins_messages(&self) -> bool {
        self.forms
            .first()
            .is_some_and(|form| self.framing.messages || form.scope == Scope::Message)
    }

    /// Whether its calls, as they are written, are found in ordinary text too and count only where
    /// their tool is known.
    pub fn needs_known_tools(&self) -> bool {
        self.forms
            .first()
            .is_some_and(|form| form.needs == KnownTool::Known)
    }

    /// Whether markers of its calls frame other messages too, so that they are left out of text
    /// that is not a call.
    pub fn drops_its_markers(&self) -> bool {
        self.framing.messages
            || self
                .marks()
                .any(|mark| self.framing.dropped.contains(&mark))
    }

    /// The markers in its calls.
    fn marks(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.forms.iter().flat_map(|form| form.call);
        parts.filter_map(CallPart::marks).flatten().copied()
    }
}

/// One way to write calls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The markers around all calls of a region.
    pub section: Option<Section>,
    /// The parts of one call. The first is a [`CallPart::Mark`] or a [`CallPart::Tag`], except in a
    /// section that is required and in [`Scope::Message`].
    pub call: &'static [CallPart],
    /// What is written between two calls without a section. Reading accepts this and white space
    /// there.
    pub between: &'static str,
    /// Where it may begin.
    pub scope: Scope,
    /// When a tool's name counts.
    pub needs: KnownTool,
    /// The markers of its calls that no prose has, without their last characters, which models
    /// lose; and the tokens that longer markers begin and end with.
    pub residue: &'static [&'static str],
}

impl Form {
    /// Where the body of a message begins in a call that is written with the header of its message;
    /// `None` in all other forms. The parser reads headers itself.
    pub(crate) fn body(&self) -> Option<usize> {
        let name = self
            .call
            .iter()
            .position(|part| matches!(part, CallPart::Name { .. }))?;
        let is_end = |part: &CallPart| matches!(part, CallPart::Mark([mark, ..]) if mark.ends_with("<|message|>"));
        let end = self.call.iter().skip(name).position(is_end)?;
        Some(name + end + 1)
    }
}

/// Markers around several calls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Spellings of the opening marker; the first is written.
    pub open: &'static [&'static str],
    /// Spellings of the closing marker; the first is written. A section without any ends with its
    /// last call.
    pub close: &'static [&'static str],
    /// Calls are found without the markers too.
    pub optional: bool,
    /// White space that is written inside the markers.
    pub inside: &'static str,
    /// What is written between two calls. Reading accepts this and white space there.
    pub between: &'static str,
}

/// Where a form may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Anywhere in the answer, outside code and quotations.
    Anywhere,
    /// At the beginning of a line.
    Line,
    /// Before any other text of the message.
    Message,
}

/// When a call counts, by what is known of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownTool {
    /// Where tools are known, the name must be one of them.
    Listed,
    /// Tools must be known and the name one of them, since the form is found in ordinary text too.
    /// JSON needs its arguments' key.
    Known,
}

/// A part of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallPart {
    /// A marker, in one of these spellings; the first is written.
    Mark(&'static [&'static str]),
    /// A marker that may be missing; it is written if `write`.
    Maybe {
        marks: &'static [&'static str],
        write: bool,
    },
    /// White space: this is written; any is read, also none.
    Space(&'static str),
    /// A number that may be missing, and spaces around it, as in `Action 1:`. Nothing is written.
    Count,
    /// The tool's name, up to one of these markers (which the next part reads), without the spaces
    /// around it.
    Name {
        until: &'static [&'static str],
        header: NameForm,
    },
    /// The author of the message, up to one of these markers (which the next part reads). It may be
    /// missing, is never written, and has no effect: the call holds its own name.
    Author { until: &'static [&'static str] },
    /// The call's id, up to one of these markers.
    Id { until: &'static [&'static str] },
    /// A start tag whose attributes name the tool.
    Tag(&'static StartTag),
    /// The arguments as a JSON object, or nothing before the next marker.
    Arguments,
    /// JSON that holds names and arguments: an object, several, or an array of them.
    Calls(&'static CallKeys),
    /// The arguments as tagged parameters, or as a JSON object.
    Params(&'static ParamForm),
    /// Call expressions, which hold names and arguments.
    Expression(&'static ExpressionForm),
    /// The argument as free text up to one of these markers or the end, or a JSON object: see
    /// [`FreeText`].
    Free(&'static FreeText),
}

impl CallPart {
    /// The spellings of a marker, required or not.
    pub(crate) fn marks(&self) -> Option<&'static [&'static str]> {
        match self {
            CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => Some(marks),
            _ => None,
        }
    }
}

/// What the text that names a tool looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameForm {
    /// The name alone.
    Bare,
    /// `functions.NAME:COUNTER`, which is the call's id too (Kimi K2).
    Counted,
}

/// A start tag such as `<invoke name="f">`: [`StartTag::open`] is its marker, then attributes, then
/// [`StartTag::end`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartTag {
    /// Spellings of its beginning up to the attributes, such as `<invoke`; the first is written.
    pub open: &'static [&'static str],
    /// Its end, such as `>`.
    pub end: &'static str,
    /// The attribute that names the tool.
    pub name: &'static str,
    /// Other attributes as they are written, with a space before; `{n}` is the number of the call
    /// from 1.
    pub rest: &'static str,
}

/// The members of a call that is written as JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallKeys {
    /// Keys of the tool's name; the first is written.
    pub name: &'static [&'static str],
    /// Keys of the arguments; the first is written.
    pub arguments: &'static [&'static str],
    /// Keys of the id; the first is written if `write_id`.
    pub id: &'static [&'static str],
    /// Whether the id is written.
    pub write_id: bool,
    /// How they are written. Every shape is read, but `Single` only where it is given here.
    pub shape: CallShape,
}

/// How several JSON calls are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallShape {
    /// One object a call.
    Object,
    /// An array of objects, for all calls.
    Array,
    /// An array of objects with one member each: `{NAME: ARGUMENTS}`.
    Single,
    /// An array of objects as Python writes them.
    PythonArray,
}

/// The argument as free text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FreeText {
    /// What ends it; the text's end does too, unless the text was cut.
    pub until: &'static [&'static str],
    /// At the end of the text it may be missing, and the marker before it too: the call has no
    /// arguments.
    pub optional: bool,
    /// Escapes of tags that the text must not contain, each with its tag.
    pub escapes: &'static [(&'static str, &'static str)],
}

/// Reasoning, and the tokens around calls and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextFraming {
    /// Markers of reasoning: opening, closing. The first pair is the usual one.
    pub reasoning: &'static [(&'static str, &'static str)],
    /// Whether the prompt may have opened the reasoning already.
    pub prefilled: PromptReasoning,
    /// Whether a call's opening marker ends reasoning that was not closed.
    pub call_ends_reasoning: ReasoningEnd,
    /// Tokens that are left out of the answer: roles, ends of turns, frames of the answer.
    pub dropped: &'static [&'static str],
    /// Tokens that are left out at the beginning of the message only.
    pub dropped_first: &'static [&'static str],
    /// What only the template or a tool writes, such as the beginning of the user's turn: where a
    /// model writes it, no call follows. It is looked for in streams of every dialect.
    pub foreign: &'static [&'static str],
    /// The same at the beginning of a line, in streams of this dialect.
    pub foreign_lines: &'static [&'static str],
    /// Other tokens of the template, which are markup in text of any dialect.
    pub tokens: &'static [&'static str],
    /// The answer comes in messages with headers that name a channel or a recipient (Harmony,
    /// Muse).
    pub messages: bool,
}

/// Whether a call ends reasoning that was not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningEnd {
    /// A call inside reasoning is part of it.
    Never,
    /// It does, unless the reasoning is closed later: then the call was only rehearsed.
    UnlessClosed,
    /// It does: the template writes no closing marker before a call.
    Always,
}

/// Whether the prompt ends inside reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptReasoning {
    /// Never.
    No,
    /// With some models or settings.
    Perhaps,
    /// As a rule.
    Usually,
}

// Columns of dialects that write calls as expressions: `f(a=1, b='x')`, `call:f{a:1}`.

/// How calls are written as expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpressionForm {
    /// How arguments are written.
    pub arguments: ArgumentStyle,
    /// Text before a name: `call:` (Gemma). All of it may be missing, or all but the colon.
    pub prefix: &'static str,
    /// Text after a name: `.call` (Llama's built-in tools). An expression without it is not a call.
    pub suffix: &'static str,
    /// The bracket that opens arguments. [`ArgumentStyle`] decides which bracket closes them.
    pub open: char,
    /// Whether calls are in `[…]`, with commas between them.
    pub list: bool,
    /// What may be between calls beside white space; the first is written. Without a list and
    /// separators there is one call.
    pub separators: &'static [char],
}

/// How the arguments in an expression are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentStyle {
    /// Python: `a=1, b='x'`. JSON's `true`, `false` and `null` are read too.
    Python,
    /// Gemma: `a:1,b:<|"|>x<|"|>`, with strings between two `quote`s.
    Gemma { quote: &'static str },
}

// Columns of dialects that write arguments as tagged parameters: `<parameter=a>1</parameter>` and
// its many relatives.

/// How one family of dialects spells the parameters of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParamForm {
    /// One parameter as it is written.
    pub written: &'static [ParamPiece],
    /// Spellings of the marker that a parameter begins with, up to its name or its attributes.
    pub open: &'static [&'static str],
    /// Spellings of the marker that ends a value, in the same order; that of an element holds its
    /// name.
    pub close: &'static [&'static str],
    /// What is between the two.
    pub style: TagStyle,
    /// The markers that end the call, which may follow the last parameter. The next part reads
    /// them.
    pub call_closers: &'static [&'static str],
    /// Whether a value is XML text: `<![CDATA[…]]>` gives its inner text and hides closers, and
    /// `&amp;` and its like mean characters.
    pub is_xml: bool,
    /// What decides the type of a value.
    pub typing: Typing,
    /// Whether a newline is written before and after a value. One at each end is taken off a value
    /// that is read.
    pub is_on_lines: bool,
}

/// A piece of a parameter as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamPiece {
    Text(&'static str),
    /// What the notation of a parameter has in braces.
    Slot(&'static str),
}

/// What is between the markers of one parameter, the name and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagStyle {
    /// `<parameter=NAME>value</parameter>`, or `<arg_key>NAME</arg_key>` white space
    /// `<arg_value>value</arg_value>`: the marker after the name, perhaps an element with the type,
    /// and the marker before the value, which is empty where the value follows the name's marker.
    Plain {
        end: &'static str,
        kind: Option<(&'static str, &'static str)>,
        value: &'static str,
    },
    /// `<parameter name="NAME" …>value</parameter>`: the tag's end, and the attribute that holds
    /// the name.
    Attribute {
        end: &'static str,
        name: &'static str,
    },
    /// `<NAME>value</NAME>`, each tag with this before it. Elements inside a value are members and
    /// items where the schema has them.
    Element { prefix: &'static str },
    /// `[[NAME]]value[[/NAME]]`: the marker after the name, and what is before and after the name in
    /// the closing marker. A value is text.
    Repeated {
        end: &'static str,
        close: (&'static str, &'static str),
    },
}

/// What decides the type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    /// The tool's schema.
    Schema,
    /// This attribute: `true` for a string, `false` for JSON. Without it, the schema.
    Flag(&'static str),
    /// This attribute names the JSON type. Without it, the schema.
    Named(&'static str),
}

// Columns for prompts: how a dialect shows tools and results to the model.

/// How a prompt shows tools and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// Text before the list of tools.
    pub open: &'static str,
    /// Text after the list of tools.
    pub close: &'static str,
    /// How the list is written.
    pub list: ToolListStyle,
    /// A result: `{result}` is its text as a JSON string, `{name}` and `{id}` the call's, escaped
    /// as it is.
    pub result: &'static str,
    /// Text before and after all results of a turn.
    pub results: (&'static str, &'static str),
    /// Text between two results.
    pub between: &'static str,
}

/// How a list of tools is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolListStyle {
    /// A JSON object a line.
    Lines,
    /// One JSON array.
    OneArray,
    /// A type a tool, as TypeScript declares it.
    TypeScript,
}

// Where a form begins and ends.

/// The markers that a call begins with.
pub(crate) fn first(call: &'static [CallPart]) -> &'static [&'static str] {
    match call.first() {
        Some(CallPart::Mark(marks)) => marks,
        Some(CallPart::Tag(tag)) => tag.open,
        _ => &[],
    }
}

/// The markers that these parts may begin with: those of a parameter, and those that end a call
/// without any.
pub(crate) fn beginnings(parts: &'static [CallPart]) -> Vec<&'static str> {
    let mut marks = Vec::new();
    for part in parts {
        match part {
            CallPart::Params(form) => marks.extend(form.open),
            CallPart::Mark(spellings) => {
                marks.extend(*spellings);
                return marks;
            }
            CallPart::Maybe {
                marks: spellings, ..
            } => marks.extend(*spellings),
            _ => {}
        }
    }
    marks
}

/// Whether a call of this form ends by itself. Free text may go on to the end of all text.
pub(crate) fn ends_itself(form: &Form) -> bool {
    !form
        .call
        .iter()
        .any(|part| matches!(part, CallPart::Free(_)))
}

/// Whether a form is a code fence, so that its marker may be in code.
pub(crate) fn is_fence(form: &Form) -> bool {
    form.scope == Scope::Line && first(form.call).iter().any(|mark| mark.starts_with("```"))
}
