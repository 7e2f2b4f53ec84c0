//! Calls written as expressions: `[f(a=1, b='x'), g()]`, a call a line, `call:f{a:<|"|>x<|"|>,n:42}`.

#[cfg(test)]
mod tests;
mod write;

use crate::calls::{Calls, Context, NO_TOOL, Step};
use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use json::{Literal, Notation, Progress};

/// A reader of such calls.
///
/// It says [`Step::Whole`] after each call that another may follow. `Done` comes after the list's bracket; without a list after
/// the call, or, where several may come, before the first text that cannot begin another.
#[derive(Debug)]
pub(crate) struct Expression {
    form: &'static ExpressionForm,
    state: State,
    /// How many calls are whole.
    done: usize,
}

#[derive(Debug)]
enum State {
    /// Before the list's bracket.
    List,
    /// Before a name.
    Name,
    /// After the opening bracket of a call.
    Arguments(Literal),
    /// In a list, after a call.
    After,
    End,
    Failed(&'static str),
}

/// How long a name may be, with what stands before it.
const MAX_NAME: usize = 256;

/// Where reading goes on.
enum Go {
    On(usize),
    Stop(Step),
}

impl Expression {
    /// Reads the calls of one region, from before the first of them.
    pub fn new(form: &'static ExpressionForm) -> Expression {
        Expression { form, state: if form.list { State::List } else { State::Name }, done: 0 }
    }

    /// Reads on. A name is said with its opening bracket, and is not taken before that.
    pub fn push(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Step {
        let mut at = 0;
        loop {
            let go = match &mut self.state {
                State::End => Go::Stop(Step::Done(at)),
                State::Failed(why) => Go::Stop(Step::Fail(at, why)),
                State::Arguments(_) => self.arguments(text, at, calls),
                _ if at == text.len() => Go::Stop(Step::More(at)),
                State::List | State::Name | State::After => self.between(text, at, context, calls),
            };
            match go {
                Go::On(next) => at = next,
                Go::Stop(step) => {
                    if let Step::Fail(_, why) = step {
                        self.state = State::Failed(why);
                    }
                    return step;
                }
            }
        }
    }

    /// Whether the text may end here, whatever was not taken: all that was begun is whole.
    pub fn finish(&self) -> bool {
        match self.state {
            State::End => true,
            State::Name => self.done > 0 && !self.form.list,
            _ => false,
        }
    }

    /// Outside the brackets of a call.
    fn between(&mut self, text: &str, at: usize, context: &Context<'_>, calls: &mut Calls) -> Go {
        let form = self.form;
        // In a list a comma is waited for; elsewhere it makes no difference how often a separator stands there.
        let skip = |c: char| c.is_ascii_whitespace() || (!form.list && self.done > 0 && form.separators.contains(&c));
        let at = at + (text.len() - at - text[at..].trim_start_matches(skip).len());
        let Some(first) = text[at..].chars().next() else { return Go::On(at) };
        let (state, next) = match (&self.state, first) {
            (State::List, '[') => (State::Name, at + 1),
            (State::List, _) => return Go::Stop(Step::Fail(at, "the list of calls is missing")),
            (State::Name, ']') if form.list && self.done > 0 => (State::End, at + 1),
            (State::Name, ']') if form.list => return Go::Stop(Step::Fail(at, "the list contains no call")),
            (State::After, ']') => (State::End, at + 1),
            (State::After, c) if c == ',' || form.separators.contains(&c) => (State::Name, at + 1),
            (State::After, _) => {
                return Go::Stop(Step::Fail(at, "a call is followed by neither a comma nor the closing bracket"));
            }
            _ => return self.name(text, at, context, calls),
        };
        self.state = state;
        Go::On(next)
    }

    /// A name, up to its bracket.
    fn name(&mut self, text: &str, at: usize, context: &Context<'_>, calls: &mut Calls) -> Go {
        let rest = &text[at..];
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
        let end = rest.find(|c| !plain(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let name = self.bare(word);
        if end > MAX_NAME {
            return self.no_name(at);
        }
        if end == rest.len() {
            let may = name.is_none_or(|name| context.may_become(name) || context.may_become(self.stem(name)));
            return if may { Go::Stop(Step::More(at)) } else { self.no_name(at) };
        }
        if !rest[end..].starts_with(self.form.open) || !word.ends_with(self.form.suffix) {
            return self.no_name(at);
        }
        let Some(name) = context.known(name.unwrap_or(word)) else { return self.no_name(at) };
        calls.begin(name, None);
        let (notation, positional) = match self.form.arguments {
            ArgumentStyle::Python => (Notation::Python, positional(context, name)),
            ArgumentStyle::Gemma { quote } => (Notation::Gemma { quote }, Vec::new()),
        };
        self.state = State::Arguments(Literal::arguments(notation, positional));
        Go::On(at + end + self.form.open.len_utf8())
    }

    /// A name without what may stand before it; `None` while it is no more than a part of that.
    fn bare<'t>(&self, word: &'t str) -> Option<&'t str> {
        let prefix = self.form.prefix;
        let name = match word.strip_prefix(prefix) {
            Some(name) => name,
            None if prefix.starts_with(word) => return None,
            None => word.strip_prefix(':').unwrap_or(word),
        };
        Some(name.strip_suffix(self.form.suffix).unwrap_or(name))
    }

    /// A name without the beginning of what may stand after it.
    fn stem<'t>(&self, name: &'t str) -> &'t str {
        match name.rfind('.') {
            Some(dot) if self.form.suffix.starts_with(&name[dot..]) => &name[..dot],
            _ => name,
        }
    }

    /// What stands at `at` is the name of no tool: after a call it is what follows the calls.
    fn no_name(&mut self, at: usize) -> Go {
        if self.form.list || self.done == 0 {
            return Go::Stop(Step::Fail(at, NO_TOOL));
        }
        self.state = State::End;
        Go::Stop(Step::Done(at))
    }

    fn arguments(&mut self, text: &str, at: usize, calls: &mut Calls) -> Go {
        let State::Arguments(literal) = &mut self.state else { return Go::On(at) };
        let before = calls.text.len();
        let step = literal.push(&text[at..], &mut calls.text);
        if calls.text.len() > before {
            calls.wrote();
        }
        let end = match step {
            Progress::More(n) => return Go::Stop(Step::More(at + n)),
            Progress::End(n) => at + n,
            Progress::Invalid(n, why) => return Go::Stop(Step::Fail(at + n, why)),
        };
        calls.done();
        self.done += 1;
        let (state, step) = match (self.form.list, self.form.separators) {
            (true, _) => (State::After, Step::Whole(end)),
            (false, []) => (State::End, Step::Done(end)),
            (false, _) => (State::Name, Step::Whole(end)),
        };
        self.state = state;
        Go::Stop(step)
    }
}

/// The names that arguments without one take: the tool's parameters, in the order of its schema.
fn positional(context: &Context<'_>, name: &str) -> Vec<String> {
    context.tools.map(|tools| tools.parameters(name).keys().map(str::to_owned).collect()).unwrap_or_default()
}
