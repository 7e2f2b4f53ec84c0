//! A policy from TOML. An unknown key is an error: a rule with a word that was mistyped would not
//! hold what it seems to hold.

use super::condition::{Condition, PathPattern};
use super::{Budget, Effect, Policy, PolicyError, Rate, Rule};
use crate::approval::ApprovalLevel;
use event::{Glob, unit};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Member<'t> = (&'t str, &'t Spanned<DeValue<'t>>);

impl Policy {
    /// Reads the text of a policy.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(text: &str) -> Result<Policy, PolicyError> {
        let line_of = |at: usize| {
            text.as_bytes()
                .iter()
                .take(at)
                .filter(|b| **b == b'\n')
                .count()
                + 1
        };
        let wrong = |(at, what): Wrong| PolicyError {
            line: line_of(at),
            what,
        };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            wrong((at, format!("not TOML: {}", e.message().replace('\n', ", "))))
        })?;
        let mut policy = Policy::default();
        for (key, value) in members(table.get_ref()) {
            let set = match key {
                "approve" => word(
                    value,
                    "\"none\", \"danger\", \"write\" or \"all\"",
                    ApprovalLevel::of,
                )
                .map(|level| policy.approve = Some(level)),
                "allow" => globs(value).map(|globs| policy.allow = globs),
                "deny" => globs(value).map(|globs| policy.deny = globs),
                "max_calls" => number(value).map(|n| policy.max_calls = Some(n)),
                "max_questions" => number(value).map(|n| policy.max_questions = Some(n)),
                "max_repeats" => number(value).map(|n| policy.max_repeats = Some(n)),
                "limits" => limits(value).map(|limits| policy.limits = limits),
                "rule" => rules(value, &line_of).map(|rules| policy.rules = rules),
                _ => Err(unknown(
                    value,
                    key,
                    "approve, allow, deny, max_calls, max_questions, max_repeats, [limits] and [[rule]]",
                )),
            };
            set.map_err(wrong)?;
        }
        Ok(policy)
    }
}

/// The place of a mistake, and what it is.
type Wrong = (usize, String);

fn members<'t>(table: &'t DeTable<'t>) -> impl Iterator<Item = Member<'t>> {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().as_ref(), value))
}

fn start(value: &Spanned<DeValue<'_>>) -> usize {
    let Range { start, .. } = value.span();
    start
}

fn unknown(value: &Spanned<DeValue<'_>>, key: &str, known: &str) -> Wrong {
    (
        start(value),
        format!("{} is unknown, there are {known}", event::quoted(key)),
    )
}

fn not(value: &Spanned<DeValue<'_>>, wanted: &str) -> Wrong {
    (start(value), format!("not {wanted}"))
}

fn word<T>(
    value: &Spanned<DeValue<'_>>,
    wanted: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Wrong> {
    value
        .get_ref()
        .as_str()
        .and_then(read)
        .ok_or_else(|| not(value, wanted))
}

fn number<T: TryFrom<u64>>(value: &Spanned<DeValue<'_>>) -> Result<T, Wrong> {
    let number = value
        .get_ref()
        .as_integer()
        .filter(|n| n.radix() == 10)
        .and_then(|n| n.as_str().parse::<u64>().ok());
    number
        .and_then(|n| T::try_from(n).ok())
        .ok_or_else(|| not(value, "a whole number from 0 on"))
}

fn globs(value: &Spanned<DeValue<'_>>) -> Result<Vec<Glob>, Wrong> {
    let wanted = "a list of patterns of tool names, such as [\"read_*\"]";
    let list = value
        .get_ref()
        .as_array()
        .ok_or_else(|| not(value, wanted))?;
    list.iter()
        .map(|item| word(item, wanted, |pattern| Some(Glob::new(pattern))))
        .collect()
}

fn limits(value: &Spanned<DeValue<'_>>) -> Result<Budget, Wrong> {
    let table = value
        .get_ref()
        .as_table()
        .ok_or_else(|| not(value, "a table: write [limits]"))?;
    let mut limits = Budget::default();
    for (key, value) in members(table) {
        match key {
            "calls" => limits.calls = Some(number(value)?),
            "tokens" => limits.tokens = Some(number(value)?),
            "time" => {
                limits.time = Some(word(value, "a time, such as \"10m\"", |text| {
                    unit::time(text).ok()
                })?)
            }
            _ => return Err(unknown(value, key, "calls, tokens and time")),
        }
    }
    Ok(limits)
}

fn rules(
    value: &Spanned<DeValue<'_>>,
    line_of: &dyn Fn(usize) -> usize,
) -> Result<Vec<Rule>, Wrong> {
    let list = value
        .get_ref()
        .as_array()
        .ok_or_else(|| not(value, "a list of tables: write [[rule]]"))?;
    list.iter()
        .map(|value| rule(value, line_of(start(value))))
        .collect()
}

fn rule(value: &Spanned<DeValue<'_>>, line: usize) -> Result<Rule, Wrong> {
    let table = value
        .get_ref()
        .as_table()
        .ok_or_else(|| not(value, "a table: write [[rule]]"))?;
    let text = |value: &Spanned<DeValue<'_>>| word(value, "a text", |text| Some(text.to_owned()));
    let (mut tool, mut when, mut then, mut reason, mut rate, mut limit) =
        (None, Vec::new(), None, None, None, None);
    for (key, value) in members(table) {
        match key {
            "tool" => tool = Some(Glob::new(&text(value)?)),
            "when" => when = conditions(value)?,
            "then" => then = Some(word(value, "\"allow\", \"ask\" or \"deny\"", Effect::of)?),
            "reason" => reason = Some(text(value)?),
            "rate" => {
                rate = Some(word(
                    value,
                    "calls in a time, such as \"10/1m\"",
                    Rate::read,
                )?)
            }
            "limit" => limit = Some(number(value)?),
            _ => {
                return Err(unknown(
                    value,
                    key,
                    "tool, when, then, reason, rate and limit",
                ));
            }
        }
    }
    let tool = tool.ok_or_else(|| {
        (
            start(value),
            "the rule names no tool, write tool = \"*\" for all".to_owned(),
        )
    })?;
    if then.is_none() && rate.is_none() && limit.is_none() {
        return Err((
            start(value),
            "the rule has no effect, give it then, rate or limit".to_owned(),
        ));
    }
    Ok(Rule {
        tool,
        when,
        then,
        reason,
        rate,
        limit,
        line,
    })
}

fn conditions(value: &Spanned<DeValue<'_>>) -> Result<Vec<(String, Condition)>, Wrong> {
    let wanted =
        "a table with a condition for each argument, such as when.path = { path = \"data/**\" }";
    let table = value
        .get_ref()
        .as_table()
        .ok_or_else(|| not(value, wanted))?;
    let mut found = Vec::new();
    for (argument, value) in members(table) {
        let table = value
            .get_ref()
            .as_table()
            .ok_or_else(|| not(value, "{ glob = … }, { path = … } or { regex = … }"))?;
        let mut parts = members(table);
        let (Some((kind, pattern)), None) = (parts.next(), parts.next()) else {
            return Err(not(
                value,
                "one of { glob = … }, { path = … } and { regex = … }",
            ));
        };
        let text = pattern
            .get_ref()
            .as_str()
            .ok_or_else(|| not(pattern, "a text"))?;
        let condition = match kind {
            "glob" => PathPattern::read(text).map(Condition::Glob),
            "path" => PathPattern::read(text).map(Condition::Path),
            "regex" => Condition::regex(text),
            _ => return Err(unknown(pattern, kind, "glob, path and regex")),
        };
        found.push((
            argument.to_owned(),
            condition.map_err(|what| (start(pattern), what))?,
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
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
                "line 1: \"aprove\" is unknown, there are approve, allow,",
            ),
            (
                "\napprove = \"some\"",
                "line 2: not \"none\", \"danger\", \"write\" or \"all\"",
            ),
            ("approve = 1", "line 1: not \"none\""),
            ("allow = \"x\"", "line 1: not a list of patterns"),
            ("max_calls = -1", "line 1: not a whole number"),
            ("max_calls = 1.5", "line 1: not a whole number"),
            ("limits = 3", "line 1: not a table: write [limits]"),
            (
                "[limits]\ncals = 3",
                "line 2: \"cals\" is unknown, there are calls, tokens and time",
            ),
            (
                "[rule]\ntool = \"x\"",
                "line 1: not a list of tables: write [[rule]]",
            ),
            (
                "[[rule]]\nthen = \"deny\"",
                "line 1: the rule names no tool",
            ),
            ("[[rule]]\ntool = \"x\"", "line 1: the rule has no effect"),
            (
                "[[rule]]\ntool = \"x\"\nthen = \"refuse\"",
                "line 3: not \"allow\", \"ask\" or \"deny\"",
            ),
            (
                "[[rule]]\ntool = \"x\"\nrate = \"10\"",
                "line 3: not calls in a time, such as \"10/1m\"",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = \"b\"",
                "line 3: not { glob",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = { glob = \"b\", regex = \"b\" }",
                "line 3: not one of",
            ),
            (
                "[[rule]]\ntool = \"x\"\nwhen.a = { is = \"b\" }",
                "\"is\" is unknown, there are glob, path and regex",
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
