//! The comment block that describes a program: a part of the notation of argc
//! (<https://github.com/sigoden/argc/blob/main/docs/specification.md>), as in the tools of aichat.

use serde_json::{Map, Number, Value, json};

/// What a comment block says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Header {
    /// The name of the tool, if it is not that of the file: `@meta name`.
    pub(crate) name: Option<String>,
    /// What the tool does: `@describe`; a program without it has no description here.
    pub(crate) description: Option<String>,
    /// The option to which the program answers with its description: `@meta schema`.
    pub(crate) schema: Option<String>,
    /// Its arguments: `@option`, `@flag` and `@arg`.
    pub(crate) parameters: Vec<Parameter>,
    /// The variables of the environment that it gets: `@env`.
    pub(crate) env: Vec<String>,
    /// Members of `exec`: `@meta class`, `@meta timeout` and the like.
    pub(crate) exec: Map<String, Value>,
}

/// An argument of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// Its name.
    pub(crate) name: String,
    /// How it reaches the program.
    pub(crate) kind: ParameterKind,
    /// The type of a value of its own, or of each element of a list.
    pub(crate) value: ParameterType,
    /// Whether each call has it.
    pub(crate) is_required: bool,
    /// Whether it is a list.
    pub(crate) is_list: bool,
    /// The values that it may have; any if there are none.
    pub(crate) choices: Vec<Value>,
    /// The value that the program takes without it.
    pub(crate) default: Option<Value>,
    /// What it is.
    pub(crate) description: String,
}

/// How an argument reaches a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    /// As `--name=VALUE`.
    Option,
    /// As `--name`, if it is true.
    Flag,
    /// As an item after `--`.
    Operand,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterType {
    /// Any text.
    Text,
    /// A whole number: `<INT>`.
    Integer,
    /// A number: `<NUM>`.
    Number,
    /// Either truth value, of a flag.
    Truth,
}

/// The text that the next line of a comment continues.
#[derive(Clone, Copy, PartialEq)]
enum LastText {
    None,
    Description,
    Parameter,
}

/// The beginnings of comments.
const COMMENTS: [&str; 4] = ["#", "//", "--", ";"];

/// Members of `exec` that `@meta` may give.
const EXEC: [&str; 7] = [
    "class",
    "timeout",
    "cache",
    "cwd",
    "max_output",
    "max_result",
    "sandbox",
];

/// What argc and others read of `@meta`.
const OTHERS: [&str; 9] = [
    "version",
    "author",
    "dotenv",
    "default-subcommand",
    "inherit-flag-options",
    "symbol",
    "man-section",
    "require-tools",
    "combine-shorts",
];

impl Header {
    /// Reads the comment block of the text of a program: the lines of comments that begin with a
    /// tag, and those that go on with its text.
    ///
    /// # Errors
    /// The first mistake, with its line and the remedy.
    pub(crate) fn read(text: &str) -> Result<Header, String> {
        let mut header = Header::default();
        let mut first_parameter = None;
        let mut last = LastText::None;
        for (number, line) in (1..).zip(text.lines()) {
            let comment = comment(line).unwrap_or("");
            if let Some((tag, rest)) = tagged(comment) {
                let read = header.tag(tag, rest);
                last = read.map_err(|what| format!("line {number}: {what}"))?;
                if last == LastText::Parameter {
                    first_parameter.get_or_insert(number);
                }
            } else if comment.is_empty() {
                last = LastText::None;
            } else {
                header.go_on(comment, last);
            }
        }
        if let (None, None, Some(number)) = (&header.description, &header.schema, first_parameter) {
            return Err(format!(
                "line {number} describes an argument, but nothing the tool; write # @describe TEXT \
                 before it"
            ));
        }
        header.check_places()?;
        Ok(header)
    }

    /// Reads a line with a tag. Returns which text the next line continues.
    fn tag(&mut self, tag: &str, rest: &str) -> Result<LastText, String> {
        match tag {
            "describe" if self.description.is_some() => {
                return Err("@describe is there twice, a program is one tool".to_owned());
            }
            "describe" => {
                self.description = Some(rest.to_owned());
                return Ok(LastText::Description);
            }
            "option" | "flag" | "arg" => {
                let parameter = Parameter::read(tag, rest)?;
                if self.parameters.iter().any(|p| p.name == parameter.name) {
                    return Err(format!("{} is there twice, rename one", parameter.name));
                }
                self.parameters.push(parameter);
                return Ok(LastText::Parameter);
            }
            "env" => {
                let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !name(c)).unwrap_or(rest.len());
                self.env.push(rest[..end].to_owned());
            }
            "meta" => self.meta(rest)?,
            "cmd" | "alias" if self.description.is_some() => {
                return Err(format!(
                    "@{tag} is for programs of several commands, and a program is one tool; \
                     leave it out"
                ));
            }
            _ => {}
        }
        Ok(LastText::None)
    }

    /// Adds a line to the last text.
    fn go_on(&mut self, line: &str, last: LastText) {
        let text = match last {
            LastText::None => None,
            LastText::Description => self.description.as_mut(),
            LastText::Parameter => self.parameters.last_mut().map(|p| &mut p.description),
        };
        if let Some(text) = text {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(line);
        }
    }

    fn meta(&mut self, rest: &str) -> Result<(), String> {
        let (key, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let value = value.trim();
        match key {
            "name" if value.is_empty() => {
                return Err("@meta name has no name, write one".to_owned());
            }
            "name" => self.name = Some(value.to_owned()),
            "schema" if value.is_empty() => {
                return Err("@meta schema has no option, write --toolpipe-schema".to_owned());
            }
            "schema" => self.schema = Some(value.to_owned()),
            key if EXEC.contains(&key) => {
                self.exec.insert(key.to_owned(), value.into());
            }
            key if OTHERS.contains(&key) => {}
            key => {
                return Err(format!(
                    "@meta {key} is unknown, write name, schema, {}",
                    EXEC.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Operands have no names, so that none may be missing before another one.
    fn check_places(&self) -> Result<(), String> {
        let operands = || self.operands();
        for (parameter, next) in operands().zip(operands().skip(1)) {
            if !parameter.is_required || parameter.is_list {
                return Err(format!(
                    "@arg {0} may be missing or several, and @arg {1} would move to its place; \
                     write @arg {0}!, or # @option --{0}",
                    parameter.name, next.name
                ));
            }
        }
        Ok(())
    }

    fn operands(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(|parameter| parameter.kind == ParameterKind::Operand)
    }

    /// The JSON Schema of the arguments.
    pub(crate) fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.clone(), parameter.schema()))
            .collect();
        let mut schema = json!({"type": "object", "properties": properties});
        let required = self
            .parameters
            .iter()
            .filter(|parameter| parameter.is_required);
        let required: Vec<&str> = required.map(|parameter| &*parameter.name).collect();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        schema["additionalProperties"] = false.into();
        schema
    }

    /// The member `exec` of the tool of the program at the absolute path `program`.
    pub(crate) fn exec(&self, program: &str) -> Value {
        let options = self.parameters.iter().filter_map(|parameter| {
            let name = &parameter.name;
            match (parameter.kind, parameter.is_list) {
                (ParameterKind::Flag, _) => Some(format!("--{name}{{{name}?}}")),
                (ParameterKind::Option, true) => Some(format!("--{name}={{{name}*}}")),
                (ParameterKind::Option, false) => Some(format!("--{name}={{{name}}}")),
                (ParameterKind::Operand, _) => None,
            }
        });
        let mut command: Vec<String> = [program.to_owned()].into_iter().chain(options).collect();
        let operands = self.operands().map(|parameter| match parameter.is_list {
            true => format!("{{{}*}}", parameter.name),
            false => format!("{{{}}}", parameter.name),
        });
        let operands: Vec<String> = operands.collect();
        if !operands.is_empty() {
            command.push("--".to_owned());
            command.extend(operands);
        }
        let mut exec = Map::from_iter([("command".to_owned(), command.into())]);
        if !self.env.is_empty() {
            exec.insert("env".to_owned(), self.env.clone().into());
        }
        exec.extend(self.exec.clone());
        Value::Object(exec)
    }
}

/// The text of a line that is a comment from its first character on; of the first line of a script,
/// nothing.
fn comment(line: &str) -> Option<&str> {
    let rest = COMMENTS.iter().find_map(|begin| line.strip_prefix(begin))?;
    (!rest.starts_with('!')).then(|| rest.trim())
}

/// The tag that a comment begins with, and what follows.
fn tagged(comment: &str) -> Option<(&str, &str)> {
    let rest = comment.strip_prefix('@')?;
    let (tag, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((tag, text.trim()))
}

impl Parameter {
    /// Reads what follows `@option`, `@flag` or `@arg`: `[-s] --name[!|*|+][=default|[a|b]] <TYPE>
    /// text`.
    fn read(tag: &str, text: &str) -> Result<Parameter, String> {
        let kind = match tag {
            "flag" => ParameterKind::Flag,
            "arg" => ParameterKind::Operand,
            _ => ParameterKind::Option,
        };
        let example = match kind {
            ParameterKind::Flag => "# @flag --force What it does",
            ParameterKind::Operand => "# @arg file! What it is",
            ParameterKind::Option => "# @option --city! What it is",
        };
        let wrong = || format!("@{tag} {text}: no name, write it as in: {example}");
        let mut rest = text;
        if kind != ParameterKind::Operand {
            // The letter of an option is for people.
            if let Some((letter, long)) = text.split_once(char::is_whitespace)
                && letter.len() == 2
                && letter.starts_with('-')
            {
                rest = long.trim_start();
            }
            rest = rest.strip_prefix("--").ok_or_else(wrong)?;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, mut rest) = rest.split_at(end);
        if name.is_empty() || name.starts_with('-') {
            return Err(wrong());
        }
        let mut parameter = Parameter {
            name: name.to_owned(),
            kind,
            value: if kind == ParameterKind::Flag {
                ParameterType::Truth
            } else {
                ParameterType::Text
            },
            is_required: false,
            is_list: false,
            choices: Vec::new(),
            default: None,
            description: String::new(),
        };
        if let Some(sign) = rest.chars().next().filter(|c| "!*+".contains(*c)) {
            rest = rest[1..].trim_start_matches(',');
            parameter.is_required = sign != '*';
            parameter.is_list = sign != '!' && kind != ParameterKind::Flag;
        }
        let (mut choices, mut default) = (Vec::new(), None);
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) = inner
                .split_once(']')
                .ok_or_else(|| format!("@{tag} {text}: a ] is missing after the choices"))?;
            rest = after;
            // Names of functions that print the choices stand between backticks.
            if !inside.starts_with('`') {
                let inside = inside
                    .strip_prefix('=')
                    .inspect(|inside| {
                        default = inside.split('|').next();
                    })
                    .unwrap_or(inside);
                choices = inside.split('|').map(str::trim).collect();
            }
        } else if let Some(value) = rest.strip_prefix('=') {
            let end = match value.chars().next().filter(|c| "\"'`".contains(*c)) {
                Some(quote) => value[1..].find(quote).map_or(value.len(), |end| end + 2),
                None => value.find(char::is_whitespace).unwrap_or(value.len()),
            };
            let (value, after) = value.split_at(end);
            rest = after;
            default = (!value.starts_with('`')).then(|| value.trim_matches(['"', '\'']));
        }
        let mut rest = rest.trim_start();
        while let Some((notation, after)) =
            rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        {
            rest = after.trim_start();
            parameter.value = match notation {
                _ if kind == ParameterKind::Flag => ParameterType::Truth,
                "INT" => ParameterType::Integer,
                "NUM" => ParameterType::Number,
                _ => parameter.value,
            };
        }
        let value = |text: &str| {
            parameter.value.value(text).ok_or_else(|| {
                format!(
                    "@{tag} {}: {text:?} is not a number, as its type asks for",
                    parameter.name
                )
            })
        };
        let choices = choices.into_iter().map(value).collect::<Result<_, _>>()?;
        let default = default.map(value).transpose()?;
        Ok(Parameter {
            choices,
            default,
            description: rest.to_owned(),
            ..parameter
        })
    }

    fn schema(&self) -> Value {
        let mut of_value = Map::from_iter([("type".to_owned(), self.value.name().into())]);
        if !self.choices.is_empty() {
            of_value.insert("enum".to_owned(), self.choices.clone().into());
        }
        let mut schema = match self.is_list {
            true => Map::from_iter([
                ("type".to_owned(), "array".into()),
                ("items".to_owned(), Value::Object(of_value)),
            ]),
            false => of_value,
        };
        if !self.description.is_empty() {
            schema.insert("description".to_owned(), self.description.clone().into());
        }
        if let Some(default) = self.default.clone().filter(|_| !self.is_list) {
            schema.insert("default".to_owned(), default);
        }
        Value::Object(schema)
    }
}

impl ParameterType {
    /// Its name in a schema.
    fn name(self) -> &'static str {
        match self {
            ParameterType::Text => "string",
            ParameterType::Integer => "integer",
            ParameterType::Number => "number",
            ParameterType::Truth => "boolean",
        }
    }

    /// A value of this type; `None` if the text is not one.
    fn value(self, text: &str) -> Option<Value> {
        match self {
            ParameterType::Text => Some(text.into()),
            ParameterType::Integer => text.parse::<i64>().ok().map(Value::from),
            ParameterType::Number => text.parse::<Number>().ok().map(Value::Number),
            ParameterType::Truth => text.parse::<bool>().ok().map(Value::Bool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Header {
        Header::read(text).unwrap()
    }

    #[test]
    fn all_that_a_block_says() {
        let header = read(
            "#!/usr/bin/env bash\nset -e\n\n# @describe Looks for huts.\n#   Only in the Alps.\n#\n# Not a part of it.\n\
             # @option -b --beds![1|2|4] <INT> How many beds\n# in all.\n# @option --max-price=99.5 <NUM> At most\n# @option --tag+ Words\n\
             # @option --unit[=C|F] <U> Unit\n# @flag -q --quick Fast\n# @arg day! When\n# @arg rest* More\n\
             # @meta name find_huts\n# @meta class read\n# @meta timeout 5s\n# @meta require-tools jq\n# @env HUTS! The huts\nmain() {\n  # @option --no! x\n:; }\n",
        );
        assert_eq!(
            serde_json::json!({"name": header.name, "description": header.description, "parameters": header.schema(), "exec": header.exec("/p")}),
            serde_json::json!({
                "name": "find_huts",
                "description": "Looks for huts. Only in the Alps.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "beds": {"type": "integer", "enum": [1, 2, 4], "description": "How many beds in all."},
                        "max-price": {"type": "number", "description": "At most", "default": 99.5},
                        "tag": {"type": "array", "items": {"type": "string"}, "description": "Words"},
                        "unit": {"type": "string", "enum": ["C", "F"], "description": "Unit", "default": "C"},
                        "quick": {"type": "boolean", "description": "Fast"},
                        "day": {"type": "string", "description": "When"},
                        "rest": {"type": "array", "items": {"type": "string"}, "description": "More"},
                    },
                    "required": ["beds", "tag", "day"],
                    "additionalProperties": false,
                },
                "exec": {
                    "command": ["/p", "--beds={beds}", "--max-price={max-price}", "--tag={tag*}", "--unit={unit}", "--quick{quick?}", "--", "{day}", "{rest*}"],
                    "env": ["HUTS"],
                    "class": "read",
                    "timeout": "5s",
                },
            })
        );
        let tools = serde_json::json!([{"name": "a", "parameters": header.schema(), "exec": header.exec("/p")}]);
        tool::Tools::read(&tools.to_string()).unwrap();
    }

    #[test]
    fn comments_of_other_languages() {
        for begin in COMMENTS {
            let header = read(&format!(
                "{begin} @option --a! A\n{begin} b\n{begin} @describe D\n{begin} e\n"
            ));
            assert_eq!(header.description.as_deref(), Some("D e"));
            assert_eq!(header.parameters[0].description, "A b");
        }
        assert_eq!(
            Header::read("#!/bin/sh\necho @describe\n # @describe x\n"),
            Ok(Header::default())
        );
    }

    #[test]
    fn a_mistake_names_its_line_and_what_to_write() {
        for (text, want) in [
            (
                "# @option --a! x",
                "line 1 describes an argument, but nothing the tool; write # @describe TEXT",
            ),
            (
                "# @describe x\n# @describe y",
                "line 2: @describe is there twice",
            ),
            (
                "# @describe x\n# @option a! x",
                "line 2: @option a! x: no name, write it as in: # @option --city!",
            ),
            (
                "# @describe x\n# @arg --a! x",
                "write it as in: # @arg file! What it is",
            ),
            (
                "# @describe x\n# @flag -f",
                "write it as in: # @flag --force",
            ),
            ("# @describe x\n# @option --a[b|c x", "a ] is missing"),
            (
                "# @describe x\n# @option --a[b|c] <INT> x",
                "\"b\" is not a number",
            ),
            (
                "# @describe x\n# @option --a=b <NUM> x",
                "\"b\" is not a number",
            ),
            (
                "# @describe x\n# @option --a x\n# @flag --a x",
                "line 3: a is there twice",
            ),
            (
                "# @describe x\n# @meta clas read",
                "line 2: @meta clas is unknown, write name, schema, class, timeout",
            ),
            ("# @describe x\n# @meta name", "@meta name has no name"),
            (
                "# @describe x\n# @cmd y",
                "line 2: @cmd is for programs of several commands",
            ),
            (
                "# @describe x\n# @arg a x\n# @arg b! x",
                "@arg a may be missing or several, and @arg b would move",
            ),
            (
                "# @describe x\n# @arg a+ x\n# @arg b! x",
                "@arg a may be missing or several, and @arg b would move",
            ),
        ] {
            let said = Header::read(text).unwrap_err();
            assert!(said.contains(want), "{text}: {said}");
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        let pieces = [
            "# @", "option", " --", "a", "é", "!", "*", "+", "=", "[", "|", "]", "<", ">", "\"",
            "`", " ", "\n", "flag ", "arg ", "describe",
        ];
        let mut state = 7u64;
        for _ in 0..20_000 {
            let mut text = String::from("# @describe x\n# @");
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                text.push_str(pieces[usize::try_from(state >> 33).unwrap() % pieces.len()]);
            }
            let _ = Header::read(&text).map(|header| header.exec("/p"));
        }
    }
}
