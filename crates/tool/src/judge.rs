//! Whether a call may run, and with which command line.

use crate::call::RequestedCall;
use crate::class::Class;
use crate::refusal::Refusal;
use crate::result::{Answer, Status};
use crate::tools::{Tool, Tools};
use event::Glob;
use std::collections::HashSet;
use std::rc::Rc;

/// The longest list of names, and the longest schema, in an answer for the model, in bytes.
const TOLD: usize = 2000;

/// The rules of what may run.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// If there are any, a name must match one of them.
    pub allow: Vec<Glob>,
    /// A tool whose name matches one of these never runs, even if it matches one in `allow`.
    pub deny: Vec<Glob>,
    /// Whether calls of class danger run without a person's approval.
    pub danger: bool,
    /// Ids of calls that a person has approved.
    pub approved: HashSet<String>,
    /// Ids of calls that a person has refused, even if they are in `approved` too.
    pub denied: HashSet<String>,
}

impl Rules {
    /// Whether tools of that name may run.
    pub fn let_through(&self, name: &str) -> bool {
        !self.deny.iter().any(|glob| glob.matches(name))
            && (self.allow.is_empty() || self.allow.iter().any(|glob| glob.matches(name)))
    }
}

/// A call that may run.
#[derive(Clone, Debug)]
pub struct ReadyCall {
    /// Its tool.
    pub tool: Rc<Tool>,
    /// The class of the tool, which decides when the call starts.
    pub class: Class,
    /// The command line.
    pub argv: Vec<String>,
}

/// The tools, and the rules over them.
#[derive(Debug, Default)]
pub struct Judge {
    /// The tools of the file.
    pub tools: Tools,
    /// The rules over them.
    pub rules: Rules,
}

impl Judge {
    /// Decides on a call: returns what to run, or the answer if the call must not run.
    ///
    /// # Errors
    /// The answer for the model: `unknown_tool`, `denied`, `invalid`, or `error` for a tool without a command.
    pub fn look(&self, call: &RequestedCall) -> Result<ReadyCall, Answer> {
        let name = call.name.as_ref();
        let tool = self.tools.get(name).ok_or_else(|| self.unknown(name))?;
        if !self.rules.let_through(name) {
            let why = format!("The tool {name:?} is not allowed here, and the call was not run. Go on without it.");
            return Err(Answer::new(Status::Denied, why));
        }
        let arguments = call.arguments.as_ref().map_err(|e| invalid(tool, e))?;
        let raw = event::Raw::parse(arguments.text()).map_err(|e| invalid(tool, &Refusal::Schema(e.to_string())))?;
        if let Some(key) = tool.schema.undeclared(raw) {
            let key = event::quoted(&key.chars().take(100).collect::<String>());
            return Err(invalid(tool, &Refusal::Undeclared(key)));
        }
        tool.schema.check(arguments.text()).map_err(|e| invalid(tool, &Refusal::Schema(e.to_string())))?;
        let Some(exec) = &tool.exec else {
            let why = format!("The tool {name:?} cannot be run here: its entry in the tools file has no exec.");
            return Err(Answer::new(Status::Error, why));
        };
        let argv = exec.command.fill(arguments).map_err(|e| invalid(tool, &e))?;
        let id = call.id.as_ref();
        if exec.class == Class::Danger && !self.rules.danger && !self.rules.approved.contains(id) {
            let why = format!(
                "{name:?} is of class danger, so the call waits for a person's approval: continue with --resume LOG --approve-call {id:?}, \
                 refuse it with --deny-call {id:?}, or allow all such calls with --approve none."
            );
            return Err(Answer::new(Status::Pending, why));
        }
        Ok(ReadyCall { tool: Rc::clone(tool), class: exec.class, argv })
    }

    fn unknown(&self, name: &str) -> Answer {
        let name = event::quoted(&name.chars().take(100).collect::<String>());
        let mut known = String::new();
        for tool in self.tools.iter().filter(|tool| self.rules.let_through(&tool.name)) {
            if known.len() > TOLD {
                known.push_str(", …");
                break;
            }
            if !known.is_empty() {
                known.push_str(", ");
            }
            known.push_str(&tool.name);
        }
        if known.is_empty() {
            known.push_str("none");
        }
        Answer::new(Status::UnknownTool, format!("There is no tool named {name}. Known tools: {known}."))
    }
}

/// The answer to arguments that are refused, with the schema of the tool.
fn invalid(tool: &Tool, why: &Refusal) -> Answer {
    let schema = event::cut(&tool.parameters, TOLD);
    let cut = if schema.len() < tool.parameters.len() { "…" } else { "" };
    let name = &tool.name;
    Answer::new(
        Status::Invalid,
        format!(
            "The call was not run, its arguments are not valid: {why}. The tool {name:?} takes {schema}{cut}. Correct the arguments and call it again."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{Scanner, quoted};

    const FILE: &str = r#"[
        {"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"exec":{"command":["w","{city}"],"class":"read"}},
        {"name":"remove","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"exec":{"command":["rm","--","{path}"],"class":"danger"}},
        {"name":"later"}]"#;

    fn look(rules: Rules, name: &str, arguments: &str) -> Result<ReadyCall, Answer> {
        let judge = Judge { tools: Tools::read(FILE).unwrap(), rules };
        let line =
            format!(r#"{{"type":"tool_call","tool_id":"i","tool_name":{},"arguments":{arguments}}}"#, quoted(name));
        judge.look(&RequestedCall::of_event(&Scanner::default().read(&line).unwrap()))
    }

    fn answer(name: &str, arguments: &str) -> (Status, String) {
        let answer = look(Rules::default(), name, arguments).unwrap_err();
        (answer.status, answer.output)
    }

    #[test]
    fn only_names_of_the_file_lead_to_a_command() {
        let long = "x".repeat(10_000);
        for name in [
            "../../bin/sh",
            "/bin/sh",
            "sh -c",
            "",
            &long,
            "we\u{430}ther",
            "weather\u{200d}",
            "ｗeather",
            "Weather",
            "__proto__",
        ] {
            let (status, output) = answer(name, "{}");
            assert_eq!(status, Status::UnknownTool, "{name}");
            assert!(output.ends_with("Known tools: weather, remove, later.") && output.len() < 500, "{output}");
        }
        assert_eq!(look(Rules::default(), "weather", r#"{"city":"Oslo"}"#).unwrap().argv, ["w", "Oslo"]);
    }

    #[test]
    fn arguments_that_do_not_fit_are_answered_with_what_would() {
        for (arguments, want) in [
            (r#"{"city":"Oslo","city; echo INJECTED; :":"x"}"#, r#"the key "city; echo INJECTED; :" is not declared"#),
            ("{}", "required"),
            (r#"{"city":7}"#, "string"),
            (r#"{"city":"-x"}"#, "begins with \"-\""),
            (r#"{"city":"a","city":"b"}"#, "appears twice"),
            (r#"{"city":"a\u0000"}"#, "U+0000"),
            ("null", "null"),
        ] {
            let (status, output) = answer("weather", arguments);
            assert_eq!(status, Status::Invalid);
            assert!(output.contains(want) && output.contains("takes {\"type\":\"object\""), "{arguments}: {output}");
        }
    }

    #[test]
    fn deny_goes_before_allow_and_danger_needs_a_yes() {
        let globs = |list: &[&str]| list.iter().map(|p| Glob::new(p)).collect::<Vec<_>>();
        let path = r#"{"path":"x"}"#;
        let rules = Rules { allow: globs(&["*"]), deny: globs(&["we*"]), danger: true, ..Rules::default() };
        assert_eq!(look(rules.clone(), "weather", "{}").unwrap_err().status, Status::Denied);
        assert_eq!(look(rules, "remove", path).unwrap().class, Class::Danger);
        let rules = Rules { allow: globs(&["we*"]), danger: true, ..Rules::default() };
        assert_eq!(look(rules, "remove", path).unwrap_err().status, Status::Denied);
        let refused = look(Rules::default(), "remove", path).unwrap_err();
        assert!(refused.status == Status::Pending && refused.output.contains("--approve-call"));
        let rules = Rules { approved: ["i".to_owned()].into(), ..Rules::default() };
        assert!(look(rules, "remove", path).is_ok());
    }

    #[test]
    fn a_tool_without_a_command_is_answered() {
        assert_eq!(answer("later", "{}").0, Status::Error);
    }
}
