//! Questions that are made of the lines of a file.

use event::Raw;
use std::borrow::Cow;

/// One line of a file of inputs, without its line end: a JSON object or string, or text.
#[derive(Clone, Copy, Debug)]
pub struct InputLine<'l> {
    text: &'l str,
    json: Option<Raw<'l>>,
}

impl<'l> InputLine<'l> {
    /// Reads a line. What is neither a JSON object nor a JSON string is text. Returns `None` for a
    /// line of white space.
    pub fn read(line: &'l str) -> Option<InputLine<'l>> {
        let text = line.trim_end_matches(['\r', '\n']);
        let json = Raw::parse(text.trim())
            .ok()
            .filter(|json| json.is_object() || json.is_str());
        (!text.trim().is_empty()).then_some(InputLine { text, json })
    }

    /// Returns the line as JSON: an object or a string as it was written, text as a string.
    pub fn json(&self) -> String {
        match self.json {
            Some(json) => event::safe_json(json.text()).into_owned(),
            None => event::quoted(self.text),
        }
    }

    /// Returns the line as text: the content of a string, anything else as it was written.
    pub fn text(&self) -> Cow<'l, str> {
        let content = self.json.and_then(Raw::str);
        content.unwrap_or(Cow::Borrowed(self.text))
    }

    /// Returns the line if it is an object.
    pub fn object(&self) -> Option<Raw<'l>> {
        self.json.filter(|json| json.is_object())
    }
}

/// A question with places for the members of a line, such as `Translate {{.text}} into {{.to}}`.
#[derive(Clone, Debug)]
pub struct QuestionTemplate {
    /// Each text with the path of the member after it.
    parts: Vec<(String, Vec<String>)>,
    /// The text after the last place.
    end: String,
}

impl QuestionTemplate {
    /// Reads a template. `{{.}}` is the place of the whole line, `{{.a.b}}` that of a member. Other
    /// braces are text. A template without a place is followed by the line.
    pub fn read(text: &str) -> QuestionTemplate {
        let mut parts = Vec::new();
        let mut end = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            end.push_str(before);
            match after
                .split_once("}}")
                .and_then(|(name, after)| Some((path(name)?, after)))
            {
                Some((path, after)) => {
                    parts.push((std::mem::take(&mut end), path));
                    rest = after;
                }
                None => {
                    end.push_str("{{");
                    rest = after;
                }
            }
        }
        end.push_str(rest);
        QuestionTemplate { parts, end }
    }

    /// Returns the question about a line.
    ///
    /// # Errors
    /// If the line lacks a member; the error names it.
    pub fn fill(&self, line: &InputLine<'_>) -> Result<String, String> {
        let mut question = String::new();
        for (text, path) in &self.parts {
            question.push_str(text);
            if path.is_empty() {
                question.push_str(&line.text());
                continue;
            }
            let member = path.iter().try_fold(line.object(), |value, name| {
                let value = value?.get(name)?;
                Some(Some(value))
            });
            let Some(member) = member.flatten() else {
                return Err(format!(
                    "the input has no .{}, which the question names",
                    path.join(".")
                ));
            };
            match member.str() {
                Some(text) => question.push_str(&text),
                None => question.push_str(member.text()),
            }
        }
        question.push_str(&self.end);
        if self.parts.is_empty() {
            let gap = if question.is_empty() { "" } else { "\n\n" };
            question.push_str(gap);
            question.push_str(&line.text());
        }
        Ok(question)
    }
}

/// Returns the path of a place, from between its braces; empty for the whole line.
fn path(place: &str) -> Option<Vec<String>> {
    let names = place.trim().strip_prefix('.')?;
    if names.is_empty() {
        return Some(Vec::new());
    }
    let is_name = |name: &str| {
        let mut chars = name.chars();
        !name.is_empty() && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let names = names.split('.');
    names
        .map(|name| is_name(name).then(|| name.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_places_in_the_question_or_follows_it() {
        let object = r#"{"name":"Zoë","at":{"n":1.50},"list":[1, "a"]}"#;
        for (template, line, question) in [
            ("", "one\r\n", "one"),
            ("Say:", "one", "Say:\n\none"),
            ("Say:", r#""two\nlines""#, "Say:\n\ntwo\nlines"),
            ("{{.}}!", object, &format!("{object}!")),
            (
                "{{.name}}/{{ .at.n }}/{{.list}}",
                object,
                r#"Zoë/1.50/[1, "a"]"#,
            ),
            // What is no place stays, and what is filled in is no template.
            (
                "{{x}} {{.}} {{.a b}} {{",
                "{{.}}",
                "{{x}} {{.}} {{.a b}} {{",
            ),
            ("[1]", "[1]", "[1]\n\n[1]"),
        ] {
            let line = InputLine::read(line).expect("it is not blank");
            let filled = QuestionTemplate::read(template).fill(&line);
            assert_eq!(filled.as_deref(), Ok(question), "{template}");
        }
        for line in [object, "text", r#""text""#] {
            let line = InputLine::read(line).expect("it is not blank");
            let error = QuestionTemplate::read("{{.at.m}}").fill(&line);
            assert_eq!(
                error.expect_err("no member"),
                "the input has no .at.m, which the question names"
            );
        }
        assert!(InputLine::read(" \t\r\n").is_none());
    }

    #[test]
    fn an_input_is_written_as_it_came() {
        for (line, json) in [
            ("a \"b\"\n", r#""a \"b\"""#),
            (r#"{"a": 1.0}"#, r#"{"a": 1.0}"#),
            (r#"{"a": 1.0"#, r#""{\"a\": 1.0""#),
            (r#""x""#, r#""x""#),
            ("17", r#""17""#),
            ("\u{9b}", r#""\u009b""#),
        ] {
            assert_eq!(InputLine::read(line).expect("a line").json(), json);
        }
    }
}
