//! The columns of the table of dialects. Each dialect describes a call once, as a list of parts.
//! The engines parse calls by this description, and prompts and examples are generated from it.
//!
//! This file contains plain data and depends on no other file, because the build script compiles it
//! too.

/// How one family of models writes its tool calls, and how a prompt asks for them.
#[derive(Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The name, as used by `--dialect` and `stream_start`.
    pub name: &'static str,
    /// Other common names of the dialect.
    pub aliases: &'static [&'static str],
    /// The models that write this dialect.
    pub models: &'static str,
    /// A link to the chat template, parser or page that defines the dialect, or the reason why
    /// there is no link.
    pub source: &'static str,
    /// How many characters after the end of a tool name the name is reported: first if the dialect
    /// was selected, second with `auto`.
    pub late: (u8, u8),
    /// The dialect that `auto` parses this text as, because the two dialects look the same.
    pub(crate) read_as: Option<&'static str>,
    /// The ways to write a call. Prompts show the first form; models write the others too.
    pub(crate) forms: &'static [Form],
    /// The reasoning markers, and the tokens around calls and answers.
    pub(crate) framing: &'static TextFraming,
    /// How a prompt shows tools and results.
    pub(crate) prompt: &'static Prompt,
}

/// Returns the letters and digits of the name of a dialect or a model, in lower case. Such names are
/// compared in this form.
pub(crate) fn letters(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

impl Dialect {
    /// Returns the [`letters`] of the name and the aliases, except those too short to identify a
    /// family.
    pub(crate) fn families(&self) -> impl Iterator<Item = String> {
        let names = self.aliases.iter().copied().chain([self.name]);
        names.map(letters).filter(|name| name.len() > 2)
    }

    /// Whether `name` is the dialect's name or one of its aliases.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The usual opening and closing marker of reasoning; `None` if the dialect has no reasoning.
    pub fn reasoning(&self) -> Option<(&'static str, &'static str)> {
        self.framing.reasoning.first().copied()
    }

    /// Whether the prompt may end inside reasoning.
    pub fn may_begin_in_reasoning(&self) -> bool {
        self.framing.prefilled != PromptReasoning::No
    }

    /// Whether a call ends unclosed reasoning, even if a closing marker follows later.
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

    /// Whether the dialect's calls count only at the beginning of a message: either no marker
    /// distinguishes calls from text, or the prompt contains the beginning of the first message's
    /// header. This describes the form that prompts show.
    pub fn begins_messages(&self) -> bool {
        self.forms
            .first()
            .is_some_and(|form| self.framing.messages || form.scope == Scope::Message)
    }

    /// Whether the dialect's calls also look like ordinary text, so that they count only if their
    /// tool is known. This describes the form that prompts show.
    pub fn needs_known_tools(&self) -> bool {
        self.forms
            .first()
            .is_some_and(|form| form.needs == KnownTool::Known)
    }

    /// Whether markers of the dialect's calls also frame other messages, so that they are dropped
    /// from text that is not a call.
    pub fn drops_its_markers(&self) -> bool {
        self.framing.messages
            || self
                .marks()
                .any(|mark| self.framing.dropped.contains(&mark))
    }

    /// The markers in the dialect's calls.
    fn marks(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.forms.iter().flat_map(|form| form.call);
        parts.filter_map(CallPart::marks).flatten().copied()
    }
}

/// One way to write calls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The markers around several calls; `None` if calls have no common markers.
    pub section: Option<Section>,
    /// The parts of one call. The first part is a [`CallPart::Mark`] or a [`CallPart::Tag`], except
    /// with a required section or [`Scope::Message`].
    pub call: &'static [CallPart],
    /// The text written between two calls without a section. The parser accepts this text and white
    /// space there.
    pub between: &'static str,
    /// Where the form may begin.
    pub scope: Scope,
    /// When a tool's name counts.
    pub needs: KnownTool,
    /// Markers of calls that never occur in prose, without their last characters (models sometimes
    /// lose them), and the tokens that longer markers begin and end with.
    pub residue: &'static [&'static str],
}

impl Form {
    /// Returns the index of the part where the message body begins, if the form's call contains the
    /// header of its message; `None` for all other forms. The parser parses headers itself.
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
    /// Spellings of the closing marker; the first is written. If empty, the section ends with its
    /// last call.
    pub close: &'static [&'static str],
    /// Whether calls are also recognized without the section's markers.
    pub optional: bool,
    /// White space written inside the markers.
    pub inside: &'static str,
    /// The text written between two calls. The parser accepts this text and white space there.
    pub between: &'static str,
}

/// Where a form may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Anywhere in the answer, outside code and quotations.
    Anywhere,
    /// At the beginning of a line.
    Line,
    /// At the beginning of the message, before any other text.
    Message,
}

/// When a call counts, depending on the known tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownTool {
    /// If the tools are known, the name must be one of them.
    Listed,
    /// The tools must be known and include the name, because the form also occurs in ordinary text.
    /// A JSON call also needs the key of its arguments.
    Known,
}

/// A part of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallPart {
    /// A marker, in one of these spellings; the first is written.
    Mark(&'static [&'static str]),
    /// An optional marker; it is written if `write` is set.
    Maybe {
        marks: &'static [&'static str],
        write: bool,
    },
    /// White space. This text is written; the parser accepts any white space, or none.
    Space(&'static str),
    /// An optional number with spaces around it, as in `Action 1:`. Never written.
    Count,
    /// The tool's name without the spaces around it. It ends before one of these markers, which the
    /// next part parses.
    Name {
        until: &'static [&'static str],
        header: NameForm,
    },
    /// The author of the message, up to one of these markers, which the next part parses. The
    /// author may be missing, is never written, and is ignored, because the call contains its own
    /// name.
    Author { until: &'static [&'static str] },
    /// The call's id, up to one of these markers.
    Id { until: &'static [&'static str] },
    /// A start tag whose attributes name the tool.
    Tag(&'static StartTag),
    /// The arguments as a JSON object. No text before the next marker means no arguments.
    Arguments,
    /// JSON that contains names and arguments: one object, several objects, or an array of objects.
    Calls(&'static CallKeys),
    /// The arguments as tagged parameters, or as a JSON object.
    Params(&'static ParamForm),
    /// Call expressions, which contain names and arguments.
    Expression(&'static ExpressionForm),
    /// The argument as free text up to one of these markers or the end, or a JSON object. See
    /// [`FreeText`].
    Free(&'static FreeText),
}

impl CallPart {
    /// The spellings of a marker, required or optional; `None` for any other part.
    pub(crate) fn marks(&self) -> Option<&'static [&'static str]> {
        match self {
            CallPart::Mark(marks) | CallPart::Maybe { marks, .. } => Some(marks),
            _ => None,
        }
    }
}

/// How the text that names a tool is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameForm {
    /// The name alone.
    Bare,
    /// `functions.NAME:COUNTER`, which is also the call's id (Kimi K2).
    Counted,
}

/// A start tag such as `<invoke name="f">`: the marker [`StartTag::open`], then attributes, then
/// [`StartTag::end`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartTag {
    /// Spellings of the text before the attributes, such as `<invoke`; the first is written.
    pub open: &'static [&'static str],
    /// The text that ends the tag, such as `>`.
    pub end: &'static str,
    /// The attribute that names the tool.
    pub name: &'static str,
    /// The other attributes as written, with a leading space; `{n}` is the call's number, counted
    /// from 1.
    pub rest: &'static str,
}

/// The members of a call written as JSON.
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
    /// How calls are written. The parser accepts every shape, but `Single` only if it is set here.
    pub shape: CallShape,
}

/// How several JSON calls are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallShape {
    /// One object per call.
    Object,
    /// One array of objects for all calls.
    Array,
    /// An array of objects with one member each: `{NAME: ARGUMENTS}`.
    Single,
    /// An array of objects in Python's notation.
    PythonArray,
}

/// An argument written as free text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FreeText {
    /// The markers that end the argument. The end of the message also ends it, unless the message
    /// was cut off.
    pub until: &'static [&'static str],
    /// Whether the argument, and the marker before it, may be missing at the end of the message.
    /// The call then has no arguments.
    pub optional: bool,
    /// Escapes of tags that the text must not contain, each with the tag that it stands for.
    pub escapes: &'static [(&'static str, &'static str)],
}

/// The markers of reasoning, and the tokens around calls and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextFraming {
    /// The opening and closing markers of reasoning. The first pair is the usual one.
    pub reasoning: &'static [(&'static str, &'static str)],
    /// Whether the prompt may already have opened the reasoning.
    pub prefilled: PromptReasoning,
    /// Whether a call's opening marker ends reasoning that was not closed.
    pub call_ends_reasoning: ReasoningEnd,
    /// Tokens that are dropped from the answer: roles, ends of turns, frames of the answer.
    pub dropped: &'static [&'static str],
    /// Tokens that are dropped only at the beginning of the message.
    pub dropped_first: &'static [&'static str],
    /// Text that only the template or a tool writes, such as the beginning of the user's turn.
    /// After a model writes such text, no call is accepted. Streams of every dialect are searched
    /// for it.
    pub foreign: &'static [&'static str],
    /// Like `foreign`, but only at the beginning of a line and only in streams of this dialect.
    pub foreign_lines: &'static [&'static str],
    /// Other tokens of the template, which are treated as markup in text of any dialect.
    pub tokens: &'static [&'static str],
    /// Whether the answer consists of messages with headers that name a channel or a recipient
    /// (Harmony, Muse).
    pub messages: bool,
}

/// Whether a call ends reasoning that was not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningEnd {
    /// A call inside reasoning is part of it.
    Never,
    /// A call ends the reasoning, unless a closing marker follows: then the call was only
    /// rehearsed.
    UnlessClosed,
    /// A call ends the reasoning, because the template writes no closing marker before a call.
    Always,
}

/// Whether the prompt ends inside reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptReasoning {
    /// Never.
    No,
    /// Only with some models or settings.
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
    /// Text before a name: `call:` (Gemma). All of the text, or all but the colon, may be missing.
    pub prefix: &'static str,
    /// Text after a name: `.call` (Llama's built-in tools). An expression without it is not a call.
    pub suffix: &'static str,
    /// The bracket that opens the arguments. [`ArgumentStyle`] determines the closing bracket.
    pub open: char,
    /// Whether calls are written inside `[…]`, separated by commas.
    pub list: bool,
    /// Characters allowed between calls besides white space; the first is written. A form that has
    /// neither a list nor separators allows only one call.
    pub separators: &'static [char],
}

/// How the arguments in an expression are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentStyle {
    /// Python: `a=1, b='x'`. JSON's `true`, `false` and `null` are accepted too.
    Python,
    /// Gemma: `a:1,b:<|"|>x<|"|>`, where strings are enclosed in two `quote`s.
    Gemma { quote: &'static str },
}

// Columns of dialects that write arguments as tagged parameters: `<parameter=a>1</parameter>` and
// similar notations.

/// How one family of dialects spells the parameters of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParamForm {
    /// The pieces of one parameter, in the order in which they are written.
    pub written: &'static [ParamPiece],
    /// Spellings of the marker that begins a parameter, up to the parameter's name or attributes.
    pub open: &'static [&'static str],
    /// Spellings of the marker that ends a value, in the same order as `open`. An element's closing
    /// marker contains its name.
    pub close: &'static [&'static str],
    /// How the text between the opening and the closing marker is structured.
    pub style: TagStyle,
    /// The markers that end the call and may follow the last parameter. The next part parses them.
    pub call_closers: &'static [&'static str],
    /// Whether a value is XML text: `<![CDATA[…]]>` stands for its inner text and hides closing
    /// markers, and entities such as `&amp;` stand for characters.
    pub is_xml: bool,
    /// How the type of a value is determined.
    pub typing: Typing,
    /// Whether a newline is written before and after a value. The parser removes one newline from
    /// each end of a value.
    pub is_on_lines: bool,
}

/// A piece of a parameter as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamPiece {
    Text(&'static str),
    /// A placeholder, written in braces in the notation of a parameter.
    Slot(&'static str),
}

/// How a parameter's name and value are written between its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagStyle {
    /// `<parameter=NAME>value</parameter>`, or `<arg_key>NAME</arg_key>` white space
    /// `<arg_value>value</arg_value>`. `end` is the marker after the name, `kind` holds the
    /// optional markers around the type, and `value` is the marker before the value, or empty if
    /// the value directly follows `end`.
    Plain {
        end: &'static str,
        kind: Option<(&'static str, &'static str)>,
        value: &'static str,
    },
    /// `<parameter name="NAME" …>value</parameter>`: `end` is the end of the tag, and `name` is the
    /// attribute that holds the parameter's name.
    Attribute {
        end: &'static str,
        name: &'static str,
    },
    /// `<NAME>value</NAME>`, where `prefix` precedes each tag. Elements inside a value are parsed
    /// as members and items if the schema declares them.
    Element { prefix: &'static str },
    /// `[[NAME]]value[[/NAME]]`: `end` is the marker after the name, and `close` holds the text
    /// before and after the name in the closing marker. Values are always text.
    Repeated {
        end: &'static str,
        close: (&'static str, &'static str),
    },
}

/// How the type of a value is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    /// By the tool's schema.
    Schema,
    /// By this attribute: `true` for a string, `false` for JSON. Without the attribute, by the
    /// schema.
    Flag(&'static str),
    /// By this attribute, which names the JSON type. Without the attribute, by the schema.
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
    /// The template of a result: `{result}` is replaced by the result as a JSON string, and
    /// `{name}` and `{id}` by the call's name and id, escaped in the same way.
    pub result: &'static str,
    /// Text before and after all results of a turn.
    pub results: (&'static str, &'static str),
    /// Text between two results.
    pub between: &'static str,
}

/// How a list of tools is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolListStyle {
    /// One JSON object per line.
    Lines,
    /// One JSON array.
    OneArray,
    /// One type per tool, in TypeScript's notation.
    TypeScript,
}

// Where a form begins and ends.

/// The markers that can begin a call.
pub(crate) fn first(call: &'static [CallPart]) -> &'static [&'static str] {
    match call.first() {
        Some(CallPart::Mark(marks)) => marks,
        Some(CallPart::Tag(tag)) => tag.open,
        _ => &[],
    }
}

/// The markers that `parts` may begin with: those that open a parameter, and those that end a call
/// without parameters.
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

/// Whether a call of this form has an end of its own. Free text may instead continue to the end of
/// the message.
pub(crate) fn ends_itself(form: &Form) -> bool {
    !form
        .call
        .iter()
        .any(|part| matches!(part, CallPart::Free(_)))
}

/// Whether the form is a code fence, whose marker may also occur in code.
pub(crate) fn is_fence(form: &Form) -> bool {
    form.scope == Scope::Line && first(form.call).iter().any(|mark| mark.starts_with("```"))
}
