//! Calls written as expressions: `[f(a=1, b='x'), g()]`, a call a line,
//! `call:f{a:<|"|>x<|"|>,n:42}`.

#[cfg(test)]
mod tests;
mod write;

use crate::calls::{ArgumentsEnd, Context, FoundCalls, NO_TOOL, Step, is_name_char};
use crate::dialect::expression::{ArgumentStyle, ExpressionForm};
use json::{Literal, Notation, Progress};

/// A reader of such calls.
///
/// It returns [`Step::Whole`] after each call that another may follow. `Done` comes after the
/// bracket of a list; without a list, after the call, or, where several may follow each other,
/// before the first text that cannot begin another.
#[derive(Debug)]
pub(crate) struct Expression {
    form: &'static ExpressionForm,
    state: ExpressionState,
    /// How many calls are complete.
    done: usize,
}

#[derive(Debug)]
enum ExpressionState {
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

/// The longest name with its prefix, in bytes.
const MAX_NAME: usize = 256;

impl Expression {
    /// A reader before the first call.
    pub fn new(form: &'static ExpressionForm) -> Expression {
        Expression {
            form,
            state: if form.list {
                ExpressionState::List
            } else {
                ExpressionState::Name
            },
            done: 0,
        }
    }

    /// Takes the next piece. A name is taken and emitted with its opening bracket.
    pub fn push(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let step = match &mut self.state {
                ExpressionState::End => Step::Done(0),
                ExpressionState::Failed(why) => Step::Fail(0, why),
                ExpressionState::Arguments(_) => self.arguments(rest, calls),
                _ if rest.is_empty() => Step::More(0),
                ExpressionState::List | ExpressionState::Name | ExpressionState::After => {
                    self.between(rest, context, calls)
                }
            };
            if let Step::Fail(_, why) = step {
                self.state = ExpressionState::Failed(why);
            }
            match step {
                Step::On(n) => at += n,
                step => return step.after(at),
            }
        }
    }

    /// Whether the text may end here: every call that began is complete.
    pub fn may_end(&self) -> bool {
        match self.state {
            ExpressionState::End => true,
            ExpressionState::Name => self.done > 0 && !self.form.list,
            _ => false,
        }
    }

    /// Outside the brackets of a call.
    fn between(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        let form = self.form;
        // A list needs its comma. Elsewhere separators may be missing or repeated.
        let skip = |c: char| {
            c.is_ascii_whitespace() || (!form.list && self.done > 0 && separates(form, c))
        };
        let at = text.len() - text.trim_start_matches(skip).len();
        let Some(first) = text[at..].chars().next() else {
            return Step::On(at);
        };
        self.state = match (&self.state, first) {
            (ExpressionState::List, '[') => ExpressionState::Name,
            (ExpressionState::List, _) => return Step::Fail(at, "the list of calls is missing"),
            (ExpressionState::Name, ']') if form.list && self.done > 0 => ExpressionState::End,
            (ExpressionState::Name, ']') if form.list => {
                return Step::Fail(at, "the list contains no call");
            }
            (ExpressionState::After, ']') => ExpressionState::End,
            (ExpressionState::After, c) if c == ',' || form.separators.contains(&c) => {
                ExpressionState::Name
            }
            (ExpressionState::After, _) => {
                return Step::Fail(
                    at,
                    "a call is followed by neither a comma nor the closing bracket",
                );
            }
            _ => return self.name(&text[at..], context, calls).after(at),
        };
        Step::On(at + 1)
    }

    /// A name, up to its bracket.
    fn name(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
        let word = &text[..end];
        let name = self.bare(word);
        if end > MAX_NAME {
            return self.no_name();
        }
        if !name.is_none_or(|name| context.may_become(name) || context.may_become(self.stem(name)))
        {
            return self.no_name();
        }
        if end == text.len() {
            return Step::More(0);
        }
        if !text[end..].starts_with(self.form.open) || !word.ends_with(self.form.suffix) {
            return self.no_name();
        }
        let Some(name) = context.known(name.unwrap_or(word)) else {
            return self.no_name();
        };
        calls.begin(name, None);
        let (notation, positional) = match self.form.arguments {
            ArgumentStyle::Python => (Notation::Python, positional(context, name)),
            ArgumentStyle::Gemma { quote } => (Notation::Gemma { quote }, Vec::new()),
        };
        self.state = ExpressionState::Arguments(Literal::arguments(notation, positional));
        Step::On(end + self.form.open.len_utf8())
    }

    /// A name without its prefix and suffix; `None` while the text is only a part of the prefix.
    fn bare<'t>(&self, word: &'t str) -> Option<&'t str> {
        let prefix = self.form.prefix;
        let name = match word.strip_prefix(prefix) {
            Some(name) => name,
            None if prefix.starts_with(word) => return None,
            None => word.strip_prefix(':').unwrap_or(word),
        };
        Some(name.strip_suffix(self.form.suffix).unwrap_or(name))
    }

    /// A name without the beginning of its suffix.
    fn stem<'t>(&self, name: &'t str) -> &'t str {
        match name.rfind('.') {
            Some(dot) if self.form.suffix.starts_with(&name[dot..]) => &name[..dot],
            _ => name,
        }
    }

    /// The text is not the name of a tool: after a call it is what follows the calls.
    fn no_name(&mut self) -> Step {
        if self.form.list || self.done == 0 {
            return Step::Fail(0, NO_TOOL);
        }
        self.state = ExpressionState::End;
        Step::Done(0)
    }

    fn arguments(&mut self, text: &str, calls: &mut FoundCalls) -> Step {
        let ExpressionState::Arguments(literal) = &mut self.state else {
            return Step::On(0);
        };
        let before = calls.text.len();
        let progress = literal.push(text, &mut calls.text);
        calls.end = if let Progress::End(_) = progress {
            ArgumentsEnd::Here
        } else {
            ArgumentsEnd::Later
        };
        if calls.text.len() > before {
            calls.wrote();
        }
        let end = match progress {
            Progress::More(n) => return Step::More(n),
            Progress::End(n) => n,
            Progress::Invalid(n, why) => return Step::Fail(n, why),
        };
        calls.done();
        self.done += 1;
        let (state, step) = match (self.form.list, separates(self.form, ',')) {
            (true, _) => (ExpressionState::After, Step::Whole(end)),
            (false, true) => (ExpressionState::Name, Step::Whole(end)),
            (false, false) => (ExpressionState::End, Step::Done(end)),
        };
        self.state = state;
        step
    }
}

/// Whether a character may be between two calls. Gemma writes a frame for each call, and at times
/// several calls in one.
fn separates(form: &ExpressionForm, c: char) -> bool {
    form.separators.contains(&c)
        || (c == ',' && matches!(form.arguments, ArgumentStyle::Gemma { .. }))
}

/// The names for positional arguments: the tool's parameters, in the order of its schema.
fn positional(context: &Context<'_>, name: &str) -> Vec<String> {
    context
        .tools
        .map(|tools| tools.parameters(name).keys().map(str::to_owned).collect())
        .unwrap_or_default()
}
