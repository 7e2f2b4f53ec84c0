//! The usage of a conversation so far. The counts use no clock: times are passed in as values.

use super::{Policy, Rate};
use crate::argument::Arguments;
use std::time::Duration;

/// The usage of a conversation so far. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct UseCounts {
    /// The number of calls started.
    calls: u64,
    /// The number of tokens that the model has read and written.
    tokens: u64,
    /// The time of the first start, or `None` if it is unknown.
    begun: Option<u64>,
    /// The latest known time.
    latest: u64,
    /// The starts counted for each rule, in the order of the policy.
    rules: Vec<RuleStarts>,
}

/// The starts of the calls that one rule matches.
#[derive(Clone, Debug, Default)]
struct RuleStarts {
    calls: u64,
    /// The times of the starts, for a rule with a rate. Starts that are too old to count are
    /// removed.
    times: Vec<u64>,
    /// The number of starts without a time, as in a log written with `--no-time`. They count as
    /// made when the next call is checked.
    untimed: u64,
}

/// Maximum step in milliseconds by which a clock may fall behind the latest known time. Ordinary
/// clock corrections are smaller.
const CORRECTION: u64 = 2000;

impl UseCounts {
    /// Records a time at which something in the conversation happened.
    pub(crate) fn at(&mut self, time: u64) {
        self.latest = self.latest.max(time);
    }

    /// Counts tokens that the model has read or written.
    pub(crate) fn tokens(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Counts the start of a call of the tool `name`. `arguments` is `None` if the log lacks them;
    /// every rule for the tool then counts the start.
    pub(crate) fn start(
        &mut self,
        policy: &Policy,
        name: &str,
        arguments: Option<&Arguments>,
        time: Option<u64>,
    ) {
        self.calls += 1;
        time.into_iter().for_each(|time| self.at(time));
        self.begun = self.begun.min(time).or(self.begun).or(time);
        self.rules
            .resize_with(policy.rules.len(), RuleStarts::default);
        for (rule, starts) in policy.rules.iter().zip(&mut self.rules) {
            let matches = arguments.map_or_else(
                || rule.tool.matches(name),
                |arguments| policy.is_of(rule, name, arguments),
            );
            if !matches {
                continue;
            }
            starts.calls += 1;
            match (rule.rate, time) {
                (Some(_), Some(time)) => starts.times.push(time),
                (Some(_), None) => starts.untimed += 1,
                (None, _) => {}
            }
        }
    }

    /// Returns why a call may not start now, as a sentence for the model, or `None` if it may.
    pub(crate) fn over(
        &mut self,
        policy: &Policy,
        name: &str,
        arguments: &Arguments,
        now: u64,
    ) -> Option<String> {
        let limits = &policy.limits;
        if let Some(most) = limits.calls.filter(|most| self.calls >= *most) {
            return Some(format!(
                "the conversation may run {most} calls, and has used all of them"
            ));
        }
        if let Some(most) = limits.tokens.filter(|most| self.tokens >= *most) {
            return Some(format!(
                "the conversation may use {most} tokens, and has used {}",
                self.tokens
            ));
        }
        let behind = self.latest.saturating_sub(now);
        self.at(now);
        if let (Some(most), Some(begun)) = (limits.time, self.begun) {
            let limit = seconds(most);
            if behind > CORRECTION {
                return Some(format!(
                    "the conversation may run calls for {limit}, and the clock was set back, so \
                     the elapsed time is unknown"
                ));
            }
            if Duration::from_millis(self.latest.saturating_sub(begun)) > most {
                return Some(format!(
                    "the conversation may run calls for {limit}, which has passed"
                ));
            }
        }
        self.rules
            .resize_with(policy.rules.len(), RuleStarts::default);
        policy
            .rules
            .iter()
            .zip(&mut self.rules)
            .find_map(|(rule, starts)| {
                if !policy.is_of(rule, name, arguments) {
                    return None;
                }
                if let Some(most) = rule.limit.filter(|most| starts.calls >= *most) {
                    return Some(format!(
                        "only {most} such calls may run in a conversation ({})",
                        rule.why()
                    ));
                }
                let wait = rule.rate.and_then(|rate| starts.wait(rate, now))?;
                let Rate { calls, time } = rule.rate?;
                let time = seconds(time);
                let wait = seconds(wait);
                Some(format!(
                    "only {calls} such calls may run in {time} ({}); the next one is allowed in {wait}",
                    rule.why()
                ))
            })
    }
}

impl RuleStarts {
    /// Returns how long the next start must wait, or `None` if it may happen now. A start in the
    /// future (after a clock was set back) counts until its time has passed.
    fn wait(&mut self, rate: Rate, now: u64) -> Option<Duration> {
        let window = u64::try_from(rate.time.as_millis()).unwrap_or(u64::MAX);
        self.times
            .extend((0..std::mem::take(&mut self.untimed)).map(|_| now));
        self.times.retain(|time| time.saturating_add(window) > now);
        self.times.sort_unstable();
        let over = self
            .times
            .len()
            .checked_sub(usize::try_from(rate.calls).ok()?)?;
        self.times
            .get(over)
            .map(|time| Duration::from_millis(time.saturating_add(window) - now))
    }
}

/// Formats a time in seconds, rounded up.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Run(Policy, UseCounts);

    impl Run {
        fn new(policy: &str) -> Run {
            Run(Policy::read(policy).unwrap(), UseCounts::default())
        }

        /// Starts a call of `name` at `now` unless a limit forbids it. Returns the limit that
        /// forbids it.
        fn call(&mut self, name: &str, now: u64) -> Option<String> {
            let arguments = Arguments::read(r#"{"x":"1"}"#).unwrap();
            let over = self.1.over(&self.0, name, &arguments, now);
            if over.is_none() {
                self.1.start(&self.0, name, Some(&arguments), Some(now));
            }
            over
        }
    }

    #[test]
    fn a_rate_lets_the_next_call_start_when_the_first_is_old_enough() {
        let mut run = Run::new("rule = [{ tool = \"a\", rate = \"2/1s\" }]");
        assert_eq!([0, 100].map(|now| run.call("a", now)), [None, None]);
        assert_eq!(
            run.call("a", 500).unwrap(),
            "only 2 such calls may run in 1 s (the rule in line 1 of the policy); the next one is allowed in 1 s"
        );
        assert!(run.call("b", 500).is_none(), "another tool");
        assert!(
            run.call("a", 999).is_some()
                && run.call("a", 1000).is_none()
                && run.call("a", 1050).is_some()
        );
        // A clock that was set back or has stopped must not let calls through.
        assert!(run.call("a", 0).is_some() && run.call("a", 0).is_some());
        assert!(run.call("a", 10_000).is_none());
    }

    #[test]
    fn starts_without_a_time_count_from_now_on() {
        let mut run = Run::new("rule = [{ tool = \"a\", rate = \"1/1s\" }]");
        run.1.start(&run.0, "a", None, None);
        assert!(
            run.call("a", 50_000).is_some()
                && run.call("a", 50_999).is_some()
                && run.call("a", 51_000).is_none()
        );
    }

    #[test]
    fn limits_of_a_conversation() {
        let mut run = Run::new(
            "limits = { calls = 2 }\nrule = [{ tool = \"a\", limit = 1, reason = \"once\" }]",
        );
        assert!(run.call("a", 0).is_none());
        assert_eq!(
            run.call("a", 0).unwrap(),
            "only 1 such calls may run in a conversation (once)"
        );
        assert!(run.call("b", 0).is_none());
        assert_eq!(
            run.call("b", 0).unwrap(),
            "the conversation may run 2 calls, and has used all of them"
        );

        let mut run = Run::new("limits = { tokens = 100, time = \"1s\" }");
        assert!(run.call("a", 5000).is_none() && run.call("a", 6000).is_none());
        assert_eq!(
            run.call("a", 6001).unwrap(),
            "the conversation may run calls for 1 s, which has passed"
        );
        // A clock that was set back must not extend the time.
        assert!(run.call("a", 5500).unwrap().ends_with("which has passed"));
        for (at, now) in [(3000, 999), (9_000_000, 6000)] {
            let mut run = Run::new("limits = { time = \"10h\" }");
            assert!(run.call("a", 3000).is_none());
            run.1.at(at);
            assert!(
                run.call("a", now)
                    .unwrap()
                    .contains("the clock was set back"),
                "{at} {now}"
            );
            assert!(
                run.call("b", at).is_none() && run.call("b", at - 2000).is_none(),
                "{at}"
            );
        }
        let mut run = Run::new("limits = { tokens = 100 }");
        run.1.tokens(99);
        assert!(run.call("a", 5500).is_none());
        run.1.tokens(1);
        assert_eq!(
            run.call("a", 5500).unwrap(),
            "the conversation may use 100 tokens, and has used 100"
        );
    }
}
