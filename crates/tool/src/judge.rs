//! Decides whether a call may run, and with which command line.

use super::approval::{AnswerSource, ApprovalLevel, Class, Reason};
use super::argument::ArgumentRefusal;
use super::call::RequestedCall;
use super::canonical::Hash;
use super::exec::Work;
use super::policy::{Effect, Policy, lets_through};
use super::reference::{CallHash, CallReference, Continuation, call_hash};
use super::result::{Status, ToolAnswer};
use super::tools::{Tool, Tools};
use event::Glob;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Maximum length in bytes of a list of names and of a schema in an answer for the model.
const TOLD: usize = 2000;

/// A call that may run.
#[derive(Clone, Debug)]
pub struct ReadyCall {
    /// The call's tool.
    pub tool: Rc<Tool>,
    /// The class of the tool, which decides when the call starts.
    pub class: Class,
    /// The work to start.
    pub work: Work,
    /// The hash of the call, which a person's answer must quote.
    pub hash: CallHash,
}

impl ReadyCall {
    /// Returns the reference by which a person's answer names this call.
    pub fn reference(&self, call: &RequestedCall) -> CallReference {
        CallReference {
            id: call.id.clone(),
            hash: self.hash,
        }
    }

    /// Returns the name of the tool and the digest of its definition.
    pub(crate) fn definition(&self) -> (String, Hash) {
        (self.tool.name.clone(), self.tool.hash)
    }
}

/// The tools and the rules that apply to them.
#[derive(Debug, Default)]
pub struct Judge {
    /// The tools of the tools file.
    pub tools: Tools,
    /// The rules that apply to the tools.
    pub rules: Rules,
    /// The rules on arguments. The plan, not the judge, enforces the policy's limits.
    pub policy: Rc<Policy>,
}

impl Judge {
    /// Decides on a call: returns the work to run, or the answer to give instead if the call must
    /// not run. [`Judge::consent`] decides whether the call also needs approval. `starts` is the
    /// number of times a call with this id was already started.
    ///
    /// # Errors
    /// Returns the answer for the model: `unknown_tool`, `denied`, `invalid`, or `error` for a tool
    /// without `exec`.
    pub fn look(&self, call: &RequestedCall, starts: u32) -> Result<ReadyCall, ToolAnswer> {
        let name = call.name.as_ref();
        let tool = self.tools.get(name).ok_or_else(|| self.unknown(name))?;
        if !self.lets_through(name) {
            let why = format!(
                "The tool {name:?} is not allowed here, and the call was not run. Go on without it."
            );
            return Err(ToolAnswer::new(Status::Denied, why));
        }
        let arguments = call.arguments.as_ref().map_err(|e| invalid(tool, e))?;
        let raw = event::Raw::parse(arguments.text())
            .map_err(|e| invalid(tool, &ArgumentRefusal::Schema(e.to_string())))?;
        if let Some(key) = tool.schema.undeclared(raw) {
            let key = event::quoted(&key.chars().take(100).collect::<String>());
            return Err(invalid(tool, &ArgumentRefusal::Undeclared(key)));
        }
        tool.schema
            .check(arguments.text())
            .map_err(|e| invalid(tool, &ArgumentRefusal::Schema(e.to_string())))?;
        let Some(exec) = &tool.exec else {
            let why = format!(
                "The tool {name:?} cannot be run here: its entry in the tools file has no exec."
            );
            return Err(ToolAnswer::new(Status::Error, why));
        };
        let work = exec.work(arguments).map_err(|e| invalid(tool, &e))?;
        let hash = call_hash(call, &tool.hash, arguments, starts);
        Ok(ReadyCall {
            tool: Rc::clone(tool),
            class: exec.class,
            work,
            hash,
        })
    }

    /// Whether another process answers the calls of the tool `name`, so that they get no answer
    /// here.
    pub(crate) fn leaves(&self, name: &str) -> bool {
        self.rules.leave.iter().any(|glob| glob.matches(name))
    }

    /// Whether both the rules and the policy allow tools named `name` to run.
    pub fn lets_through(&self, name: &str) -> bool {
        lets_through(&self.rules.allow, &self.rules.deny, name) && self.policy.lets_through(name)
    }

    /// Returns whether a call is approved, needs approval, or is rejected. `started` is whether an
    /// earlier run started the call without recording its result.
    pub fn consent(&self, call: &RequestedCall, ready: &ReadyCall, started: bool) -> Consent {
        let reference = ready.reference(call);
        let rules = &self.rules;
        let decided = call
            .arguments
            .as_ref()
            .ok()
            .and_then(|arguments| self.policy.decide(&call.name, arguments));
        if let Some((Effect::Deny, rule)) = decided {
            return Consent::Refused(AnswerSource::Policy, forbidden(&rule.why()));
        }
        if rules.denied.contains(&reference) {
            let reason = rules.reasons.get(&reference).map(String::as_str);
            return Consent::Refused(AnswerSource::Option, denied(started, reason));
        }
        if started && let Some(text) = rules.results.get(&reference) {
            return Consent::Ran(ToolAnswer::new(Status::Success, text));
        }
        let reason = if started && ready.class != Class::Read {
            Some(Reason::Started)
        } else if call.repaired && ready.class == Class::Danger {
            Some(Reason::Repaired)
        } else if let Some((Effect::Ask, rule)) = decided {
            Some(Reason::Rule(rule.why()))
        } else {
            rules
                .approve
                .covers(ready.class)
                .then_some(Reason::Class(ready.class))
        };
        match reason {
            None => Consent::NotNeeded,
            Some(_) if rules.approved.contains(&reference) => Consent::Given(AnswerSource::Option),
            Some(Reason::Class(_)) if decided.is_some() => Consent::Given(AnswerSource::Policy),
            Some(reason)
                if reason.allows_always() && rules.always.contains(&ready.definition()) =>
            {
                Consent::Given(AnswerSource::Terminal)
            }
            Some(reason) => Consent::Needed(reason),
        }
    }

    fn unknown(&self, name: &str) -> ToolAnswer {
        let name = event::quoted(&name.chars().take(100).collect::<String>());
        let mut known = String::new();
        for tool in self
            .tools
            .iter()
            .filter(|tool| self.lets_through(&tool.name))
        {
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
        ToolAnswer::new(
            Status::UnknownTool,
            format!("There is no tool named {name}. Known tools: {known}."),
        )
    }
}

/// Returns the answer to a call whose arguments were rejected, with the tool's schema.
fn invalid(tool: &Tool, why: &ArgumentRefusal) -> ToolAnswer {
    let schema = event::cut(&tool.parameters, TOLD);
    let cut = if schema.len() < tool.parameters.len() {
        "…"
    } else {
        ""
    };
    let name = &tool.name;
    ToolAnswer::new(
        Status::Invalid,
        format!(
            "The call was not run, its arguments are not valid: {why}. The tool {name:?} takes \
             {schema}{cut}. Correct the arguments and call it again."
        ),
    )
}

/// The approval state of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The call needs no approval.
    NotNeeded,
    /// The call was approved.
    Given(AnswerSource),
    /// The call was rejected; holds the answer for the model.
    Refused(AnswerSource, ToolAnswer),
    /// A person stated that the call had run, and gave its result.
    Ran(ToolAnswer),
    /// The call still needs a person's approval, for this reason.
    Needed(Reason),
}

/// Returns the answer to a call that waits for a person's approval.
pub(crate) fn pending(reason: &Reason, call: &CallReference, rules: &Rules) -> ToolAnswer {
    let text = if let Some(other) = other_approval(rules, call) {
        // The right hash is withheld: a person who approved with a wrong hash has not seen this
        // call.
        format!(
            "The call was not run: {reason}. It needs approval. (The approval does not match: \
             the call that was approved under this id has the hash {other}. The arguments or \
             the definition of the tool have changed since, or the call has been started since. \
             Look at the call again: --list-pending prints it.)"
        )
    } else {
        waiting(reason, call, rules)
    };
    ToolAnswer {
        hash: Some(call.hash),
        ..ToolAnswer::new(Status::Pending, text)
    }
}

/// Describes how a person can answer a call that waits for approval.
fn waiting(reason: &Reason, call: &CallReference, rules: &Rules) -> String {
    let yes = rules.continuation.with("--approve-call", [call]);
    let no = rules.continuation.with("--deny-call", [call]);
    if *reason == Reason::Started {
        let ran = rules.continuation.with_result(call);
        format!(
            "The call does not run again without approval: {reason}. Check what it did. If it \
             ran, give its result with: {ran} ; \
             if it did not and must not run: {no} ; if it is to run again: {yes}"
        )
    } else {
        format!(
            "The call was not run: {reason}. It needs approval. Run it with: {yes} ; or refuse it with: {no}"
        )
    }
}

/// Returns the hash of an approval that has the id of `call` but is for another call, or `None` if
/// there is none.
fn other_approval(rules: &Rules, call: &CallReference) -> Option<CallHash> {
    let mut others: Vec<_> = rules
        .approved
        .iter()
        .filter(|other| other.id == call.id && other.hash != call.hash)
        .collect();
    others.sort_by_key(|other| other.hash.to_string()); // a set has no order
    others.first().map(|other| other.hash)
}

/// Returns the answer to a call that a person rejected, with the person's reason. `started` is
/// whether an earlier run started the call.
pub(crate) fn denied(started: bool, reason: Option<&str>) -> ToolAnswer {
    let what = if started {
        "The user refused to run the call again. It was started before, and its result is not known"
    } else {
        "The user refused the call, and it was not run"
    };
    let why = match reason {
        Some(reason) => format!(" The user's reason: {reason}"),
        None => String::new(),
    };
    let text = format!("{what}. Do not repeat it; go on without it, or ask the user.{why}");
    ToolAnswer::new(Status::Denied, text)
}

/// Returns the answer to a call that a policy rule rejects for this reason.
pub(crate) fn forbidden(reason: &str) -> ToolAnswer {
    let text = format!(
        "The call was not run: the policy does not allow it ({reason}). Do not repeat it; go on \
         without it, or ask the user."
    );
    ToolAnswer::new(Status::Denied, text)
}

/// Returns the answer to a call that exceeds the limit of `most` approval prompts per turn.
pub(crate) fn too_many_questions(most: usize) -> ToolAnswer {
    let text = format!(
        "The call was not run: it needs approval, and the user is asked about at most {most} \
         calls of a turn. Make fewer such calls, or make them in a later turn."
    );
    ToolAnswer::new(Status::Denied, text)
}

/// The rules about which tools may run, and a person's answers.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// If the list is not empty, a tool's name must match one of these patterns.
    pub allow: Vec<Glob>,
    /// A tool whose name matches one of these patterns never runs, even if `allow` matches too.
    pub deny: Vec<Glob>,
    /// Another process answers the calls of a tool whose name matches one of these patterns.
    pub leave: Vec<Glob>,
    /// The classes that need approval.
    pub approve: ApprovalLevel,
    /// The calls that a person approved. Each approval is valid for one start.
    pub approved: HashSet<CallReference>,
    /// The calls that a person rejected. A rejection overrides an entry in `approved`.
    pub denied: HashSet<CallReference>,
    /// The person's reasons for approving or rejecting calls.
    pub reasons: HashMap<CallReference, String>,
    /// The results that a person gave for calls that were started but whose results were never
    /// recorded.
    pub results: HashMap<CallReference, String>,
    /// The tools, by name and definition, whose calls a person approved for the rest of the run.
    pub always: HashSet<(String, Hash)>,
    /// The command that continues the run, quoted in the answers to pending calls.
    pub continuation: Continuation,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::ApprovalLevel;
    use event::{Glob, Scanner, quoted};

    const FILE: &str = r#"[
        {"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"exec":{"command":["w","{city}"],"class":"read"}},
        {"name":"remove","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"exec":{"command":["rm","--","{path}"],"class":"danger"}},
        {"name":"put","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"exec":{"command":["put"]}},
        {"name":"later"}]"#;

    fn look(rules: Rules, name: &str, arguments: &str) -> Result<ReadyCall, ToolAnswer> {
        let judge = Judge {
            tools: Tools::read(FILE).unwrap(),
            rules,
            policy: Rc::default(),
        };
        let line = format!(
            r#"{{"type":"tool_call","tool_id":"i","tool_name":{},"arguments":{arguments}}}"#,
            quoted(name)
        );
        judge.look(
            &RequestedCall::of_event(&Scanner::default().read(&line).unwrap()),
            0,
        )
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
            assert!(
                output.ends_with("Known tools: weather, remove, put, later.") && output.len() < 500,
                "{output}"
            );
        }
        assert_eq!(
            look(Rules::default(), "weather", r#"{"city":"Oslo"}"#)
                .unwrap()
                .work,
            Work::Command(vec!["w".to_owned(), "Oslo".to_owned()])
        );
    }

    #[test]
    fn arguments_that_do_not_fit_are_answered_with_what_would() {
        for (arguments, want) in [
            (
                r#"{"city":"Oslo","city; echo INJECTED; :":"x"}"#,
                r#"the key "city; echo INJECTED; :" is not declared"#,
            ),
            ("{}", "required"),
            (r#"{"city":7}"#, "string"),
            (r#"{"city":"-x"}"#, "begins with \"-\""),
            (r#"{"city":"a","city":"b"}"#, "appears twice"),
            (r#"{"city":"a\u0000"}"#, "U+0000"),
            ("null", "null"),
        ] {
            let (status, output) = answer("weather", arguments);
            assert_eq!(status, Status::Invalid);
            assert!(
                output.contains(want) && output.contains("takes {\"type\":\"object\""),
                "{arguments}: {output}"
            );
        }
    }

    #[test]
    fn deny_goes_before_allow() {
        let globs = |list: &[&str]| list.iter().map(|p| Glob::new(p)).collect::<Vec<_>>();
        let rules = Rules {
            allow: globs(&["*"]),
            deny: globs(&["we*"]),
            ..Rules::default()
        };
        assert_eq!(
            look(rules.clone(), "weather", "{}").unwrap_err().status,
            Status::Denied
        );
        assert_eq!(look(rules, "remove", PATH).unwrap().class, Class::Danger);
        let rules = Rules {
            allow: globs(&["we*"]),
            ..Rules::default()
        };
        assert_eq!(
            look(rules, "remove", PATH).unwrap_err().status,
            Status::Denied
        );
    }

    const PATH: &str = r#"{"path":"x"}"#;

    /// Returns the consent to a call of `name` after `change` has modified the rules.
    fn consent(
        name: &str,
        started: bool,
        change: impl FnOnce(&mut Rules, &CallReference, &ReadyCall),
    ) -> Consent {
        let mut judge = Judge {
            tools: Tools::read(FILE).unwrap(),
            rules: Rules::default(),
            policy: Rc::default(),
        };
        let arguments = if name == "weather" {
            r#"{"city":"Oslo"}"#
        } else {
            PATH
        };
        let line = format!(
            r#"{{"type":"tool_call","tool_id":"i","tool_name":"{name}","arguments":{arguments}}}"#
        );
        let call = RequestedCall::of_event(&Scanner::default().read(&line).unwrap());
        let ready = judge.look(&call, 0).unwrap();
        let reference = ready.reference(&call);
        change(&mut judge.rules, &reference, &ready);
        judge.consent(&call, &ready, started)
    }

    #[test]
    fn the_least_class_that_needs_a_yes() {
        use ApprovalLevel::{All, Danger, None, Write};
        for (level, read, write, danger) in [
            (None, false, false, false),
            (Danger, false, false, true),
            (Write, false, true, true),
            (All, true, true, true),
        ] {
            for (name, needs) in [("weather", read), ("put", write), ("remove", danger)] {
                let given = consent(name, false, |rules, _, _| rules.approve = level);
                assert_eq!(
                    matches!(given, Consent::Needed(_)),
                    needs,
                    "{level:?} {name}"
                );
            }
        }
        let any = |rules: &mut Rules, _: &CallReference, _: &ReadyCall| rules.approve = None;
        assert_eq!(consent("put", true, any), Consent::Needed(Reason::Started));
        assert_eq!(
            consent("weather", true, any),
            Consent::NotNeeded,
            "a call that changes nothing may run again"
        );
    }

    #[test]
    fn an_approval_counts_for_exactly_its_call_and_a_refusal_before_it() {
        let approve = |rules: &mut Rules, call: &CallReference, _: &ReadyCall| {
            rules.approved.insert(call.clone());
        };
        assert_eq!(
            consent("remove", false, approve),
            Consent::Given(AnswerSource::Option)
        );
        assert_eq!(
            consent("remove", true, approve),
            Consent::Given(AnswerSource::Option)
        );
        let other = consent("remove", false, |rules, call, _| {
            let hash = CallHash::read(&"0".repeat(32)).unwrap();
            rules.approved.extend([
                CallReference {
                    hash,
                    ..call.clone()
                },
                CallReference {
                    id: "j".into(),
                    ..call.clone()
                },
            ]);
        });
        assert_eq!(other, Consent::Needed(Reason::Class(Class::Danger)));
        let both = consent("remove", false, |rules, call, ready| {
            approve(rules, call, ready);
            rules.denied.insert(call.clone());
        });
        assert!(matches!(both, Consent::Refused(AnswerSource::Option, _)));
    }

    #[test]
    fn always_is_for_one_definition_and_never_for_danger() {
        let always = |rules: &mut Rules, _: &CallReference, ready: &ReadyCall| {
            rules.approve = ApprovalLevel::Write;
            rules.always.insert(ready.definition());
        };
        assert_eq!(
            consent("put", false, always),
            Consent::Given(AnswerSource::Terminal)
        );
        assert_eq!(
            consent("put", true, always),
            Consent::Needed(Reason::Started)
        );
        assert_eq!(
            consent("remove", false, always),
            Consent::Needed(Reason::Class(Class::Danger))
        );
        let changed = consent("put", false, |rules, _, ready| {
            rules.approve = ApprovalLevel::Write;
            rules.always.insert((ready.tool.name.clone(), [0; 32]));
        });
        assert_eq!(changed, Consent::Needed(Reason::Class(Class::Write)));
    }

    #[test]
    fn a_tool_without_a_command_is_answered() {
        assert_eq!(answer("later", "{}").0, Status::Error);
    }
}
