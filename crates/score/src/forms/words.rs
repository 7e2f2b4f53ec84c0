//! The numbers, names and sentences of a report that its formats share.

use crate::baseline::{AnswerChange, BaselineName, BaselineReport, CheckerChange};
use crate::command_line::explain;
use crate::metrics::{MetricValue, Metrics};
use crate::report::{CheckerReport, Report};
use crate::wrong::WrongStream;
use crate::{visible, visible_ends};

/// The text for an undefined value, such as the precision of a checker that never answers yes.
const UNDEFINED: &str = "–";

/// Formats `1234567` as `1,234,567`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a fraction as a percentage with one digit: `93.1 %`. A fraction close to 1 or 0, but not
/// equal to it, gets as many digits as are needed to show that.
pub(super) fn percent(share: Option<f64>) -> String {
    let Some(share) = share.filter(|share| (share * 100.0).is_finite()) else {
        return UNDEFINED.to_owned();
    };
    let percent = share * 100.0;
    for digits in 1..5 {
        let text = format!("{percent:.digits$}");
        let is_false = (share < 1.0 && text.starts_with("100."))
            || (share > 0.0 && text.trim_start_matches(['0', '.']).is_empty());
        if !is_false {
            return format!("{text}\u{a0}%");
        }
    }
    // The fraction is closer to 0 or 1 than any digits that people read.
    if share < 0.5 {
        "< 0.0001\u{a0}%".to_owned()
    } else {
        "> 99.9999\u{a0}%".to_owned()
    }
}

/// Formats a number from -1 to 1 with three digits.
fn coefficient(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("{value:.3}").replace('-', "\u{2212}"),
        None => UNDEFINED.to_owned(),
    }
}

/// Formats milliseconds: `0.4 ms`, `12 ms`, `1.5 s`.
fn milliseconds(ms: Option<f64>) -> String {
    match ms.filter(|ms| ms.is_finite()) {
        Some(ms) if ms >= 1_000.0 => format!("{:.1}\u{a0}s", ms / 1_000.0),
        Some(ms) if ms >= 10.0 || ms == 0.0 => format!("{ms:.0}\u{a0}ms"),
        Some(ms) => format!("{ms:.1}\u{a0}ms"),
        None => UNDEFINED.to_owned(),
    }
}

/// Formats the value of a metric by its type (fraction, time or count); a dash if it is undefined.
pub(super) fn metric(metrics: &Metrics, name: &str) -> String {
    let value = metrics.get(name);
    let number = value.and_then(MetricValue::number);
    match name {
        "accuracy" | "precision" | "recall" | "f1" | "waited" | "waited.stream" | "calls.exact"
        | "calls.in_order" => percent(number),
        "mcc" => coefficient(number),
        _ if name.contains(".ms.") => milliseconds(number),
        _ => match value {
            Some(MetricValue::Count(number)) => count(number),
            _ => UNDEFINED.to_owned(),
        },
    }
}

/// Maximum length of a name in characters.
pub(super) const NAME: usize = 80;
/// Maximum length of a reason in characters.
const REASON: usize = 200;

/// A name of a checker, a model, a stream or a group, of at most `limit` characters. Its hidden
/// characters are written out.
pub(super) fn name(name: &str, limit: usize) -> String {
    match name {
        "" => "(empty)".to_owned(),
        _ => visible_ends(name, limit),
    }
}

/// A name that is cut at its end.
pub(super) fn plain_name(name: &str) -> String {
    match name {
        "" => "(empty)".to_owned(),
        _ => visible(name, NAME),
    }
}

/// Formats a number of things: `1 stream`, `2,000 streams`.
#[must_use]
pub fn counted(number: u64, of: &str) -> String {
    format!(
        "{} {of}{}",
        count(number),
        if number == 1 { "" } else { "s" }
    )
}

/// A listed stream with the checker's answer.
pub(super) struct Named<'r> {
    /// The path of the index file that lists the stream.
    pub corpus: &'r str,
    /// The id in that index.
    pub id: &'r str,
    /// The answer and its place.
    pub answer: String,
    /// The checker's reason.
    pub reason: String,
}

impl Named<'_> {
    /// The answer and the reason: `: no: the text ended`; empty for streams of no checker.
    pub(super) fn outcome(&self) -> String {
        match self.answer.as_str() {
            "" => String::new(),
            answer => format!(": {answer}: {}", self.reason),
        }
    }
}

/// The streams of one kind.
pub(super) struct NamedStreams<'r> {
    /// The name of the checker that gave the answers; empty if the streams belong to no checker.
    pub checker: &'r str,
    /// The name and value of the option that selects the checker.
    option: [&'r str; 2],
    /// The name of the kind.
    pub kind: &'static str,
    /// The number of streams of this kind.
    pub count: u64,
    /// The first of these streams.
    pub streams: Vec<Named<'r>>,
}

impl<'r> NamedStreams<'r> {
    fn of(
        report: &'r Report,
        checker: &'r str,
        kind: &'static str,
        count: u64,
        streams: Vec<Named<'r>>,
    ) -> Self {
        let named_by = report.named_by.get(checker);
        NamedStreams {
            checker,
            option: named_by.map_or(["--checker", checker], |option| {
                option.each_ref().map(|it| &**it)
            }),
            kind,
            count,
            streams,
        }
    }

    /// `auto: 12 missed (5 of them are listed)`, with at most `limit` characters of the name.
    pub(super) fn title(&self, limit: usize) -> String {
        let checker = match self.checker {
            "" => String::new(),
            checker => name(checker, limit) + ": ",
        };
        let listed = match self.streams.len() as u64 {
            listed if self.count > listed => format!(" ({listed} of them are listed)"),
            _ => String::new(),
        };
        format!("{checker}{} {}{listed}", count(self.count), self.kind)
    }

    /// The command that shows more of a stream; `None` for streams of no checker.
    pub(super) fn command(&self, stream: &Named<'_>) -> Option<String> {
        let is_of_checker = !self.checker.is_empty();
        is_of_checker.then(|| explain(stream.corpus, stream.id, self.option))
    }

    /// The command that shows more of the first stream.
    pub(super) fn first_command(&self) -> Option<String> {
        self.command(self.streams.first()?)
    }
}

/// Returns the wrong streams of a checker.
pub(super) fn wrong<'r>(report: &'r Report, checker: &'r CheckerReport) -> [NamedStreams<'r>; 2] {
    let CheckerReport {
        name, confusion, ..
    } = checker;
    let [missed, false_yes] =
        [&checker.missed, &checker.false_yes].map(|streams| streams.iter().map(of_wrong).collect());
    [
        NamedStreams::of(report, name, "missed", confusion.missed(), missed),
        NamedStreams::of(
            report,
            name,
            "false yes",
            confusion.false_positives,
            false_yes,
        ),
    ]
}

fn of_wrong(stream: &WrongStream) -> Named<'_> {
    let mut answer = stream.answer.name().to_owned();
    if let (Some(events), Some(chars)) = (stream.events, stream.chars) {
        answer += &format!(", event {}, {}", count(events), counted(chars, "character"));
    }
    Named {
        corpus: &stream.corpus,
        id: &stream.id,
        answer,
        reason: visible(&stream.reason, REASON),
    }
}

/// What changed for a checker since the baseline: `2 broken, 1 fixed, 3 changed (p = 1.000)`.
pub(super) fn change(change: &CheckerChange) -> String {
    let CheckerChange {
        broken,
        fixed,
        changed,
        earlier,
        later,
        p,
        ..
    } = change;
    format!(
        "{broken} broken, {fixed} fixed, {changed} with another answer (McNemar p = {p:.4}); of the same answers \
         {earlier} earlier, {later} later"
    )
}

/// Returns the streams whose answer changed.
pub(super) fn changed<'r>(report: &'r Report, change: &'r CheckerChange) -> [NamedStreams<'r>; 2] {
    let [broken, fixed] = [&change.broken_streams, &change.fixed_streams]
        .map(|streams| streams.iter().map(of_change).collect());
    [
        NamedStreams::of(report, &change.checker, "broken", change.broken, broken),
        NamedStreams::of(report, &change.checker, "fixed", change.fixed, fixed),
    ]
}

/// Returns the streams that are only in the baseline or only in the run.
pub(super) fn unpaired<'r>(
    report: &'r Report,
    baseline: &'r BaselineReport,
) -> [NamedStreams<'r>; 2] {
    let [new, vanished] = [&baseline.new_streams, &baseline.vanished_streams]
        .map(|streams| streams.iter().map(of_name).collect());
    [
        NamedStreams::of(report, "", "new", baseline.new, new),
        NamedStreams::of(report, "", "vanished", baseline.vanished, vanished),
    ]
}

fn of_name(stream: &BaselineName) -> Named<'_> {
    Named {
        corpus: &stream.corpus,
        id: &stream.id,
        answer: String::new(),
        reason: String::new(),
    }
}

fn of_change(change: &AnswerChange) -> Named<'_> {
    Named {
        corpus: &change.corpus,
        id: &change.id,
        answer: format!("was {}, is {}", change.was.name(), change.is.name()),
        reason: visible(&change.reason, REASON),
    }
}

/// What a baseline and a run have in common.
pub(super) fn baseline(baseline: &BaselineReport) -> String {
    let BaselineReport {
        compared,
        new,
        vanished,
        relabelled,
        ..
    } = baseline;
    format!(
        "{compared} streams compared, {new} new, {vanished} vanished, {relabelled} with another label."
    )
}

/// Returns a line for each checker that got worse, followed by a line for each listed stream, for
/// the report of a CI gate.
#[must_use]
pub fn regressions(baseline: &BaselineReport) -> Vec<String> {
    let mut lines = Vec::new();
    for worse in baseline.checkers.iter().filter(|change| change.broken > 0) {
        let checker = plain_name(&worse.checker);
        let what = change(worse);
        lines.push(format!("{checker}: compared with the baseline {what}"));
        lines.extend(worse.broken_streams.iter().map(|stream| {
            let [corpus, id] = [&stream.corpus, &stream.id].map(|name| plain_name(name));
            let Named { answer, reason, .. } = of_change(stream);
            format!("{checker}: {corpus} {id} {answer}: {reason}")
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_groups_of_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn a_share_that_is_not_whole_never_reads_as_whole() {
        for (share, text) in [
            (Some(1.0), "100.0\u{a0}%"),
            (Some(0.9996), "99.96\u{a0}%"),
            (Some(0.99999), "99.999\u{a0}%"),
            (Some(1.0 - 1e-9), "> 99.9999\u{a0}%"),
            (Some(0.0), "0.0\u{a0}%"),
            (Some(0.0001), "0.01\u{a0}%"),
            (Some(1e-9), "< 0.0001\u{a0}%"),
            (Some(0.871), "87.1\u{a0}%"),
            (None, "–"),
            (Some(f64::NAN), "–"),
        ] {
            assert_eq!(percent(share), text, "{share:?}");
        }
    }

    #[test]
    fn what_is_undefined_is_a_dash() {
        assert_eq!(
            [
                coefficient(None),
                metric(&Metrics::default(), "streams"),
                milliseconds(Some(f64::INFINITY))
            ],
            ["–", "–", "–"]
        );
        assert_eq!(
            [
                coefficient(Some(-0.25)),
                milliseconds(Some(0.42)),
                milliseconds(Some(1_540.0))
            ],
            ["−0.250", "0.4\u{a0}ms", "1.5\u{a0}s"]
        );
    }
}
