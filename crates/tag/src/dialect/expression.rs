//! Columns of dialects that write calls as expressions: `f(a=1, b='x')`, `call:f{a:1}`.

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
