//! A policy file: rules about which calls may run, by tool and argument, and limits for a
//! conversation.

mod condition;
pub(crate) mod counts;

use super::approval::ApprovalLevel;
use super::argument::Arguments;
use super::exec::RunnerKind;
use super::tools::Tools;
use super::visible::visible_text;
use condition::{Condition, Quantity};
use event::{Glob, quoted};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use toml::Spanned;
use toml::de::DeTable;

// The contents of a policy.

/// The limits of a conversation. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table: write [limits]")]
pub struct CallBudget {
    /// Maximum number of calls that may start.
    pub calls: Option<u64>,
    /// Number of tokens, read and written by the model, from which on no further call starts.
    pub tokens: Option<u64>,
    /// Maximum time between the first start of a call and any later start.
    #[serde(deserialize_with = "time")]
    pub time: Option<Duration>,
}

/// A policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The classes that need approval, or `None` if the policy does not set them.
    pub approve: Option<ApprovalLevel>,
    /// If the list is not empty, a tool's name must match one of these patterns.
    #[serde(deserialize_with = "globs")]
    pub allow: Vec<Glob>,
    /// Tools whose names match one of these patterns never run.
    #[serde(deserialize_with = "globs")]
    pub deny: Vec<Glob>,
    /// Maximum number of calls per turn that run.
    pub max_calls: Option<usize>,
    /// Maximum number of calls per turn that a person is asked about.
    pub max_questions: Option<usize>,
    /// Number of equal results after which the same call is not run again. 0 disables this limit.
    pub max_repeats: Option<u32>,
    /// The limits of a conversation.
    pub limits: CallBudget,
    /// The rules.
    #[serde(rename = "rule", deserialize_with = "rules")]
    pub rules: Vec<Rule>,
    /// For each tool, the folder that its relative paths start from.
    #[serde(skip)]
    folders: HashMap<String, String>,
}

impl Policy {
    /// Parses a policy in TOML. An unknown key is an error, since a rule with a mistyped key would
    /// not protect what it seems to protect.
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn read(text: &str) -> Result<Policy, PolicyError> {
        let line = |at: usize| 1 + text.bytes().take(at).filter(|b| *b == b'\n').count();
        let wrong = |e: toml::de::Error, kind: &str| PolicyError {
            line: line(e.span().map_or(0, |span| span.start)),
            what: visible_text(&format!("{kind}{}", e.message().replace('\n', ", "))),
        };
        let table = DeTable::parse(text).map_err(|e| wrong(e, "not TOML: "))?;
        let deserializer = toml::de::Deserializer::from(table);
        let mut policy = Policy::deserialize(deserializer).map_err(|e| wrong(e, ""))?;
        for rule in &mut policy.rules {
            rule.line = line(rule.line);
            if rule.then.is_none() && rule.rate.is_none() && rule.limit.is_none() {
                return Err(PolicyError {
                    line: rule.line,
                    what: "the rule has no effect, give it then, rate or limit".to_owned(),
                });
            }
        }
        Ok(policy)
    }

    /// Prepares the policy for its tools. `tools_folder` is the folder of the tools file and
    /// `folder` is that of this process; both are absolute.
    ///
    /// # Errors
    /// Returns an error if a rule has a condition on an argument that none of its tools has, since
    /// such a condition would never match.
    pub fn fit(
        &mut self,
        tools: &Tools,
        tools_folder: &str,
        folder: &str,
    ) -> Result<(), PolicyError> {
        for rule in &self.rules {
            let concerned: Vec<_> = tools
                .iter()
                .filter(|tool| rule.tool.matches(&tool.name))
                .collect();
            let is_missing = |key: &&String| !concerned.iter().any(|tool| tool.declares(key));
            if !concerned.is_empty()
                && let Some(key) = rule.when.keys().find(is_missing)
            {
                let what = format!(
                    "no tool that the rule matches has an argument {}, check its name",
                    quoted(key)
                );
                return Err(PolicyError {
                    line: rule.line,
                    what,
                });
            }
        }
        for tool in tools.iter() {
            let of = |cwd: &Option<String>| match cwd.as_deref() {
                Some(cwd) if cwd.starts_with('/') => cwd.to_owned(),
                Some(cwd) => format!("{tools_folder}/{cwd}"),
                None => folder.to_owned(),
            };
            let cwd = tool.exec.as_ref().map(|exec| match &exec.run {
                RunnerKind::Command(command) => of(&command.cwd),
                RunnerKind::Mcp(tool) => of(&tool.cwd),
                RunnerKind::Http(_) => tools_folder.to_owned(),
            });
            self.folders.insert(
                tool.name.clone(),
                cwd.unwrap_or_else(|| tools_folder.to_owned()),
            );
        }
        Ok(())
    }

    /// Whether the policy allows tools named `name` to run.
    pub fn lets_through(&self, name: &str) -> bool {
        lets_through(&self.allow, &self.deny, name)
    }

    /// Returns the rule that decides about a call, and its effect, or `None` if no rule does. A
    /// `deny` rule overrides an `ask` rule, and an `ask` rule overrides an `allow` rule, whatever
    /// their order in the file.
    pub fn decide(&self, name: &str, arguments: &Arguments) -> Option<(Effect, &Rule)> {
        [Effect::Deny, Effect::Ask, Effect::Allow]
            .into_iter()
            .find_map(|effect| {
                let mut rules = self.rules.iter().filter(|rule| rule.then == Some(effect));
                rules
                    .find(|rule| self.is_of(rule, name, arguments))
                    .map(|rule| (effect, rule))
            })
    }

    /// Whether a rule matches a call.
    pub(crate) fn is_of(&self, rule: &Rule, name: &str, arguments: &Arguments) -> bool {
        rule.matches(
            name,
            arguments,
            self.folders.get(name).map_or("/", String::as_str),
        )
    }
}

/// A mistake in a policy, as one line with the way to fix it. The caller prefixes the message with
/// the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PolicyError {
    /// The line number, starting at 1.
    pub line: usize,
    /// What is wrong and what would be valid.
    pub what: String,
}

// One rule of a policy.

/// The effect of a rule on the calls that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The calls run without approval.
    Allow,
    /// The calls need approval.
    Ask,
    /// The calls do not run.
    Deny,
}

/// A rate limit for the starts of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate {
    /// Maximum number of calls within `time`.
    pub calls: u64,
    /// The length of the time window.
    pub time: Duration,
}

impl Rate {
    /// Parses a rate such as `10/1m`: a number above 0 and a time. Returns `None` for any other
    /// text.
    pub fn read(text: &str) -> Option<Rate> {
        let (calls, time) = text.split_once('/')?;
        let calls = calls.parse().ok().filter(|calls| *calls > 0)?;
        Some(Rate {
            calls,
            time: event::unit::time(time)
                .ok()
                .filter(|time| !time.is_zero())?,
        })
    }
}

impl TryFrom<String> for Rate {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Rate::read(&text).ok_or("not calls in a time, such as \"10/1m\"")
    }
}

/// A rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: write [[rule]]")]
pub struct Rule {
    /// The tools that the rule applies to.
    #[serde(deserialize_with = "glob")]
    pub tool: Glob,
    /// The conditions on arguments, which must all match.
    #[serde(default)]
    pub when: BTreeMap<String, Condition>,
    /// The effect on a matching call, or `None` if the rule only sets limits.
    pub then: Option<Effect>,
    /// The reason for the rule, shown to the model and to people.
    pub reason: Option<String>,
    /// Maximum rate at which matching calls may start.
    pub rate: Option<Rate>,
    /// Maximum number of matching calls that may start in a conversation.
    pub limit: Option<u64>,
    /// The line of the policy on which the rule begins.
    #[serde(skip)]
    pub line: usize,
}

impl Rule {
    /// Whether the rule matches a call of the tool `name`, whose relative paths start from
    /// `folder`.
    pub fn matches(&self, name: &str, arguments: &Arguments, folder: &str) -> bool {
        let quantity = if self.then == Some(Effect::Allow) {
            Quantity::All
        } else {
            Quantity::Any
        };
        let holds = |(key, condition): (&String, &Condition)| {
            condition.holds(arguments.get(key), quantity, folder)
        };
        self.tool.matches(name) && self.when.iter().all(holds)
    }

    /// Returns the rule's reason, or its line if it has no reason.
    pub fn why(&self) -> String {
        self.reason
            .clone()
            .unwrap_or_else(|| format!("the rule in line {} of the policy", self.line))
    }
}

fn glob<'d, D: Deserializer<'d>>(pattern: D) -> Result<Glob, D::Error> {
    String::deserialize(pattern).map(|pattern| Glob::new(&pattern))
}

fn globs<'d, D: Deserializer<'d>>(patterns: D) -> Result<Vec<Glob>, D::Error> {
    let patterns = Vec::<String>::deserialize(patterns).map_err(|_| {
        D::Error::custom("not a list of patterns of tool names, such as [\"read_*\"]")
    })?;
    Ok(patterns.iter().map(|pattern| Glob::new(pattern)).collect())
}

fn time<'d, D: Deserializer<'d>>(time: D) -> Result<Option<Duration>, D::Error> {
    let time = String::deserialize(time).ok();
    let time = time.and_then(|time| event::unit::time(&time).ok());
    time.map(Some)
        .ok_or_else(|| D::Error::custom("not a time, such as \"10m\""))
}

/// Parses the rules. `line` temporarily stores the byte offset at which each rule begins.
fn rules<'d, D: Deserializer<'d>>(rules: D) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Spanned<Rule>>::deserialize(rules)?;
    let placed = |rule: Spanned<Rule>| Rule {
        line: rule.span().start,
        ..rule.into_inner()
    };
    Ok(rules.into_iter().map(placed).collect())
}

/// Whether tools named `name` may run: the name matches no pattern in `deny` and, unless `allow` is
/// empty, one in `allow`.
pub(crate) fn lets_through(allow: &[Glob], deny: &[Glob], name: &str) -> bool {
    let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(name));
    !matches(deny) && (allow.is_empty() || matches(allow))
}

#[cfg(test)]
mod document_tests {
    use super::*;
    use crate::mcp::Definition;

    fn policy(rules: &str) -> Policy {
        let tools = r#"[{"name":"read_a","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"exec":{"command":["r"],"cwd":"sub"}},
            {"name":"rm","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"exec":{"command":["rm"],"class":"danger"}}]"#;
        let mut policy = Policy::read(rules).unwrap();
        policy
            .fit(&Tools::read(tools).unwrap(), "/tools", "/work")
            .unwrap();
        policy
    }

    fn decide(policy: &Policy, name: &str, path: &str) -> Option<Effect> {
        let arguments = Arguments::read(&format!("{{\"path\":{}}}", quoted(path))).unwrap();
        policy.decide(name, &arguments).map(|(effect, _)| effect)
    }

    #[test]
    fn a_denial_goes_before_a_question_before_a_permission() {
        let policy = policy(
            r#"rule = [{ tool = "*", then = "allow", when.path = { path = "**" } },
                       { tool = "*", then = "ask", when.path = { path = "data/**" } },
                       { tool = "*", then = "deny", when.path = { path = "data/secret/**" } }]"#,
        );
        assert_eq!(decide(&policy, "rm", "x"), Some(Effect::Allow));
        assert_eq!(decide(&policy, "rm", "data/x"), Some(Effect::Ask));
        assert_eq!(
            decide(&policy, "rm", "data/x/../secret/key"),
            Some(Effect::Deny)
        );
        assert_eq!(decide(&policy, "rm", "../x"), None, "nothing permits it");
        let none = Arguments::read("{}").unwrap();
        assert!(
            policy.decide("rm", &none).is_none(),
            "a missing argument fits no condition"
        );
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_their_tool() {
        let policy = policy(
            r#"rule = [{ tool = "*", then = "allow", when.path = { path = "/tools/sub/**" } }]"#,
        );
        assert_eq!(
            (decide(&policy, "read_a", "x"), decide(&policy, "rm", "x")),
            (Some(Effect::Allow), None)
        );
        assert_eq!(decide(&policy, "rm", "../tools/sub/x"), Some(Effect::Allow));
    }

    #[test]
    fn paths_of_a_tool_of_a_server_are_relative_to_the_folder_of_the_server() {
        let text = r#"{"tools":[],"mcpServers":{"in":{"command":"s","cwd":"sub"},"at":{"command":"s","cwd":"/else"},"here":{"command":"s"}}}"#;
        let (mut tools, servers) = Tools::read_beside_servers(text).unwrap();
        let listed = serde_json::json!({"name":"a","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}});
        for server in &servers.list {
            tools
                .add(&Definition::read(&server.name, &listed).unwrap(), server)
                .unwrap();
        }
        for (pattern, name) in [
            ("/tools/sub/x", "in__a"),
            ("/else/x", "at__a"),
            ("/work/x", "here__a"),
        ] {
            let rule = format!(
                "rule = [{{ tool = \"*\", then = \"deny\", when.path = {{ path = {} }} }}]",
                quoted(pattern)
            );
            let mut policy = Policy::read(&rule).unwrap();
            policy.fit(&tools, "/tools", "/work").unwrap();
            let denied = ["in__a", "at__a", "here__a"]
                .into_iter()
                .filter(|name| decide(&policy, name, "x").is_some());
            assert_eq!(denied.collect::<Vec<_>>(), [name], "{pattern}");
        }
    }

    #[test]
    fn a_condition_on_an_argument_that_no_tool_has_is_a_mistake() {
        let mut policy =
            Policy::read("[[rule]]\ntool = \"r*\"\nwhen.pth = { path = \"x\" }\nthen = \"deny\"")
                .unwrap();
        let tools = Tools::read(
            r#"[{"name":"rm","parameters":{"type":"object","properties":{"path":{}}}}]"#,
        )
        .unwrap();
        let wrong = policy.fit(&tools, "/", "/").unwrap_err().to_string();
        assert!(
            wrong.starts_with("line 1: no tool that the rule matches has an argument \"pth\""),
            "{wrong}"
        );
    }
}

#[cfg(test)]
mod rule_tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(
            Rate::read("10/1m"),
            Some(Rate {
                calls: 10,
                time: Duration::from_secs(60)
            })
        );
        for bad in [
            "10", "0/1m", "10/0s", "10/", "/1m", "10/m", "-1/1m", "1/1m/1m",
        ] {
            assert_eq!(Rate::read(bad), None, "{bad}");
        }
    }
}

#[cfg(test)]
mod read_tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn all_keys() {
        let policy = Policy::read(
            r#"approve = "write"
            allow = ["read_*"]
            deny = ["x"]
            max_calls = 5
            max_questions = 0
            max_repeats = 2
            [limits]
            calls = 100
            tokens = 1_000
            time = "10m"
            [[rule]]
            tool = "read_*"
            when.path = { path = "data/**" }
            when.mode = { regex = "r|w" }
            then = "allow"
            reason = "its own data"
            rate = "10/1m"
            limit = 50
            [[rule]]
            tool = "*"
            then = "ask""#,
        );
        let policy = policy.unwrap();
        assert_eq!(
            (policy.approve, policy.max_calls, policy.max_repeats),
            (Some(ApprovalLevel::Write), Some(5), Some(2))
        );
        assert_eq!(policy.limits.time, Some(Duration::from_secs(600)));
        let rule = &policy.rules[0];
        assert_eq!(
            (rule.when.len(), rule.then, rule.limit, rule.line),
            (2, Some(Effect::Allow), Some(50), 11)
        );
        assert_eq!(
            (
                policy.limits.tokens,
                policy.max_questions,
                policy.rules[1].line
            ),
            (Some(1000), Some(0), 19)
        );
        assert!(Policy::read("").unwrap().rules.is_empty());
    }

    #[test]
    fn mistakes_name_the_line_and_the_remedy() {
        for (text, want) in [
            (
                "aprove = \"all\"",
                "line 1: unknown field `aprove`, expected one of `approve`, `allow`,",
            ),
            (
                "\napprove = \"some\"",
                "line 2: unknown variant `some`, expected one of `none`, `danger`, `write`, `all`",
            ),
            ("approve = 1", "line 1: wanted string or table"),
            ("allow = \"x\"", "line 1: not a list of patterns"),
            (
                "max_calls = -1",
                "line 1: invalid value: integer `-1`, expected usize",
            ),
            (
                "max_calls = 1.5",
                "line 1: invalid type: floating point `1.5`, expected usize",
            ),
            (
                "limits = 3",
                "line 1: invalid type: integer `3`, expected a table: write [limits]",
            ),
            (
                "[limits]\ncals = 3",
                "line 2: unknown field `cals`, expected one of `calls`, `tokens`, `time`",
            ),
            (
                "[rule]\ntool = \"x\"",
                "line 1: invalid type: map, expected a sequence",
            ),
            ("[[rule]]\nthen = \"deny\"", "line 1: missing field `tool`"),
            ("[[rule]]\ntool = \"x\"", "line 1: the rule has no effect"),
            (
                "[[rule]]\ntool = \"x\"\nthen = \"refuse\"",
                "line 3: unknown variant `refuse`, expected one of `allow`, `ask`, `deny`",
            ),
            (
                "[[rule]]\ntool = \"x\"\nrate = \"10\"",
                "line 3: not calls in a time, such as \"10/1m\"",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = \"b\"",
                "line 3: unknown variant `b`, expected one of `glob`, `path`, `regex`",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = { glob = \"b\", regex = \"b\" }",
                "line 3: wanted exactly 1 element",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = { is = \"b\" }",
                "line 3: unknown variant `is`, expected one of `glob`, `path`, `regex`",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = { path = \"../b\" }",
                "line 3: the pattern has an empty part",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = { regex = \"(\" }",
                "line 3: the expression cannot be used",
            ),
            ("approve = ", "line 1: not TOML: "),
            (
                "approve = \"all\"\napprove = \"none\"",
                "line 2: not TOML: duplicate key",
            ),
        ] {
            let said = Policy::read(text).unwrap_err().to_string();
            assert!(
                said.contains(want) && !said.contains('\n'),
                "{text}: {said}"
            );
        }
    }
}
