//! Parses calls written as expressions: `[f(a=1, b='x'), g()]`, one call per line,
//! `call:f{a:<|"|>x<|"|>,n:42}`.

use crate::calls::{Context, FoundCalls, ReadStep, Why, is_name_char};
use crate::dialect::{ArgumentStyle, ExpressionForm};
use json::{Literal, LiteralProgress, Notation};

/// A reader of call expressions.
///
/// Returns [`ReadStep::Whole`] after each call that another call may follow. `Done` is returned
/// after the bracket that ends a list. Without a list it is returned after the call, or, if several
/// calls may follow each other, before the first text that cannot begin another call.
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
    Failed(Why),
}

/// The maximum length of a name with its prefix, in bytes.
const MAX_NAME: usize = 256;

impl Expression {
    /// Creates a reader before the first call.
    pub(crate) fn new(form: &'static ExpressionForm) -> Expression {
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

    /// Reads the next piece. A name is consumed and emitted together with its opening bracket.
    pub(crate) fn push(
        &mut self,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> ReadStep {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let step = match &mut self.state {
                ExpressionState::End => ReadStep::Done(0),
                ExpressionState::Failed(why) => ReadStep::Fail(0, *why),
                ExpressionState::Arguments(_) => self.arguments(rest, calls),
                _ if rest.is_empty() => ReadStep::More(0),
                ExpressionState::List | ExpressionState::Name | ExpressionState::After => {
                    self.between(rest, context, calls)
                }
            };
            if let ReadStep::Fail(_, why) = step {
                self.state = ExpressionState::Failed(why);
            }
            match step {
                ReadStep::On(n) => at += n,
                step => return step.after(at),
            }
        }
    }

    /// Whether the text may end here: every call that began is complete.
    pub(crate) fn may_end(&self) -> bool {
        match self.state {
            ExpressionState::End => true,
            ExpressionState::Name => self.done > 0 && !self.form.list,
            _ => false,
        }
    }

    /// Reads text outside the brackets of a call.
    fn between(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
        let form = self.form;
        // A list requires its commas. Elsewhere separators may be missing or repeated.
        let skip = |c: char| {
            c.is_ascii_whitespace() || (!form.list && self.done > 0 && separates(form, c))
        };
        let at = text.len() - text.trim_start_matches(skip).len();
        let Some(first) = text[at..].chars().next() else {
            return ReadStep::On(at);
        };
        self.state = match (&self.state, first) {
            (ExpressionState::List, '[') => ExpressionState::Name,
            (ExpressionState::List, _) => return ReadStep::Fail(at, Why::NoList),
            (ExpressionState::Name, ']') if form.list && self.done > 0 => ExpressionState::End,
            (ExpressionState::Name, ']') if form.list => {
                return ReadStep::Fail(at, Why::EmptyList);
            }
            (ExpressionState::After, ']') => ExpressionState::End,
            (ExpressionState::After, c) if c == ',' || form.separators.contains(&c) => {
                ExpressionState::Name
            }
            (ExpressionState::After, _) => {
                return ReadStep::Fail(at, Why::NoComma);
            }
            _ => return self.name(&text[at..], context, calls).after(at),
        };
        ReadStep::On(at + 1)
    }

    /// Reads a name up to its bracket.
    fn name(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> ReadStep {
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
            return ReadStep::More(0);
        }
        let is_round = matches!(self.form.arguments, ArgumentStyle::Gemma { .. })
            && text[end..].starts_with('(');
        if !(is_round || text[end..].starts_with(self.form.open))
            || !word.ends_with(self.form.suffix)
        {
            return self.no_name();
        }
        let written = name.unwrap_or(word);
        let Some(name) = context.known(written) else {
            return self.no_name();
        };
        calls.written(written, name, context);
        calls.begin(name, None);
        self.state = ExpressionState::Arguments(match self.form.arguments {
            ArgumentStyle::Python => {
                Literal::arguments(Notation::Python, positional(context, name))
            }
            ArgumentStyle::Gemma { quote } if is_round => Literal::in_round_brackets(quote),
            ArgumentStyle::Gemma { quote } => {
                Literal::arguments(Notation::Gemma { quote }, Vec::new())
            }
        });
        ReadStep::On(end + self.form.open.len_utf8())
    }

    /// Returns a name without its prefix and suffix, or `None` while the text is only part of the
    /// prefix.
    fn bare<'t>(&self, word: &'t str) -> Option<&'t str> {
        let prefix = self.form.prefix;
        let name = match word.strip_prefix(prefix) {
            Some(name) => name,
            None if prefix.starts_with(word) => return None,
            None => word.strip_prefix(':').unwrap_or(word),
        };
        Some(name.strip_suffix(self.form.suffix).unwrap_or(name))
    }

    /// Returns a name without the beginning of its suffix.
    fn stem<'t>(&self, name: &'t str) -> &'t str {
        match name.rfind('.') {
            Some(dot) if self.form.suffix.starts_with(&name[dot..]) => &name[..dot],
            _ => name,
        }
    }

    /// Handles a text that is not a tool name: after a call it is the text that follows the calls.
    fn no_name(&mut self) -> ReadStep {
        if self.form.list || self.done == 0 {
            return ReadStep::Fail(0, Why::NoTool);
        }
        self.state = ExpressionState::End;
        ReadStep::Done(0)
    }

    fn arguments(&mut self, text: &str, calls: &mut FoundCalls) -> ReadStep {
        let ExpressionState::Arguments(literal) = &mut self.state else {
            return ReadStep::On(0);
        };
        let before = calls.text.len();
        let progress = literal.push(text, &mut calls.text);
        calls.end = matches!(progress, LiteralProgress::End(_)).into();
        if calls.text.len() > before {
            calls.wrote();
        }
        let end = match progress {
            LiteralProgress::More(n) => return ReadStep::More(n),
            LiteralProgress::End(n) => n,
            LiteralProgress::Invalid(n, why) => return ReadStep::Fail(n, Why::Literal(why)),
        };
        calls.done();
        self.done += 1;
        let (state, step) = match (self.form.list, separates(self.form, ',')) {
            (true, _) => (ExpressionState::After, ReadStep::Whole(end)),
            (false, true) => (ExpressionState::Name, ReadStep::Whole(end)),
            (false, false) => (ExpressionState::End, ReadStep::Done(end)),
        };
        self.state = state;
        step
    }
}

/// Whether a character may be between two calls. Gemma writes a frame for each call, but sometimes
/// several calls in one frame.
fn separates(form: &ExpressionForm, c: char) -> bool {
    form.separators.contains(&c)
        || (c == ',' && matches!(form.arguments, ArgumentStyle::Gemma { .. }))
}

/// Returns the names for positional arguments: the tool's parameters, in the schema's order.
fn positional(context: &Context<'_>, name: &str) -> Vec<String> {
    context
        .tools
        .map(|tools| tools.parameters(name).keys().map(str::to_owned).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PromptCall;
    use crate::calls::ArgumentsEnd;
    use crate::calls::Op;
    use json::ToolList;
    use proptest::prelude::*;
    use serde_json::Value;

    static PYTHONIC: ExpressionForm = ExpressionForm {
        arguments: ArgumentStyle::Python,
        prefix: "",
        suffix: "",
        open: '(',
        list: true,
        separators: &[],
    };
    static LINES: ExpressionForm = ExpressionForm {
        arguments: ArgumentStyle::Python,
        prefix: "",
        suffix: "",
        open: '(',
        list: false,
        separators: &['\n', ','],
    };
    static ONE: ExpressionForm = ExpressionForm {
        arguments: ArgumentStyle::Python,
        prefix: "",
        suffix: "",
        open: '(',
        list: false,
        separators: &[],
    };
    static GEMMA: ExpressionForm = ExpressionForm {
        arguments: ArgumentStyle::Gemma { quote: "<|\"|>" },
        prefix: "call:",
        suffix: "",
        open: '{',
        list: false,
        separators: &[],
    };
    static FUNCTION_GEMMA: ExpressionForm = ExpressionForm {
        arguments: ArgumentStyle::Gemma { quote: "<escape>" },
        prefix: "call:",
        suffix: "",
        open: '{',
        list: false,
        separators: &[],
    };

    /// Reads a text and returns the calls (incomplete ones end in `…`), how the reader ended, and
    /// the remaining text.
    fn feed(
        form: &'static ExpressionForm,
        context: &Context<'_>,
        pieces: &[&str],
    ) -> (Vec<String>, String) {
        let mut expression = Expression::new(form);
        let mut calls = FoundCalls::default();
        let mut rest = String::new();
        let mut left = pieces.iter().copied();
        let mut more = true;
        let end = loop {
            if more {
                let Some(piece) = left.next() else {
                    break format!(
                        "{} {rest:?}",
                        if expression.may_end() {
                            "ends"
                        } else {
                            "is cut"
                        }
                    );
                };
                rest.push_str(piece);
            }
            let step = expression.push(&rest, context, &mut calls);
            match step {
                ReadStep::On(n) | ReadStep::More(n) | ReadStep::Whole(n) => rest.drain(..n),
                ReadStep::Done(n) => {
                    rest.drain(..n);
                    rest.extend(left);
                    break format!("done {rest:?}");
                }
                ReadStep::Back(n) => break format!("! back {n}"),
                ReadStep::Fail(_, why) => break format!("! {why}"),
            };
            more = matches!(step, ReadStep::More(_));
            assert!(rest.len() <= MAX_NAME || !more, "{rest:?} is held");
        };
        let mut found = Vec::<String>::new();
        let mut at = 0;
        for op in &calls.ops {
            match *op {
                Op::Name(to) => {
                    found.push(calls.text[std::mem::replace(&mut at, to)..to].to_owned() + " ")
                }
                Op::Arguments(to, _) => found
                    .last_mut()
                    .unwrap()
                    .push_str(&calls.text[std::mem::replace(&mut at, to)..to]),
                Op::Done => found.last_mut().unwrap().push('\0'),
                Op::Note(to, "name_repaired", _) => at = to,
                Op::Id(_) | Op::Note(..) => panic!("{op:?}"),
            }
        }
        assert_eq!(
            found.iter().filter(|call| call.ends_with('\0')).count(),
            expression.done
        );
        let mut found: Vec<String> = found
            .into_iter()
            .map(|call| {
                call.strip_suffix('\0')
                    .map_or(format!("{call}…"), str::to_owned)
            })
            .collect();
        // How much of a failed call was emitted depends on the split.
        if end.starts_with('!') {
            for call in found.iter_mut().filter(|call| call.ends_with('…')) {
                *call = call.split(' ').next().unwrap_or_default().to_owned() + " …";
            }
        }
        (found, end)
    }

    /// Returns the result, which must be the same for the whole text, for every split in two, and
    /// for single characters.
    fn read(
        form: &'static ExpressionForm,
        context: &Context<'_>,
        text: &str,
    ) -> (Vec<String>, String) {
        let whole = feed(form, context, &[text]);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(
                feed(form, context, &[&text[..at], &text[at..]]),
                whole,
                "{text:?} cut at {at}"
            );
        }
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(
            feed(
                form,
                context,
                &single.iter().map(String::as_str).collect::<Vec<_>>()
            ),
            whole,
            "{text:?}"
        );
        whole
    }

    fn tools() -> ToolList {
        let parameters = r#"{"type":"object","properties":{"zone":{},"at":{},"by":{}}}"#;
        ToolList::read(&format!(
        r#"[{{"name":"f","parameters":{parameters}}},{{"name":"g"}},{{"name":"Calendar.create"}},{{"name":"c"}}]"#
    ))
    .unwrap()
    }

    fn table(
        form: &'static ExpressionForm,
        tools: Option<&ToolList>,
        rows: &[(&str, &[&str], &str)],
    ) {
        // A strict reading rejects unlisted names; otherwise the parser does.
        let context = Context {
            tools,
            strict: tools.is_some(),
        };
        for (text, calls, end) in rows {
            let (found, ended) = read(form, &context, text);
            assert_eq!(
                (found, ended.as_str()),
                (calls.iter().map(|c| (*c).to_owned()).collect(), *end),
                "{text:?}"
            );
        }
    }

    #[test]
    fn lists() {
        let rows: &[(&str, &[&str], &str)] = &[
            (
                "[f(a=1, b='x'), g()] after",
                &[r#"f {"a":1,"b":"x"}"#, "g {}"],
                r#"done " after""#,
            ),
            (" [ f ( a=1)]", &[], "! the tool is not in the list"),
            (
                "[\n  f(a=']'),\n  g(b=[1, (2, 3)]),\n]",
                &[r#"f {"a":"]"}"#, r#"g {"b":[1,[2,3]]}"#],
                r#"done """#,
            ),
            (
                "[Calendar.create(title='é 日😀')]",
                &[r#"Calendar.create {"title":"é 日😀"}"#],
                r#"done """#,
            ),
            ("[functions.f(a=1)]", &[r#"f {"a":1}"#], r#"done """#),
            (
                "[f('x', 2, by=None)]",
                &[r#"f {"zone":"x","at":2,"by":null}"#],
                r#"done """#,
            ),
            ("[f(1, 2, 3, 4)]", &["f …"], "! an argument has no name"),
            ("[g(1)]", &["g …"], "! an argument has no name"),
            (
                "[f(a=1) g()]",
                &[r#"f {"a":1}"#],
                "! a call is followed by neither a comma nor the closing bracket",
            ),
            (
                "[f(a=1), h()]",
                &[r#"f {"a":1}"#],
                "! the tool is not in the list",
            ),
            (
                "[f(a=1), and]",
                &[r#"f {"a":1}"#],
                "! the tool is not in the list",
            ),
            ("[]", &[], "! the list contains no call"),
            ("[,f()]", &[], "! the tool is not in the list"),
            ("[1, 2]", &[], "! the tool is not in the list"),
            ("[text](http://x)", &[], "! the tool is not in the list"),
            ("[h(a=1)]", &[], "! the tool is not in the list"),
            ("f(a=1)", &[], "! the list of calls is missing"),
            ("[f(a=1)", &[r#"f {"a":1}"#], r#"is cut """#),
            ("[f(a=1, b='x", &[r#"f {"a":1,"b":"x…"#], r#"is cut """#),
            ("[f", &[], r#"is cut "f""#),
            ("", &[], r#"is cut """#),
        ];
        table(&PYTHONIC, Some(&tools()), rows);
        let rows: &[(&str, &[&str], &str)] = &[
            ("[h(a=1)]", &[r#"h {"a":1}"#], r#"done """#),
            ("[名前(a=1)]", &[r#"名前 {"a":1}"#], r#"done """#),
            ("[h(1)]", &["h …"], "! an argument has no name"),
            ("[1h(a=1)]", &[], "! the tool is not in the list"),
        ];
        table(&PYTHONIC, None, rows);
    }

    #[test]
    fn calls_without_a_list() {
        let rows: &[(&str, &[&str], &str)] = &[
            (
                "\nf(a=1)\ng(b=true)\n</function_calls>",
                &[r#"f {"a":1}"#, r#"g {"b":true}"#],
                r#"done "</function_calls>""#,
            ),
            ("f(a=1)\n```", &[r#"f {"a":1}"#], r#"done "```""#),
            ("f(a=1), g()", &[r#"f {"a":1}"#, "g {}"], r#"ends """#),
            ("f()\n\n g()\n", &["f {}", "g {}"], r#"ends """#),
            ("f()\nThat is all.", &["f {}"], r#"done "That is all.""#),
            ("f()\nh(a=1)", &["f {}"], r#"done "h(a=1)""#),
            ("f()\ng is next", &["f {}"], r#"done "g is next""#),
            ("f()\ng", &["f {}"], r#"ends "g""#),
            ("f()\ng(", &["f {}", "g {…"], r#"is cut """#),
            (
                "f()\ng(a=[}",
                &["f {}", "g …"],
                "! unexpected text where a value should begin",
            ),
            ("g is not called", &[], "! the tool is not in the list"),
        ];
        table(&LINES, Some(&tools()), rows);
        table(
            &ONE,
            Some(&tools()),
            &[("f(a=1)\ng()", &[r#"f {"a":1}"#], r#"done "\ng()""#)],
        );
    }

    #[test]
    fn calls_of_gemma() {
        let rows: &[(&str, &[&str], &str)] = &[
            (
                "call:f{a:<|\"|>x<|\"|>,n:42}<tool_call|>",
                &[r#"f {"a":"x","n":42}"#],
                r#"done "<tool_call|>""#,
            ),
            (
                ":f{o:{k:true},l:[1,2]}",
                &[r#"f {"o":{"k":true},"l":[1,2]}"#],
                r#"ends """#,
            ),
            ("f{a:null}", &[r#"f {"a":null}"#], r#"ends """#),
            ("call:c{}", &["c {}"], r#"ends """#),
            ("c{}", &["c {}"], r#"ends """#),
            ("call:functions.f{}", &["f {}"], r#"ends """#),
            (
                "call:c{}call:f{n:1}<tool_call|>",
                &["c {}", r#"f {"n":1}"#],
                r#"done "<tool_call|>""#,
            ),
            ("call:c{}, call:c{} So", &["c {}", "c {}"], r#"done "So""#),
            ("call:h{}", &[], "! the tool is not in the list"),
            ("call:f(a=1)", &["f {\"a\":1}"], r#"ends """#),
            (
                "call:f(zone: \"x)\", at=None, by: 'y', n: [1, {a:b}])<t",
                &[r#"f {"zone":"x)","at":null,"by":"y","n":[1,{"a":"b"}]}"#],
                r#"done "<t""#,
            ),
            (
                "call:f(zone: Oslo (Norway))",
                &["f …"],
                "! a value is followed by neither a comma nor the closing bracket",
            ),
            ("call f{}", &[], "! the tool is not in the list"),
            ("call:f", &[], r#"is cut "call:f""#),
            ("call:f{a:<|\"|>x<|", &["f {\"a\":\"x…"], r#"is cut "<|""#),
        ];
        table(&GEMMA, Some(&tools()), rows);
        let rows: &[(&str, &[&str], &str)] = &[(
            "call:f{a:<escape>x<escape>,n:3}<end_function_call>",
            &[r#"f {"a":"x","n":3}"#],
            r#"done "<end_function_call>""#,
        )];
        table(&FUNCTION_GEMMA, None, rows);
    }

    #[test]
    fn a_call_is_said_as_it_comes() {
        let tools = tools();
        let context = Context {
            tools: Some(&tools),
            strict: true,
        };
        let mut expression = Expression::new(&PYTHONIC);
        let mut calls = FoundCalls::default();
        assert_eq!(
            expression.push("[f", &context, &mut calls),
            ReadStep::More(1)
        );
        assert!(calls.ops.is_empty());
        assert_eq!(
            expression.push("f(", &context, &mut calls),
            ReadStep::More(2)
        );
        assert_eq!(
            (calls.ops.as_slice(), calls.text.as_str()),
            (
                [Op::Name(1), Op::Arguments(2, ArgumentsEnd::Later)].as_slice(),
                "f{"
            )
        );
        assert_eq!(
            expression.push("at='noo", &context, &mut calls),
            ReadStep::More(7)
        );
        assert_eq!(
            (calls.ops[1], calls.text.as_str()),
            (Op::Arguments(11, ArgumentsEnd::Later), r#"f{"at":"noo"#)
        );
        assert_eq!(
            expression.push("n'), g", &context, &mut calls),
            ReadStep::Whole(3)
        );
        assert_eq!(calls.ops.last(), Some(&Op::Done));
        assert_eq!(
            expression.push("], x", &context, &mut calls),
            ReadStep::Done(1)
        );
    }

    #[test]
    fn the_text_of_calls() {
        let call = |name, arguments| PromptCall {
            id: "",
            name,
            arguments,
        };
        let calls = [
            call(
                "f",
                r#"{"a":"it's \"x\"\n","n":1.50,"b":[true,null,{"k":false}]}"#,
            ),
            call("Calendar.create", "{}"),
            call("g", r#"{"a b":"<|\"|>","":{"c:d":"日\u001b"},"<|\"|>":1}"#),
        ];
        assert_eq!(
            PYTHONIC.write(&calls),
            concat!(
                r#"[f(a="it's \"x\"\n", n=1.50, b=[True, None, {"k": False}]), Calendar.create(), "#,
                r#"g(**{"a b": "<|\"|>"}, **{"": {"c:d": "日\u001b"}}, **{"<|\"|>": 1})]"#
            )
        );
        assert_eq!(LINES.write(&calls[1..2]), "Calendar.create()");
        assert_eq!(
            LINES.write(&[calls[1], call("g", "no JSON")]),
            "Calendar.create()\ng()"
        );
        assert_eq!(
            GEMMA.write(&calls[..1]),
            "call:f{a:<|\"|>it's \"x\"\n<|\"|>,n:1.50,b:[true,null,{k:false}]}"
        );
        assert_eq!(
            GEMMA.write(&calls[2..]),
            "call:g{<|\"|>a b<|\"|>:\"\\u003c|\\\"|>\",<|\"|><|\"|>:{<|\"|>c:d<|\"|>:<|\"|>日\u{1b}<|\"|>},\"\\u003c|\\\"|>\":1}"
        );
    }

    fn text() -> impl Strategy<Value = String> {
        let parts = [
            "<|\"|>", "<|\"", "<escape>", "<", "'", "\"\"\"", "\\", "\\n", "}", "]", ")", ",", ":",
            "=", " ", "\n", "\u{1b}", "\u{9b}", "日", "😀", "a", "b c", "True", "1",
        ];
        prop_oneof![
            3 => prop::collection::vec(prop::sample::select(parts.to_vec()), 0..6).prop_map(|v| v.concat()),
            1 => any::<String>(),
        ]
    }

    fn json() -> impl Strategy<Value = Value> {
        let number = prop::sample::select(vec![
            "0",
            "-0",
            "1",
            "-12",
            "1.50",
            "1e400",
            "-2.5E-3",
            "123456789012345678901234567890",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            number.prop_map(|n| serde_json::from_str(n).unwrap()),
            text().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec((text(), inner), 0..5)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    /// Generates texts from parts of calls.
    fn soup() -> impl Strategy<Value = String> {
        let tokens = [
            "[", "]", "f(", "g(", "f{", "call:", ":", "f", "a=", "a:", "1", "'x'", "<|\"|>",
            "<escape>", ")", "}", ",", "\n", " ", "\\", "日", "<", "(", "{", "**", "None",
        ];
        prop::collection::vec(prop::sample::select(tokens.to_vec()), 0..24).prop_map(|v| v.concat())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(all in prop::collection::vec(prop::collection::vec((text(), json()), 0..4), 1..4)) {
            let all: Vec<String> = all.into_iter().map(|m| Value::Object(m.into_iter().collect()).to_string()).collect();
            let calls: Vec<PromptCall<'_>> = all.iter().map(|arguments| PromptCall { id: "", name: "f", arguments }).collect();
            let context = Context { tools: None, strict: false };
            for form in [&PYTHONIC, &LINES, &ONE, &GEMMA, &FUNCTION_GEMMA] {
                let several = form.list || !form.separators.is_empty();
                let calls = if several { &calls[..] } else { &calls[..1] };
                let text = form.write(calls);
                let (found, end) = feed(form, &context, &[&text]);
                prop_assert!(end == r#"done """# || end == r#"ends """#, "{end} {text}");
                prop_assert_eq!(found.len(), calls.len());
                for (found, call) in found.iter().zip(calls) {
                    let found: Value = serde_json::from_str(found.strip_prefix("f ").unwrap()).unwrap();
                    prop_assert_eq!(found.to_string(), call.arguments, "{}", text);
                }
            }
        }

        #[test]
        fn no_text_panics_and_no_cut_shows(text in prop_oneof![soup(), any::<String>()]) {
            let tools = tools();
            for form in [&PYTHONIC, &LINES, &ONE, &GEMMA, &FUNCTION_GEMMA] {
                for tools in [None, Some(&tools)] {
                    read(form, &Context { tools, strict: tools.is_some() }, &text);
                }
            }
        }
    }
}
