//! Columns of dialects that write arguments as tagged parameters: `<parameter=a>1</parameter>` and
//! its many relatives.

/// How one family of dialects spells the parameters of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParamForm {
    /// The tags of one parameter.
    pub style: Style,
    /// The markers that end the call, which may follow the last parameter. The next part reads
    /// them.
    pub call_closers: &'static [&'static str],
    /// What is taken off a value.
    pub trim: Trim,
    /// Whether `<![CDATA[…]]>` in a value gives its inner text and hides closers.
    pub cdata: bool,
    /// Whether `&amp;` and its like in a value mean characters.
    pub entities: bool,
    /// What decides the type of a value.
    pub typing: Typing,
    /// White space that is written before each parameter.
    pub before: &'static str,
    /// White space that is written before and after a value.
    pub round: &'static str,
}

/// The tags of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `<parameter=NAME>value</parameter>`: `open` is `<parameter=`, `end` is `>`.
    Equals {
        open: &'static str,
        end: &'static str,
        close: &'static str,
    },
    /// `<parameter name="NAME" …>value</parameter>`: spellings of `open` up to the attributes and
    /// of `close`, in the same order (the first is written), the tag's `end`, and the attribute
    /// that holds the name.
    Attribute {
        open: &'static [&'static str],
        end: &'static str,
        close: &'static [&'static str],
        name: &'static str,
    },
    /// `<arg_key>NAME</arg_key>` white space `<arg_value>value</arg_value>`, each as its opening
    /// and closing tag. A third element between the two may name the type; `gap` is the white space
    /// that is written between elements.
    Pair {
        key: (&'static str, &'static str),
        kind: Option<(&'static str, &'static str)>,
        value: (&'static str, &'static str),
        gap: &'static str,
    },
    /// `<NAME>value</NAME>`, each tag with this before it. Elements inside a value are members and
    /// items where the schema has them.
    Element { prefix: &'static str },
}

/// What is taken off a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trim {
    None,
    /// One newline at the beginning and one at the end.
    OneNewline,
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
