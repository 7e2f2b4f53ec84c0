//! An argument as free text, as in ReAct's `Action Input: huts near Chur`: the one string that the
//! tool takes, or a JSON object.

use crate::calls::{ArgumentsEnd, Context, FoundCalls, Step};
use crate::dialect::FreeText;
use crate::mark::{Match, find};
use json::Balance;
use std::borrow::Cow;

/// The engine; see the module.
#[derive(Debug)]
pub(crate) struct Free {
    form: &'static FreeText,
    json: Option<Balance>,
    has_begun: bool,
    text: String,
}

impl Free {
    /// Begins after the marker before the text.
    pub fn new(form: &'static FreeText) -> Free {
        Free {
            form,
            json: None,
            has_begun: false,
            text: String::new(),
        }
    }

    /// Takes the next piece. [`Step::Done`] is returned before the marker that ends the text, or
    /// after the JSON object.
    pub fn push(
        &mut self,
        text: &str,
        tool: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Step {
        let mut from = 0;
        if !self.has_begun {
            from = text
                .bytes()
                .position(|c| !matches!(c, b' ' | b'\t'))
                .unwrap_or(text.len());
            let Some(first) = text.as_bytes().get(from) else {
                return Step::More(from);
            };
            self.has_begun = true;
            self.json = (*first == b'{').then(Balance::default);
        }
        if let Some(balance) = &mut self.json {
            return match balance.push(&text.as_bytes()[from..]) {
                Some(n) => {
                    calls.arguments_until(&text[from..from + n], ArgumentsEnd::Here);
                    Step::Done(from + n)
                }
                None => {
                    calls.arguments_until(&text[from..], ArgumentsEnd::Later);
                    Step::More(text.len())
                }
            };
        }
        // The first marker, or a marker that the text ends in.
        for (at, _) in text[from..].char_indices() {
            match find(self.form.until, &text[from + at..]) {
                Match::Full(_) => {
                    self.text.push_str(&text[from..from + at]);
                    return match self.emit(tool, context, calls) {
                        Ok(()) => Step::Done(from + at),
                        Err(why) => Step::Fail(from + at, why),
                    };
                }
                Match::Partial => {
                    self.text.push_str(&text[from..from + at]);
                    return Step::More(from + at);
                }
                Match::No => {}
            }
        }
        self.text.push_str(&text[from..]);
        Step::More(text.len())
    }

    /// The text has ended, and was not cut.
    ///
    /// # Errors
    /// Why the argument is not complete, or not one that the tool takes.
    pub fn finish(
        &mut self,
        tool: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), &'static str> {
        if self.json.is_some() {
            Err("the text ends inside the arguments")
        } else {
            self.emit(tool, context, calls)
        }
    }

    fn emit(
        &mut self,
        tool: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), &'static str> {
        let text = self.form.plain(self.text.trim_end().trim_ascii_start());
        let text = text.as_ref();
        let parameters = context
            .tools
            .map(|tools| tools.parameters(tool))
            .filter(json::ValueType::is_known);
        let keys: Vec<&str> = parameters
            .as_ref()
            .map_or_else(|| vec!["input"], |parameters| parameters.keys().collect());
        match (&keys[..], parameters) {
            ([], _) if text.is_empty() => calls.arguments("{}"),
            ([key], parameters) => {
                calls.arguments(&format!("{{{}:", event::quoted(key)));
                match parameters {
                    Some(parameters) => {
                        parameters.property(key).convert(text, &mut calls.text);
                        calls.wrote();
                    }
                    None => calls.arguments(&event::quoted(text)),
                }
                calls.arguments("}");
            }
            _ => return Err("the input is free text, but the tool takes more than one string"),
        }
        Ok(())
    }
}

impl FreeText {
    /// The text with each of its escapes replaced once.
    fn plain<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        let mut rest = text;
        let escape = |at: &str| {
            self.escapes
                .iter()
                .find(|(escaped, _)| at.starts_with(escaped))
        };
        while let Some((at, (escaped, meant))) = rest
            .match_indices('[')
            .find_map(|(n, _)| Some((n, escape(&rest[n..])?)))
        {
            out.extend([&rest[..at], meant]);
            rest = &rest[at + escaped.len()..];
        }
        if rest.len() == text.len() {
            return Cow::Borrowed(text);
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}
