//! What comes out of a parser.

/// A piece of a call, as a `tool_call_delta` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Which call of this choice it is: 0, 1, 2 … in the order in which they begin.
    pub index: i64,
    /// Its id, if the text names one.
    pub id: Option<&'a str>,
    /// The tool's name, with the call's first piece.
    pub name: Option<&'a str>,
    /// The next piece of the arguments' text.
    pub arguments: Option<&'a str>,
    /// The call is whole.
    pub done: bool,
}

/// Where a parser puts what it finds, in the order of the text.
pub trait Outlet {
    /// Text of the answer.
    fn content(&mut self, text: &str);

    /// Reasoning.
    fn reasoning(&mut self, text: &str);

    /// A piece of a call.
    fn call(&mut self, piece: Piece<'_>);

    /// The call of this index does not hold.
    fn retract(&mut self, index: i64, reason: &'static str);

    /// Something to tell people: a code, a sentence, and the text it is about.
    fn warning(&mut self, code: &'static str, message: &str, raw: &str);

    /// Text that was read and is in none of these: the markers, and the text of calls. With it, everything that came in has
    /// come out, in order; text of a call comes only once the call is whole.
    fn left_out(&mut self, text: &str) {
        let _ = text;
    }
}
