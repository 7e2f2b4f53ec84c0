//! Parses an argument written as free text, as in ReAct's `Action Input: huts near Chur`: the
//! single string that the tool takes, or a JSON object.

use crate::calls::{Context, FoundCalls, ReadStep, Why};
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
    /// Creates the engine after the marker that precedes the text.
    pub(crate) fn new(form: &'static FreeText) -> Free {
        Free {
            form,
            json: None,
            has_begun: false,
            text: String::new(),
        }
    }

    /// Reads the next piece. Returns [`ReadStep::Done`] before the marker that ends the text, or
    /// after the JSON object.
    pub(crate) fn push(
        &mut self,
        text: &str,
        tool: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let mut from = 0;
        if !self.has_begun {
            from = text
                .bytes()
                .position(|c| !matches!(c, b' ' | b'\t'))
                .unwrap_or(text.len());
            let Some(first) = text.as_bytes().get(from) else {
                return ReadStep::More(from);
            };
            self.has_begun = true;
            self.json = (*first == b'{').then(Balance::default);
        }
        if let Some(balance) = &mut self.json {
            let end = balance.push(&text.as_bytes()[from..]).map(|n| from + n);
            let piece = &text[from..end.unwrap_or(text.len())];
            calls.arguments_until(piece, end.is_some().into());
            return end.map_or(ReadStep::More(text.len()), ReadStep::Done);
        }
        // The first complete marker, or a partial marker at the end of the text.
        for (at, _) in text[from..].char_indices() {
            match find(self.form.until, &text[from + at..]) {
                Match::Full(_) => {
                    self.text.push_str(&text[from..from + at]);
                    return match self.emit(tool, context, calls) {
                        Ok(()) => ReadStep::Done(from + at),
                        Err(why) => ReadStep::Fail(from + at, why),
                    };
                }
                Match::Partial => {
                    self.text.push_str(&text[from..from + at]);
                    return ReadStep::More(from + at);
                }
                Match::No => {}
            }
        }
        self.text.push_str(&text[from..]);
        ReadStep::More(text.len())
    }

    /// Ends the text, which was not cut off.
    ///
    /// # Errors
    /// Returns why the argument is incomplete, or why the tool does not accept it.
    pub(crate) fn finish(
        &mut self,
        tool: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), Why> {
        if self.json.is_some() {
            Err(Why::EndInArguments)
        } else {
            self.emit(tool, context, calls)
        }
    }

    fn emit(
        &mut self,
        tool: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Result<(), Why> {
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
            _ => return Err(Why::TooManyParameters),
        }
        Ok(())
    }
}

impl FreeText {
    /// Returns the text with each of its escapes decoded once.
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
