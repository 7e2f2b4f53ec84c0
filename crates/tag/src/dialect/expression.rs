//! Columns of dialects that write calls as expressions: `f(a=1, b='x')`, `call:f{a:1}`.

/// How calls are written as expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpressionForm {
    /// How arguments are written.
    pub arguments: ArgumentStyle,
    /// What stands before a name: `call:` (Gemma), of which all but the colon, or everything, may be missing.
    pub prefix: &'static str,
    /// What stands after a name: `.call` (Llama's built-in tools). What lacks it is other code.
    pub suffix: &'static str,
    /// The bracket that opens arguments. Which closes them is the notation's.
    pub open: char,
    /// Calls stand in `[…]`, with commas between them.
    pub list: bool,
    /// What may stand between calls beside white space; the first is written. Without a list and without these there is one call.
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
